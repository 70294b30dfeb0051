"""How parameters hang together: experts, frozen parts, linear bottlenecks and copies of layers are no faults."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import separatrix
from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES

_ = (faults, healthy)


def test_an_expert_that_was_not_chosen_is_a_note() -> None:
    found = scores.examine(RECIPES["experts"].case(0)).find("unused_parameters")
    assert found is not None
    assert found.severity == "note"


@pytest.mark.parametrize(
    "name", ["residual_rezero", "cnn_bottleneck", "cnn_separable", "lora", "autoencoder", "former_tied"]
)
def test_two_affine_maps_in_a_row_are_no_missing_activation_by_themselves(name: str) -> None:
    assert scores.examine(RECIPES[name].case(0)).find("missing_activation") is None


def test_the_missing_activation_is_found_behind_batch_norm_and_dropout() -> None:
    found = scores.examine(RECIPES["linear_pair_norm"].case(0)).find("missing_activation")
    assert found is not None
    assert "0.weight and 3.weight" in found.meaning


def test_layers_copied_by_torch_are_neither_tied_nor_symmetric() -> None:
    case = RECIPES["torch_encoder_pre"].case(0)
    first, second = case.model.body.layers[:2]
    assert torch.equal(first.linear1.weight, second.linear1.weight)
    found = scores.examine(case)
    assert found.find("broken_tie") is None
    assert found.find("symmetric_units") is None


def test_a_part_frozen_as_a_whole_is_meant() -> None:
    torch.manual_seed(0)
    wide = nn.Sequential(nn.Linear(30, 30), nn.ReLU(), nn.Linear(30, 30))
    model = nn.Sequential(nn.Linear(6, 30), wide, nn.ReLU(), nn.Linear(30, 40), nn.ReLU(), nn.Linear(40, 40))
    model.append(nn.ReLU()).append(nn.Linear(40, 3))
    wide.requires_grad_(False)
    assert separatrix.check(model, torch.randn(16, 6)).find("frozen_layer") is None
    wide.requires_grad_(True)[0].weight.requires_grad_(False)
    assert separatrix.check(model, torch.randn(16, 6)).find("frozen_layer") is not None


def test_what_only_another_output_needs_is_not_cut_off() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
            return self.a(x), [self.b(x)]

    found = separatrix.check(Two(), torch.randn(8, 4))
    assert found.find("unused_parameters") is None
    assert found.find("detached") is None


def test_the_line_that_detaches_is_named() -> None:
    found = scores.examine(RECIPES["cut_detach"].case(0)).find("detached")
    assert found is not None
    assert found.where.op == "detach"
    assert found.where.source
