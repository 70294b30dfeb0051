from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import separatrix


class Mixer(nn.Module):
    """Rows see each other in ``second`` alone, by one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.first, self.second, self.way = nn.Linear(6, 8), nn.Linear(8, 3), way

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.first(x))
        if self.way == "mean":
            h = h - h.mean(0)
        if self.way == "softmax":
            h = h.softmax(0)
        if self.way == "reshape":
            h = h.t().reshape(len(x), -1)
        return self.second(h)


@pytest.mark.parametrize(("way", "op"), [("mean", "sub"), ("softmax", "_softmax"), ("reshape", "")])
def test_the_place_where_samples_meet_is_named(way: str, op: str) -> None:
    found = separatrix.check(Mixer(way), torch.randn(12, 6)).find("batch_mixing")
    assert found is not None
    assert found.severity == "fault"
    assert found.where.op.startswith(op)
    assert found.where.source.startswith("test_mixing.py")


def test_tokens_that_meet_are_named_too() -> None:
    model = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), Mixer("mean"))
    model[2].first = nn.Linear(12, 8)
    found = separatrix.check(model, torch.randint(0, 9, (10, 3))).find("batch_mixing")
    assert found is not None
    assert found.where.module == "2"
    assert found.where.op == "sub"


def test_numbers_that_grew_are_told_apart_from_a_bad_domain() -> None:
    class Grows(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.first, self.factor = nn.Linear(6, 6), factor

        def forward(self, x: Tensor) -> Tensor:
            h = self.first(x)
            for _ in range(12):
                h = h * self.factor
            return torch.sqrt(h)

    grown = separatrix.check(Grows(1e4), torch.rand(8, 6)).find("nonfinite_output")
    wrong = separatrix.check(Grows(1.0), torch.rand(8, 6)).find("nonfinite_output")
    assert grown is not None
    assert "grew" in grown.meaning
    assert grown.where.op == "mul"
    assert wrong is not None
    assert "grew" not in wrong.meaning
    assert wrong.where.op == "sqrt"
