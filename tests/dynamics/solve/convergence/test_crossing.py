"""A unit that is slow by itself is looked at where it moves to, and on the other side where that does not tell."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from separatrix.dynamics.solve.convergence.crossing import Crossing
from separatrix.dynamics.solve.convergence.stretch import Stretch

DIM = 20
ALLOWED = 1e-3
"""The largest error that counts as none, of states of size one."""
Unit = Callable[[Tensor], Tensor]


def examined(unit: Unit, *, at: float, noise: float = 1e-12) -> tuple[bool, int]:
    """Whether a claim is refused, and after how many evaluations, of a map whose last unit moves by ``unit``.

    The state is zero but for that unit; the others rest as soon as they are asked.
    """
    z = torch.zeros(1, DIM, dtype=torch.float64)
    z[0, -1] = at
    calls = [0]

    def image(state: Tensor) -> Tensor:
        calls[0] += 1
        return torch.cat([0.5 * state[:, :-1], state[:, -1:] + unit(state[:, -1:])], 1)

    residual = image(z) - z
    one = torch.ones(1, dtype=torch.float64)
    # the first look: a little along that unit, as far as the residual may change there, and along the others
    direction = torch.full_like(z, 0.1)
    response = image(z + ALLOWED * direction) - z - ALLOWED * direction - residual
    seen = Stretch(one, direction, response / ALLOWED)
    crossing = Crossing(z, survey=False)
    crossing.claim(one > 0, residual, ALLOWED * one, ALLOWED * one, noise * one, one, one < 0, seen)
    crossing._predicted = image(z + crossing._look) - z - crossing._look - residual  # so that it is the unit's turn
    calls[0] = 0
    refused = crossing.refused(z, noise, image)
    return bool(refused), calls[0]


def test_a_unit_that_comes_to_rest_where_it_moves_to_takes_one_look_besides_the_first() -> None:
    for at in (5e-4, -5e-4):
        assert examined(lambda u: -0.01 * u, at=at) == (False, 2)


def test_a_unit_that_rests_on_the_side_it_comes_from_is_looked_at_on_both() -> None:
    """At an equilibrium that repels it the unit moves away from its rest."""
    assert examined(lambda u: 0.01 * u, at=5e-4) == (False, 3)


@pytest.mark.parametrize("gap", [1e-4, 1e-6, 1e-9])
def test_a_unit_that_nearly_rests_is_refused(gap: float) -> None:
    on_both_sides_at_each_of_five_distances = 1 + 2 * 5
    assert examined(lambda u: gap + u.square(), at=0.0) == (True, on_both_sides_at_each_of_five_distances)
    assert examined(lambda u: -gap - u.square(), at=0.0) == (True, on_both_sides_at_each_of_five_distances)


def test_a_sign_that_rounding_can_have_made_is_none() -> None:
    """Of a residual that is smaller than its rounding error, where the unit moves to is not known."""
    assert examined(lambda u: -0.01 * u, at=1e-7) == (False, 2)
    assert examined(lambda u: -0.01 * u, at=1e-7, noise=1e-9) == (False, 3)


def test_a_jump_over_zero_is_no_rest() -> None:
    refused, _ = examined(lambda u: torch.where(u < 2e-3, 1e-5, -1.0).to(u) - 1e-3 * u, at=0.0)
    assert refused


def test_a_unit_that_drives_the_others_more_than_itself_is_looked_at_on_both_sides() -> None:
    """Where its own residual turns, and the whole does not, one side says less than two."""
    z = torch.zeros(1, DIM, dtype=torch.float64)
    crossing, one = Crossing(z, survey=False), torch.ones(1, dtype=torch.float64)
    unit = torch.eye(DIM, dtype=torch.float64)[-1:]
    own = torch.full_like(z, 1e-4)
    crossing.claim(one > 0, own, one, ALLOWED * one, 1e-12 * one, one, one < 0, Stretch(one, unit, -unit))
    alone, place = own - 2e-4 * unit, torch.tensor([[DIM - 1]])
    assert crossing._turns(own[:, -1:], own - 2e-3 * unit, place, ALLOWED * one).tolist() == [True]
    assert crossing._turns(own[:, -1:], alone, place, ALLOWED * one).tolist() == [False]
