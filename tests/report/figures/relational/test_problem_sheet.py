from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
from matplotlib.patches import Rectangle

from separatrix import report
from separatrix.report.figures.relational.problem_sheet import draw_problem_sheet


def part(n_shown: int, **more: Any) -> dict[str, Any]:
    return {"images": numpy.zeros((2, n_shown, 3, 4, 4)), "labels": [0, 1], "patterns": ["same", "different"], **more}


@pytest.mark.parametrize("n_shown", [1, 3, 20])
def test_a_sheet_shows_every_problem_with_its_answer(n_shown: int) -> None:
    figure = draw_problem_sheet({"training": part(n_shown), "test": part(n_shown)}, "task")
    assert [axes.get_title(loc="left") for axes in figure.axes].count("answer 1: different") == 2
    assert len(figure.axes) == 4


def test_groups_stand_apart_and_what_the_answer_points_to_has_a_frame() -> None:
    given = part(3, groups=(2, 1), marked=[range(2, 3), range(2)])
    axes = draw_problem_sheet({"training": given}, "task").axes
    assert axes[0].images[0].get_array().shape == (4, 3 * 4 + 1 + 14, 3)  # type: ignore[union-attr]
    frames = [next(p for p in one.patches if isinstance(p, Rectangle)) for one in axes]
    assert [(frame.get_x(), frame.get_width()) for frame in frames] == [(22.5, 4), (-0.5, 9)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", [2, 6])
def test_headings_of_boards_keep_out_of_the_title(n: int, tmp_path: Path) -> None:
    boards = {
        "images": numpy.zeros((n, 1, 3, 36, 36)),
        "labels": [0] * n,
        "patterns": ["a pattern that needs two lines of words"] * n,
    }
    figure = draw_problem_sheet(
        {"training: pentominoes": boards, "test: hexominoes": boards}, "game_between: 9 pictures"
    )
    report.save(figure, tmp_path / "sheet.png")
    figure.draw_without_rendering()
    heading = next(text for text in figure.axes[0].texts if text.get_text() == "training: pentominoes")
    title = figure._suptitle.get_window_extent()  # type: ignore[attr-defined]
    assert heading.get_window_extent().y1 <= title.y0 + 1
    assert heading.get_window_extent().y0 >= figure.axes[0].get_window_extent().y1 + 12
