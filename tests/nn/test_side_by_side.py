from __future__ import annotations

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput, ShapeError, spawn
from separatrix.nn import SideBySide, TanhCell, make_network


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


@pytest.mark.parametrize("network", ["ESBN", "LSTM", "NTM"])
def test_networks_with_an_lstm_cell_run_side_by_side(network: str) -> None:
    members = [make_network(network, 2, 2, generator=torch.Generator().manual_seed(seed)) for seed in range(2)]
    images, index = torch.rand(2, 3, 3, 32, 32), torch.tensor([[[0, 1], [2, 2]], [[1, 0], [0, 0]]])
    found = SideBySide(members)(images, index)
    alone = torch.stack([member(images[k], index[k]) for k, member in enumerate(members)])
    torch.testing.assert_close(found, alone, atol=1e-5, rtol=1e-4)


def test_what_draws_within_a_call_is_refused_in_one_sentence() -> None:
    mixed = SideBySide([make_network("CoRelNet-mix", 2, 2) for _ in range(2)])
    with pytest.raises(InvalidInput, match=r"CoRelNetMix cannot run side by side: .*random"):
        mixed(torch.rand(2, 3, 3, 32, 32), torch.zeros(2, 4, 2, dtype=torch.int64))
