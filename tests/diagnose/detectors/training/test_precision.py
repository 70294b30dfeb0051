"""Measures repeated in double precision: told where single precision is at its floor, and nothing stays changed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import separatrix


class Cancels(nn.Module):
    """A large number is added and taken away: single precision keeps few digits of what lies between."""

    def __init__(self, large: float) -> None:
        super().__init__()
        self.first, self.last, self.large = nn.Linear(6, 16), nn.Linear(16, 3), large

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.first(x))
        return self.last(torch.tanh((h + self.large) * 1.0 - self.large))


def _checked(model: nn.Module) -> separatrix.diagnose.Diagnosis:
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(32, 6, generator=generator), torch.randint(0, 3, (32,), generator=generator)
    return separatrix.check(model, x, loss="cross_entropy", target=y)


@pytest.mark.parametrize(("large", "told"), [(0.0, False), (4e6, True)])
def test_a_cancellation_is_told(large: float, told: bool) -> None:
    torch.manual_seed(0)
    found = _checked(Cancels(large))
    assert (found.find("precision") is not None) == told
    worst = max(value for name, value in found.measures.items() if name.startswith("precision_"))
    assert (worst > 0.05) == told
    assert "precision_curvature" in found.measures


def test_numbers_memory_and_the_default_type_are_as_before() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    before = {name: (value.data_ptr(), value.dtype, value.clone()) for name, value in model.state_dict().items()}
    assert "precision_gradient gain over depth" in _checked(model).measures
    for name, value in model.state_dict().items():
        assert (value.data_ptr(), value.dtype) == before[name][:2]
        assert torch.equal(value, before[name][2])
    assert torch.get_default_dtype() == torch.float32


class Refuses(nn.Module):
    """Multiplies with a number of its own type, or draws."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.layer, self.way = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), way
        self.generator = torch.Generator()

    def forward(self, x: Tensor) -> Tensor:
        if self.way == "raises" and x.dtype == torch.float64:
            raise KeyError("double")
        if self.way == "own":
            x = x + 0.1 * torch.randn(x.shape, generator=self.generator)
        if self.way == "draws":
            x = x + 0.1 * torch.randn_like(x)
        return self.layer(x)


@pytest.mark.parametrize(
    ("way", "reason"), [("raises", "double"), ("draws", "random"), ("own", "random"), ("is", "already")]
)
def test_what_cannot_be_repeated_is_skipped_with_its_reason(way: str, reason: str) -> None:
    model = Refuses(way)
    found = separatrix.check(model.double() if way == "is" else model, torch.randn(16, 6).to(model.layer[0].weight))
    assert [finding.id for finding in found.findings if finding.severity in ("warning", "fault")] == []
    assert any(item.id == "precision" and reason in item.reason for item in found.skipped)
    assert torch.get_default_dtype() == torch.float32
    assert model.layer[0].weight.dtype == (torch.float64 if way == "is" else torch.float32)
