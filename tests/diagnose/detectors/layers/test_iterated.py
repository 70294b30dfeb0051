from __future__ import annotations

import pytest
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


class _AskedAgain(nn.Module):
    """An iteration whose first state is asked for once more at the end, as a layer does that looks at its cell."""

    def __init__(self, step: nn.Module, start: float, n_steps: int = 40) -> None:
        super().__init__()
        self.step, self.start, self.n_steps = step, start, n_steps

    def forward(self, x: Tensor) -> Tensor:
        start = torch.full_like(x, self.start)
        with torch.no_grad():
            z = start
            for _ in range(self.n_steps):
                z = torch.relu(self.step(z) + x.abs())
            self.step(start)
        return torch.relu(self.step(z) + x.abs())


@pytest.mark.parametrize("start", [0.0, 2.0])
def test_a_look_at_the_first_state_is_no_step_of_the_iteration(start: float) -> None:
    torch.manual_seed(0)
    step = nn.Linear(8, 8, bias=False)
    nn.init.orthogonal_(step.weight, 0.3)
    assert separatrix.check(_AskedAgain(step, start), torch.randn(24, 8)).find("no_equilibrium").severity == "ok"


@pytest.mark.parametrize("n_steps", [39, 40])
def test_an_iteration_that_comes_back_to_its_start_in_turns_does_not_settle(n_steps: int) -> None:
    step = nn.Linear(8, 8, bias=False)
    nn.init.eye_(step.weight).data.mul_(-3)
    found = separatrix.check(_AskedAgain(step, 0.0, n_steps), torch.randn(24, 8))
    assert found.find("no_equilibrium").severity == "fault"
