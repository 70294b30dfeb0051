from __future__ import annotations

import pytest
import torch
from torch import nn

import separatrix


def test_the_largest_curvature_is_that_of_the_hessian_and_not_the_largest_modulus() -> None:
    """A quadratic with eigenvalues 3, 1 and -8 about zero: power iteration finds -8."""

    class Quadratic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.tensor([[0.3, 0.2, 0.1]]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean() * 0 + (torch.tensor([3.0, 1.0, -8.0]) / 2 * self.w**2).sum().expand(len(x), 1)

    found = separatrix.check(Quadratic(), torch.randn(8, 2), loss=lambda f: f.mean() + 5)
    assert found.measures["sharpness"] == pytest.approx(3.0, abs=0.01)


def test_a_network_agrees_with_its_exact_hessian() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    x, y = torch.randn(16, 3), torch.randn(16, 2)
    found = separatrix.check(model, x, loss=nn.MSELoss(), target=y).find("sharpness")
    names = list(dict(model.named_parameters()))
    sizes = [value.numel() for value in model.parameters()]

    def loss(flat: torch.Tensor) -> torch.Tensor:
        parts = {n: p.view_as(v) for n, p, v in zip(names, flat.split(sizes), model.parameters(), strict=True)}
        return nn.functional.mse_loss(torch.func.functional_call(model, parts, (x,)), y)

    flat = torch.cat([value.detach().flatten() for value in model.parameters()])
    exact = float(torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, flat))[-1])
    assert found is not None
    assert found.value == pytest.approx(exact, rel=0.02)
