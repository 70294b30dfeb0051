"""Depth: measures that accuse healthy models, each shown to do so, and ours that does not."""

from __future__ import annotations

import math

import torch
from torch import nn

import separatrix
from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES
from separatrix.diagnose import Diagnosis

_ = (faults, healthy)


def accusations(found: Diagnosis) -> set[str]:
    return {finding.id for finding in found.findings if finding.severity in ("warning", "fault")}


def gradients(found: Diagnosis) -> list[float]:
    return [row["gradient"] for row in found.profiles["depth"] if row["gradient"] is not None]


def test_gradients_inside_residual_branches_say_nothing_about_the_trunk() -> None:
    """Of a gate that starts at zero the branches get none: 300 decades, if one measures there."""
    found = scores.examine(RECIPES["residual_rezero"].case(0))
    inside = gradients(found)
    assert min(inside) == 0.0
    assert max(inside) > 1e-4
    assert accusations(found) == set()


def test_cells_of_a_loop_are_left_out_of_the_depth() -> None:
    found = scores.examine(RECIPES["rnn_cell_loop"].case(0))
    assert accusations(found) == set()
    assert abs(found.measures.get("gradient_decades", 0.0)) < 3


def test_averaging_over_positions_is_not_a_vanishing_gradient() -> None:
    """The plain rms of the gradient falls by the number of positions (here 1024: 3 decades)."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip
    x = torch.randn(16, 3, 32, 32)
    body = model[:4](x)
    naive = math.log10(1 / (body.shape[2] * body.shape[3]))
    found = separatrix.check(model, x)
    assert naive < -3
    assert found.measures["gradient_decades"] > -1.5
    assert accusations(found) == set()


def test_embeddings_of_small_scale_are_not_an_explosion() -> None:
    """Their gradient is large because they are small; nothing grows."""
    torch.manual_seed(0)
    case = RECIPES["former_causal"].case(0)
    case.model.table.weight.data.mul_(0.02)
    case.model.places.data.mul_(0.02)
    found = scores.examine(case)
    assert found.measures["gradient_decades"] > 1.0
    assert "exploding" not in accusations(found)


def test_the_place_where_the_input_is_lost_is_named() -> None:
    found = scores.examine(RECIPES["norm_over_one"].case(0))
    first = found.findings[0]
    assert first.id == "input_lost"
    assert first.where.module == "b"
    assert "between a and b" in first.meaning


def test_a_vanishing_gradient_is_a_fault_beyond_three_and_a_half_decades() -> None:
    found = scores.examine(RECIPES["small_mlp"].case(0)).find("vanishing")
    assert found is not None
    assert (found.severity, found.value) == ("fault", found.value)
    assert found.value is not None
    assert found.value < -3.5
