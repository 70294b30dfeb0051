from __future__ import annotations

import torch
from torch import Tensor, nn

import separatrix
from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES
from check_recipes.networks import SharedDepth

_ = (faults, healthy)


def test_shared_depth_is_no_solver() -> None:
    case = RECIPES["shared_depth"].case(0)
    assert isinstance(case.model, SharedDepth)
    assert case.model.times >= 4
    assert scores.examine(case).verdict == "ok"


def test_an_iteration_that_settles_is_told_from_one_that_does_not() -> None:
    fine, bad = (scores.examine(RECIPES[name].case(0)) for name in ("equilibrium", "gain_three"))
    assert fine.measures["no_equilibrium"] < 1e-4
    assert bad.findings[0].id == "no_equilibrium"
    assert bad.findings[0].where.module == "layer"


class _Integrated(nn.Module):
    def __init__(self, step: float) -> None:
        super().__init__()
        self.field, self.step = nn.Linear(8, 8), step

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(40):
            x = x + self.step * torch.tanh(self.field(x))
        return x


def test_the_steps_of_an_integrator_are_no_solver_that_failed() -> None:
    torch.manual_seed(0)
    found = separatrix.check(_Integrated(0.1), torch.randn(24, 8))
    assert found.measures["no_equilibrium"] > 1e-2
    assert found.find("no_equilibrium").severity == "ok"
