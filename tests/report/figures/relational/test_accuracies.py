from __future__ import annotations

from typing import Any

from separatrix.report.figures.relational.accuracies import (
    draw_accuracies,
    draw_holdouts,
    draw_unseen_curves,
)


def row(task: str, model: str, held: Any = "extreme", mean: float = 0.9) -> dict[str, Any]:
    ends = {"low": mean - 0.1, "high": float("inf"), "least": mean - 0.05, "greatest": mean}
    return {"task": task, "asked on": "unseen shapes", "model": model, "held out": held, "mean": mean, **ends}


def test_bars_stand_for_every_task_and_network_and_an_infinite_interval_has_no_bar() -> None:
    figure = draw_accuracies([row("a", "CoRelNet"), row("a", "ESBN"), row("b", "CoRelNet")])
    heights = sorted(round(patch.get_height()) for patch in figure.axes[0].patches)
    assert heights == [90, 90, 90]
    assert figure.axes[0].get_ylabel()


def test_curves_and_ranges_have_a_panel_for_each_task() -> None:
    rows = [row(task, "ESBN", held) for task in "ab" for held in (0, 50)]
    assert [axes.get_title() for axes in draw_holdouts(rows).axes] == ["a", "b"]
    curves = [{"task": t, "model": "ESBN", "holdout": -1, "steps": [0, 9], "values": [0.2, 0.8]} for t in "ab"]
    assert [axes.get_title() for axes in draw_unseen_curves(curves).axes] == ["a", "b"]


def test_an_axis_of_right_answers_ends_where_all_are_right() -> None:
    curve = {"task": "same_diff", "holdout": -1, "model": "CoRelNet", "steps": [1, 2, 3], "values": [1.0, 1.0, 1.0]}
    assert draw_unseen_curves([curve]).axes[0].get_ylim()[1] <= 101
