"""Library calls leave the global generators alone. Add a line to CALLS for anything that draws."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator

import numpy
import pytest
import torch

from separatrix import core, report


@contextlib.contextmanager
def global_generators_untouched() -> Iterator[None]:
    """Fail when the code inside draws from, or seeds, a global generator of torch, numpy or Python."""
    before = (torch.get_rng_state(), numpy.random.get_state(legacy=True), random.getstate())  # noqa: NPY002
    yield
    assert torch.equal(torch.get_rng_state(), before[0]), "torch's global generator was touched"
    after = numpy.random.get_state(legacy=True)  # noqa: NPY002
    same = after[2:] == before[1][2:] and (after[1] == before[1][1]).all()
    assert same, "numpy's global generator was touched"
    assert random.getstate() == before[2], "Python's global generator was touched"


CALLS: dict[str, Callable[[], object]] = {
    "core.spawn": lambda: torch.randn(3, generator=core.spawn(0, "a")),
    "core.spawn_numpy": lambda: core.spawn_numpy(0, "a").normal(size=3),
    "report.to_svg": lambda: report.to_svg(report.single_axes(width=1, height=1)[0], "f"),
}


@pytest.mark.parametrize("name", CALLS)
def test_global_generators_are_untouched_by(name: str) -> None:
    with global_generators_untouched():
        CALLS[name]()


@pytest.mark.parametrize(
    "draw",
    [lambda: torch.randn(1), lambda: numpy.random.normal(), random.random, lambda: torch.manual_seed(1)],  # noqa: NPY002
    ids=["torch", "numpy", "python", "seeding"],
)
def test_the_check_notices_a_global_draw(draw: Callable[[], object]) -> None:
    with pytest.raises(AssertionError, match="was touched"), global_generators_untouched():
        draw()
