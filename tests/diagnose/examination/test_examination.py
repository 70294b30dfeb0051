"""Losses of whole outputs, images of class scores, decoders beside encoders: forms nobody had thought of."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import separatrix
from separatrix.core.errors import InvalidInput


class _Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 16), nn.SiLU())
        self.heads = nn.ModuleDict({"kind": nn.Linear(16, 3), "size": nn.Linear(16, 1)})

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        z = self.trunk(x)
        return {name: head(z) for name, head in self.heads.items()}


def _both(output: dict[str, Tensor], target: dict[str, Tensor]) -> Tensor:
    kind = functional.cross_entropy(output["kind"], target["kind"])
    return kind + functional.mse_loss(output["size"][:, 0], target["size"])


def test_a_loss_of_the_whole_output_is_used() -> None:
    torch.manual_seed(0)
    target = {"kind": torch.randint(0, 3, (24,)), "size": torch.randn(24)}
    found = separatrix.check(_Heads(), torch.randn(24, 6), loss=_both, target=target)
    assert [finding.id for finding in found.findings if finding.severity in ("warning", "fault")] == []
    assert any(item.id == "output_loss_mismatch" for item in found.skipped)
    assert not any(item.id == "loss" for item in found.skipped)


def test_a_loss_that_fits_neither_is_still_named() -> None:
    found = separatrix.check(
        _Heads(), torch.randn(24, 6), loss=lambda output, target: output["no"], target=torch.ones(24)
    )
    assert found.findings[0].id == "loss_raises"


def test_scores_of_classes_may_lie_on_axis_one() -> None:
    torch.manual_seed(0)
    model, x, y = nn.Conv2d(3, 4, 1), torch.randn(8, 3, 6, 6), torch.randint(0, 4, (8, 6, 6))
    found = separatrix.check(model, x, loss="cross_entropy", target=y)
    assert [finding.id for finding in found.findings if finding.severity in ("warning", "fault")] == []


def test_a_named_loss_without_a_target_is_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="target"):
        separatrix.check(nn.Linear(6, 3), torch.randn(8, 6), loss="cross_entropy")


def test_the_infinity_that_a_nan_was_made_from_is_its_origin() -> None:
    class Log(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(6, 16), nn.Linear(16, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.b(torch.log(functional.relu(self.a(x))))

    torch.manual_seed(0)
    found = separatrix.check(Log(), torch.randn(24, 6)).find("nonfinite_output")
    assert found is not None
    assert found.where.op == "log"
