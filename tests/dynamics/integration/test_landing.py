"""Where motions end on continua of equilibria, against closed forms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from separatrix.core import Outcome
from separatrix.dynamics import AbstractFlow, integrate
from separatrix.dynamics.integration.landing import land


class Field(AbstractFlow):
    """A field by its function."""

    def __init__(self, field: Callable[[Tensor], Tensor]) -> None:
        self.field = field

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        return self.field(x)

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        shape = torch.broadcast_shapes(x.shape, u.shape)
        along: Tensor = torch.func.jvp(self.field, (x.expand(shape).clone(),), (u.expand(shape).clone(),))[1]
        return along

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Field:
        return self

    def to(self, dtype: torch.dtype) -> Field:
        return self


def state(*entries: float) -> Tensor:
    return torch.tensor([[entries]], dtype=torch.float64)


def carried(x: Tensor) -> Tensor:
    """x' = -x, z' = 3 x + x^2: from (x, z) to (0, z + 3 x + x^2 / 2)."""
    return torch.stack([-x[..., 0], 3 * x[..., 0] + x[..., 0] ** 2], -1)


def test_the_end_is_where_the_motion_is_carried_not_the_nearest_equilibrium() -> None:
    landing = land(Field(carried), state(1e-3, 2.0), state(0.0, 2.0))
    torch.testing.assert_close(landing.point, state(0.0, 2.003), atol=1e-6, rtol=0)


@pytest.mark.parametrize("size", [1e-2, -1e-3, 1e-5])
def test_the_doubt_bounds_what_is_beyond_the_linear_motion(size: float) -> None:
    landing = land(Field(carried), state(size, 2.0), state(0.0, 2.0))
    missed = abs(float(landing.point[0, 0, 1]) - (2 + 3 * size + size**2 / 2))
    assert 0.1 * float(landing.doubt) < missed + 1e-12 < 1e-12 + float(landing.doubt)


def drift(x: Tensor) -> Tensor:
    """Every state with y = 0 rests; beside it the motion goes on for ever."""
    return torch.stack([x[..., 1], 0 * x[..., 1], -x[..., 2]], -1)


def cubic(x: Tensor) -> Tensor:
    """One equilibrium, singular and alone."""
    return torch.stack([-(x[..., 0] ** 3), -x[..., 1]], -1)


def turning(x: Tensor) -> Tensor:
    """A centre, beside a decay: nothing ends."""
    return torch.stack([-x[..., 1], x[..., 0], -x[..., 2]], -1)


@pytest.mark.parametrize(
    ("field", "x", "found"),
    [
        (drift, (0.0, 1e-6, 1e-3), (0.0, 0.0, 0.0)),
        (turning, (1e-3, 0.0, 1e-3), (0.0, 0.0, 0.0)),
        (carried, (1e-3, float("nan")), (0.0, 2.0)),
    ],
)
def test_nothing_is_known_where_the_rest_of_the_motion_does_not_contract(
    field: Callable[[Tensor], Tensor], x: tuple[float, ...], found: tuple[float, ...]
) -> None:
    assert float(land(Field(field), state(*x), state(*found)).doubt) == torch.inf


def test_a_singular_equilibrium_that_is_alone_is_no_continuum() -> None:
    assert float(land(Field(cubic), state(1e-2, 1e-3), state(0.0, 0.0)).doubt) >= 1e-2 * 0.99


@pytest.mark.slow
def test_a_slender_spiral_onto_a_line_ends_where_it_is_carried_in_few_steps() -> None:
    """u' = A u in an ellipse of axes 1 : 30, z' = u_1: the end is z - (A^-1 u)_1; errors kept it alive before."""
    rate, speed, long = 0.02, 1.0, 30.0
    matrix = torch.tensor([[-rate, -speed * long], [speed / long, -rate]], dtype=torch.float64)

    def field(x: Tensor) -> Tensor:
        moved = x[..., :2] @ matrix.mT
        return torch.cat([moved, x[..., :1]], -1)

    run = integrate(Field(field), state(1.0, 0.3, 0.0)[0], max_steps=2000)
    assert int(run.outcome) == Outcome.CONVERGED
    end = -torch.linalg.solve(matrix, torch.tensor([1.0, 0.3], dtype=torch.float64))[0]
    torch.testing.assert_close(run.final[0], torch.stack([0 * end, 0 * end, end]), atol=1e-4, rtol=0)
