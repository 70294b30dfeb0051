from __future__ import annotations

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput, ShapeError, spawn
from separatrix.nn import SideBySide, TanhCell


def cells(*seeds: int) -> list[TanhCell]:
    return [TanhCell(4, weight_var=0.5, generator=spawn(s, "w"), dtype=torch.float64) for s in seeds]


@pytest.mark.parametrize("merged", [False, True])
def test_each_member_acts_on_its_own_part(generator: torch.Generator, merged: bool) -> None:
    modules = cells(0, 1, 2)
    z, x = torch.randn(2, 3, 5, 4, generator=generator, dtype=torch.float64)
    together = SideBySide(modules, merged=merged)
    out = together(z.flatten(0, 1), x.flatten(0, 1)).unflatten(0, (3, 5)) if merged else together(z, x)
    expected = torch.stack([module(z[k], x[k]) for k, module in enumerate(modules)])
    torch.testing.assert_close(out, expected, rtol=1e-13, atol=1e-13)


def test_gradients_stay_with_their_member(generator: torch.Generator) -> None:
    together = SideBySide(cells(0, 1))
    z = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    together(z, z)[1].sum().backward()
    for parameter in together.parameters():
        assert parameter.grad is not None
        assert bool((parameter.grad[0] == 0).all())
        assert bool((parameter.grad[1] != 0).any())


def test_a_member_can_be_taken_out_again() -> None:
    modules = cells(0, 1)
    together = SideBySide(modules)
    fresh = cells(7)[0]
    fresh.load_state_dict(together.member(1))
    assert torch.equal(fresh.linear.weight, modules[1].linear.weight)
    together.stacked["linear/weight"].data.zero_()
    assert bool((modules[1].linear.weight != 0).any())  # parameters were copied


def test_members_survive_a_state_dict() -> None:
    one, other = SideBySide(cells(0, 1)), SideBySide(cells(2, 3))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one.stacked["linear/weight"], other.stacked["linear/weight"])


def test_unequal_modules_and_wrong_inputs_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the same parameters by name and shape"):
        SideBySide([nn.Linear(2, 2), nn.Linear(2, 3)])
    with pytest.raises(InvalidInput, match="at least one module"):
        SideBySide([])
    together = SideBySide(cells(0, 1))
    with pytest.raises(ShapeError, match=r"2 members first; got shape \(3, 4\)"):
        together(torch.zeros(3, 4), torch.zeros(3, 4))
    with pytest.raises(ShapeError, match="2 members x batch; got 3 rows"):
        SideBySide(cells(0, 1), merged=True)(torch.zeros(3, 4), torch.zeros(3, 4))
