"""Library calls leave the global generators alone. Add a line to CALLS for anything that draws."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy
import pytest
import torch

from separatrix import core, diagnose, dynamics, matrices, nn, report


def global_generators() -> dict[str, object]:
    """The states of the global generators of torch, numpy and Python, in a form that can be compared."""
    kind, keys, *rest = numpy.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": (kind, keys.tolist(), *rest),
        "Python": random.getstate(),
    }


CALLS: dict[str, Callable[[], object]] = {
    "core.spawn": lambda: torch.randn(3, generator=core.spawn(0, "a")),
    "core.spawn_numpy": lambda: core.spawn_numpy(0, "a").normal(size=3),
    "report.to_svg": lambda: report.to_svg(report.single_axes(width=1, height=1)[0], "f"),
}


@pytest.mark.parametrize("name", CALLS)
def test_global_generators_are_untouched_by(name: str) -> None:
    for _ in range(4):  # the tests' own checks of types draw too, at the first calls of a file
        CALLS[name]()
    before = global_generators()
    CALLS[name]()
    assert global_generators() == before


@pytest.mark.parametrize(
    "draw",
    [lambda: torch.randn(1), lambda: numpy.random.normal(), random.random, lambda: torch.manual_seed(1)],  # noqa: NPY002
    ids=["torch", "numpy", "python", "seeding"],
)
def test_the_check_notices_a_global_draw(draw: Callable[[], object]) -> None:
    before = global_generators()
    draw()
    assert global_generators() != before


def test_calls_without_a_generator_draw_by_one_fixed_seed_and_results_carry_it() -> None:
    tokens = dynamics.random_tokens(4, 3)
    seeded = dynamics.random_tokens(4, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(tokens, seeded)
    first, second = matrices.balanced_pair(1.0, 3, 2, 3), matrices.balanced_pair(1.0, 3, 2, 3)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert torch.equal(nn.TanhCell(4).linear.weight, nn.TanhCell(4).linear.weight)
    found = diagnose.multistability(torch.eye(3), torch.diag(torch.tensor([2.0, 1.0, -1.0])), 4, n_starts=2)
    assert found.seed == 0
    assert "seed: 0" in repr(found)
