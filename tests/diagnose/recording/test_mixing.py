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


class Graph(nn.Module):
    """Messages along edges, or through a matrix between rows; ``mixes`` adds what no relation explains."""

    def __init__(self, mixes: bool = False) -> None:
        super().__init__()
        self.first, self.second, self.mixes = nn.Linear(5, 16), nn.Linear(16, 4), mixes

    def forward(self, x: Tensor, relation: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        if relation.shape[0] == 2:
            h = h + torch.zeros_like(h).index_add(0, relation[1], h[relation[0]])
        elif relation.is_sparse:
            h = h + torch.sparse.mm(relation, h)
        elif relation.is_floating_point():
            h = h + relation @ h
        return self.second(h - h.mean(0) if self.mixes else h)


@pytest.mark.parametrize("kind", ["edges", "matrix", "sparse"])
@pytest.mark.parametrize("n", [12, 90])
def test_rows_that_the_sample_itself_relates_are_asked_about_and_not_accused(kind: str, n: int) -> None:
    """More nodes than samples are looked at must not be cut: edges point at all of them."""
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, n, (2, 4 * n), generator=generator)
    matrix = torch.zeros(n, n).index_put((edges[1], edges[0]), torch.tensor(1.0))
    relation = {"edges": edges, "matrix": matrix, "sparse": matrix.to_sparse()}[kind]
    found = separatrix.check(Graph(), {"x": torch.randn(n, 5, generator=generator), "relation": relation})
    assert [finding.id for finding in found.findings if finding.severity in ("warning", "fault")] == []
    note = found.find("batch_mixing")
    assert note is not None
    assert note.severity == ("note" if n == 12 or kind == "edges" else note.severity)


def test_whole_numbers_that_move_no_rows_excuse_nothing() -> None:
    sample = {"x": torch.randn(12, 5), "relation": torch.arange(5)}
    found = separatrix.check(Graph(mixes=True), sample).find("batch_mixing")
    assert found is not None
    assert found.severity == "fault"
