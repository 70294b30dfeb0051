from __future__ import annotations

import pytest
import torch
from torch import nn

import separatrix
from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES

_ = (faults, healthy)


def test_fresh_batch_norm_is_not_compared_with_the_batch() -> None:
    """Its running variance is 1 whatever enters: every fresh model would be accused."""
    case = RECIPES["mlp_evaluation_mode"].case(0)
    assert not case.model.training
    found = scores.examine(case)
    assert found.find("stale_statistics") is None
    assert "stale_variance" not in found.measures


def test_a_middle_sample_sees_a_layer_that_runs_along_the_batch() -> None:
    """The first output of such a layer depends on nothing else; the middle one does."""
    found = scores.examine(RECIPES["gru_along_batch"].case(0)).find("batch_mixing")
    assert found is not None
    assert found.where.module == "rnn"
    assert "ran along the 24 samples" in found.meaning


def test_tokens_without_a_table_are_tried_by_exchange() -> None:
    class OneHot(nn.Module):
        def __init__(self, mixes: bool) -> None:
            super().__init__()
            self.layer, self.mixes = nn.Linear(10, 4), mixes

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = (x[..., None] == torch.arange(10)).float().mean(1)
            return self.layer(h - h.mean(0) if self.mixes else h)

    x = torch.randint(0, 10, (9, 5))
    assert separatrix.check(OneHot(False), x).find("batch_mixing").severity == "ok"  # type: ignore[union-attr]
    assert separatrix.check(OneHot(True), x).find("batch_mixing").severity == "fault"  # type: ignore[union-attr]


class OneReadsAnother(nn.Module):
    """Sample ``reader`` gets a part of sample ``read``; all others are left alone."""

    def __init__(self, reader: int, read: int) -> None:
        super().__init__()
        self.first, self.last, self.reader, self.read = nn.Linear(6, 16), nn.Linear(16, 3), reader, read

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        rows = torch.arange(len(x)).unsqueeze(1)
        return self.last(hidden + 0.5 * (rows == self.reader) * hidden[self.read])


@pytest.mark.parametrize(
    ("reader", "read"), [(0, 1), (1, 0), (0, 8), (8, 0), (9, 8), (3, 5), (15, 14), (14, 15), (2, 13), (4, 12), (15, 0)]
)
def test_any_sample_that_reads_another_one_is_found(reader: int, read: int) -> None:
    torch.manual_seed(0)
    finding = separatrix.check(OneReadsAnother(reader, read), torch.randn(16, 6)).find("batch_mixing")
    assert finding is not None
    assert finding.severity == "fault"
    assert f"output {reader} reacts to other samples" in finding.meaning


@pytest.mark.parametrize("n", [2, 3, 16])
def test_samples_that_are_kept_apart_are_not_accused(n: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3))
    finding = separatrix.check(model, torch.randn(n, 6)).find("batch_mixing")
    assert finding is not None
    assert (finding.severity, finding.meaning) == ("ok", "no mixing between samples (exact)")


class _WithoutGradientsElse(nn.Module):
    """Returns something else where there are no gradients, or at every call; its samples do not see each other."""

    def __init__(self, always: bool) -> None:
        super().__init__()
        self.layer, self.always, self.calls = nn.Linear(6, 4), always, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        still = self.layer(x.sign().detach())
        return still + self.calls % 7 if self.always else still + 3.0 * torch.is_grad_enabled()


@pytest.mark.parametrize("always", [False, True])
def test_a_model_that_answers_otherwise_is_not_said_to_mix_samples(always: bool) -> None:
    found = separatrix.check(_WithoutGradientsElse(always), torch.randn(8, 6)).find("batch_mixing")
    assert found is None or found.severity == "ok"
