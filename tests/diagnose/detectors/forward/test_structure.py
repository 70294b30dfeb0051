"""How parameters hang together: experts, frozen parts, linear bottlenecks and copies of layers are no faults."""

from __future__ import annotations

from typing import Any

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


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", ["residual_rezero", "cnn_bottleneck", "cnn_separable", "lora", "autoencoder", "former_tied"]
)
def test_two_affine_maps_in_a_row_are_no_missing_activation_by_themselves(name: str) -> None:
    assert scores.examine(RECIPES[name].case(0)).find("missing_activation") is None


def test_the_missing_activation_is_found_behind_batch_norm_and_dropout() -> None:
    found = scores.examine(RECIPES["linear_pair_norm"].case(0)).find("missing_activation")
    assert found is not None
    assert "0.weight and 3.weight" in found.meaning


@pytest.mark.slow
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


class _Einsum(nn.Module):
    def __init__(self, activation: bool) -> None:
        super().__init__()
        self.a, self.b = (nn.Parameter(torch.randn(16, 16) / 4) for _ in range(2))
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        x = torch.einsum("bi,oi->bo", x, self.a)
        return torch.einsum("bi,oi->bo", torch.tanh(x) if self.activation else x, self.b)


@pytest.mark.parametrize("activation", [True, False])
def test_the_missing_activation_is_found_between_einsums(activation: bool) -> None:
    torch.manual_seed(0)
    found = separatrix.check(_Einsum(activation), torch.randn(24, 16)).find("missing_activation")
    assert (found is None) == activation


class _Forgets(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient @ ctx.saved_tensors[0], None


class _Custom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.weight = nn.Linear(8, 8), nn.Parameter(torch.randn(4, 8))

    def forward(self, x: Tensor) -> Tensor:
        return _Forgets.apply(torch.tanh(self.first(x)), self.weight)


def test_a_backward_that_forgets_a_weight_is_named() -> None:
    torch.manual_seed(0)
    found = separatrix.check(_Custom(), torch.randn(24, 8)).find("detached")
    assert found is not None
    assert found.severity == "fault"
    assert found.where.op == "weight"


class TwoOutputs(nn.Module):
    """A body whose features are returned too, and a head that may see them through ``.data``."""

    def __init__(self, cut: bool) -> None:
        super().__init__()
        self.body, self.head, self.cut = nn.Linear(6, 12), nn.Linear(12, 3), cut

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        features = torch.relu(self.body(x))
        return {"scores": self.head(features.data if self.cut else features), "features": features}


@pytest.mark.parametrize("cut", [True, False])
def test_parameters_that_reach_an_output_but_not_the_loss_are_cut_off(cut: bool) -> None:
    y = torch.randint(0, 3, (16,))
    loss = lambda output, target: nn.functional.cross_entropy(output["scores"], target)  # noqa: E731
    found = separatrix.check(TwoOutputs(cut), torch.randn(16, 6), loss=loss, target=y).find("detached")
    assert (found is not None) is cut
    assert found is None or (found.severity == "fault" and "test_structure.py" in found.where)


def test_a_head_that_the_loss_leaves_out_is_a_note() -> None:
    loss = lambda output: output["features"].square().mean()  # noqa: E731
    found = separatrix.check(TwoOutputs(False), torch.randn(16, 6), loss=loss)
    assert found.verdict == "ok"
    assert "head" in found.find("unused_parameters").where  # type: ignore[union-attr]


def test_a_loss_without_a_graph_is_a_fault() -> None:
    loss = lambda f, y: nn.functional.cross_entropy(f.detach(), y)  # noqa: E731
    found = separatrix.check(nn.Linear(6, 3), torch.randn(16, 6), loss=loss, target=torch.zeros(16, dtype=torch.long))
    assert found.find("detached").where == "loss"  # type: ignore[union-attr]
