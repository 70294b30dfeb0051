from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from recurrent_cases import pitchfork
from separatrix.core import InvalidInput
from separatrix.diagnose import fixed_points, input_branch


def test_a_branch_ends_at_the_fold_of_theory() -> None:
    fold = math.sqrt(0.5)
    at = 2 * fold - math.atanh(fold)
    branch = input_branch(pitchfork(), [[0.0], [-1.0]], [[0.95]])
    assert not branch.complete
    assert branch.event_parameters[-1] == pytest.approx(at, abs=1e-5)
    assert "fold" in branch.events[-1]
    assert bool(branch.stable.all())
    other = input_branch(pitchfork(), [[0.0], [1.0]], [[0.95]])
    assert other.complete
    assert other.parameters[-1] == 1
    gaps = torch.tanh(2 * other.states[:, 0] + other.parameters) - other.states[:, 0]
    assert float(gaps.abs().max()) < 1e-9


def test_loss_of_stability_is_located() -> None:
    """A rotation of two units whose gain is 0.5 + x."""

    def step(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        turned = torch.stack([h[:, 0] - h[:, 1], h[:, 0] + h[:, 1]], dim=-1) * math.sqrt(0.5)
        return torch.tanh((0.5 + x) * turned)

    start = torch.full((1, 2), 1e-3, dtype=torch.float64)
    branch = input_branch(step, [[0.0], [1.0]], start)
    assert branch.event_parameters.tolist() == pytest.approx([0.5], abs=1e-5)
    assert branch.events == ("loses stability through a pair at angle 0.785",)
    assert branch.stable.tolist() == [value < 0.5 for value in branch.parameters.tolist()]


def test_a_branch_of_a_gru_agrees_with_a_search_at_its_end() -> None:
    gru = nn.GRU(2, 5)
    ends = torch.tensor([[0.0, 0.0], [1.0, -1.0]])
    first = fixed_points(gru, ends[0])
    branch = input_branch(gru, ends, first.states[:1])
    last = fixed_points(gru, ends[1])
    assert branch.complete
    assert float((last.states - branch.states[-1]).abs().amax(-1).min()) < 1e-7


def test_a_branch_needs_a_fixed_point_to_begin_with() -> None:
    with pytest.raises(InvalidInput, match="near a fixed point"):
        input_branch(lambda x, h: h + 1 + x, [[0.0], [1.0]], [[0.0]])
    with pytest.raises(InvalidInput, match="first and the last input"):
        input_branch(pitchfork(), [0.0], [[0.0]])
