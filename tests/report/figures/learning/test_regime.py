from __future__ import annotations

import io

import torch
from torch import nn

from helpers import seeded
from separatrix.diagnose import balance_profile, rich_lazy
from separatrix.report import draw_balance_profile, draw_rich_lazy, theme
from separatrix.report.figures.house.style import single_axes
from separatrix.report.figures.learning.regime import regime_bars


def model() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 2))


def test_a_profile_is_drawn_with_a_bar_per_pair() -> None:
    for name in ("light", "dark"):
        with theme(name):  # type: ignore[arg-type]
            figure = draw_balance_profile(balance_profile(model()))
        labels = [tick.get_text() for tick in figure.axes[0].get_yticklabels()]
        assert labels == ["0 -> 2", "2 -> 4"]
        figure.savefig(io.BytesIO(), format="png")


def test_a_profile_without_pairs_is_an_empty_figure() -> None:
    figure = draw_balance_profile(balance_profile(nn.Linear(2, 2)))
    assert not figure.axes[0].get_yticklabels()


def test_the_verdict_is_on_the_figure() -> None:
    net = model()
    x = torch.randn(12, 4, generator=seeded(1))
    result = rich_lazy(net, (x, x[:, :2]), target_loss=0.3)
    figure = draw_rich_lazy(result)
    assert result.verdict.label in figure.get_suptitle()
    assert len(figure.axes) == 3
    _, axes = single_axes()
    regime_bars(result, axes)
    assert result.verdict.label in axes.get_title()


def test_laws_that_were_not_checked_are_drawn_as_such() -> None:
    class TwoArguments(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
            return self.second(gain * self.first(x).relu())

    profile = balance_profile(TwoArguments(), [("first", "relu", "second")])
    figure = draw_balance_profile(profile)
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert labels == ["not checked"]
