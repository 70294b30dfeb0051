from __future__ import annotations

import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import all_true, any_true, exposed, transforms_active


def test_a_mapped_loop_stops_when_every_member_is_finished() -> None:
    rounds = []

    def halve_below_one(x: Tensor) -> Tensor:
        while any_true(x.abs() >= 1):
            x = torch.where(x.abs() >= 1, x / 2, x)
        rounds.append(None)
        assert all_true(x.abs() < 1)
        return x

    numbers = torch.tensor([[3.0, -20.0], [0.5, 1.0], [700.0, 2.0]])
    found = torch.func.vmap(halve_below_one)(numbers)
    assert len(rounds) == 1  # one loop for all
    assert torch.equal(found, torch.stack([halve_below_one(row) for row in numbers]))


def test_hidden_axes_come_first_and_no_gradient_passes() -> None:
    shapes = []

    def look(x: Tensor) -> Tensor:
        shapes.append(exposed(x).shape)
        return (x * exposed(x).sum()).sum()

    torch.func.vmap(torch.func.vmap(look), in_dims=1)(torch.ones(3, 5, 2))
    assert shapes[-1] == (5, 3, 2)
    assert torch.equal(torch.func.grad(look)(torch.ones(4)), torch.full((4,), 4.0))


def test_outside_of_transforms_nothing_is_copied() -> None:
    x = torch.ones(3)
    assert not transforms_active()
    assert exposed(x) is x
