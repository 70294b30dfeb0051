"""Losses of whole outputs, images of class scores, decoders beside encoders: forms nobody had thought of."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

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


class _Wrapped(nn.Module):
    """One network, called in ways that recorders stumble over."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.last, self.way = nn.Sequential(nn.Linear(6, 12), nn.Tanh()), nn.Linear(12, 3), way
        self.block = nn.Sequential(nn.Linear(12, 12), nn.Tanh())

    def plain(self, x: Tensor) -> Tensor:
        return self.last(self.block(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        if self.way == "vmap":
            return torch.vmap(self.plain)(x)
        if self.way == "sparse":
            return self.last(torch.sparse.mm(torch.eye(len(x)).to_sparse(), self.block(self.first(x))))
        h = self.first(x)
        if self.way == "checkpoint":
            return self.last(checkpoint(self.block, h, use_reentrant=True))
        y = self.block(h)
        h += y.detach()  # what the block needs for its backward is overwritten
        return self.last(h + y)


@pytest.mark.parametrize("way", ["vmap", "sparse", "checkpoint"])
def test_unusual_calls_are_followed_and_accuse_nobody(way: str) -> None:
    torch.manual_seed(0)
    model, grad = _Wrapped(way), torch.ones(3)
    model.last.bias.grad = grad
    found = separatrix.check(model, torch.randn(16, 6), loss="cross_entropy", target=torch.randint(0, 3, (16,)))
    assert [finding.id for finding in found.findings if finding.severity in ("warning", "fault")] == []
    assert found.find("gradients_finite") is not None
    assert model.last.bias.grad is grad
    assert bool((grad == 1).all())
    assert model.first[0].weight.grad is None


def test_a_backward_that_raises_is_a_fault_with_its_sentence() -> None:
    found = separatrix.check(_Wrapped("overwrites"), torch.randn(16, 6)).find("backward_raises")
    assert found is not None
    assert found.severity == "fault"
    assert "inplace" in found.meaning
    assert "out of place" in str(found.advice)


def test_a_model_that_only_recorders_trouble_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("recorder")

    monkeypatch.setattr("separatrix.diagnose.recording.operations.OperationRecorder._finiteness", broken)
    found = separatrix.check(_Wrapped("vmap"), torch.randn(16, 6))
    assert found.verdict == "failed"
    assert found.findings == ()
    assert any("not while it is watched (RuntimeError: recorder)" in item.reason for item in found.skipped)
