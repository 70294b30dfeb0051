"""Library calls leave the global generators alone. Add a line to CALLS for anything that draws."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy
import pytest
import torch

from separatrix import core, report


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
