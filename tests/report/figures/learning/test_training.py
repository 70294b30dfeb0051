from __future__ import annotations

import torch

from separatrix.report import plot
from separatrix.report.figures.learning.training import draw_error_by_scale, draw_learning_curves, draw_perplexities
from short_training import run

NAMES = {"goe": "GOE", "haar": "orthogonal"}


def test_errors_show_means_medians_and_every_seed() -> None:
    row = {"family": "haar", "mean_error": 0.2, "median_error": 0.1, "half_width": 0.05}
    rows = [{**row, "weight_scale": scale} for scale in (2.0, 0.5)]
    seeds = [{"family": "haar", "weight_scale": 0.5, "values": [0.1, 0.1, 0.4]}]
    figure = draw_error_by_scale(rows, seeds)
    axes = figure.axes[0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["median", "orthogonal"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.5", "2"]
    assert any(list(line.get_ydata()) == [0.1, 0.1, 0.4] for line in axes.lines)


def test_a_single_seed_has_no_bar() -> None:
    row = {"family": "haar", "weight_scale": 1.0, "mean_error": 0.2, "median_error": 0.2, "half_width": float("inf")}
    axes = draw_error_by_scale([row], []).axes[0]
    low, high = axes.get_ylim()
    assert low == 0
    assert high < 1


def test_perplexities_show_each_seed_beside_the_mean() -> None:
    groups = [{"family": family, "weight_scale": 1.0, "values": [3.0, 5.0]} for family in ("goe", "haar")]
    figure = draw_perplexities(groups)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GOE", "orthogonal"]
    assert sum(list(line.get_ydata()) == [4.0, 4.0] for line in figure.axes[0].lines) == 2


def test_learning_curves_show_each_seed_and_the_mean_of_those_still_running() -> None:
    whole = {"family": "goe", "steps": [1, 2, 3], "losses": [3.0, 2.0, 1.0]}
    broken = {"family": "goe", "steps": [1, 2], "losses": [5.0, 4.0]}  # a run that diverged is shorter
    curves = [{**curve, "embedding_std": std} for std in (1.0, 0.02) for curve in (whole, broken)]
    figure = draw_learning_curves(curves, panels="embedding_std")
    assert [axes.get_title() for axes in figure.axes] == ["embeddings of size 0.02", "embeddings of size 1"]
    assert [list(line.get_ydata()) for line in figure.axes[0].lines] == [[3.0, 2.0, 1.0], [5.0, 4.0], [4.0, 3.0]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GOE"]


def test_a_training_run_can_be_plotted() -> None:
    result = run(None, n_steps=6)
    axes = plot(result)
    assert len(axes.lines[0].get_ydata()) == 6
    assert torch.tensor(axes.lines[0].get_ydata()).isfinite().all()
