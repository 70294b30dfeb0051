from __future__ import annotations

import pytest

from separatrix.report.figures.house.layout import narrow
from separatrix.report.figures.house.stacking import finish_stacked
from separatrix.report.figures.house.style import new_figure


def test_a_stacked_figure_gets_its_labels_titles_and_room_back() -> None:
    with narrow():
        figure, grid = new_figure(2, 2, sharey="row")
    for axes, title in zip(grid[0], ("left", "a title that is too long for one line of a narrow page"), strict=True):
        axes.plot([0, 1], [0, 1])
        axes.set_title(title)
    grid[1, 0].plot([0, 1], [0, 1])
    grid[1, 1].set_visible(False)
    for row, label in zip(grid, ("top", "bottom"), strict=True):
        row[0].set_ylabel(label)
    height = figure.get_figheight()
    finish_stacked(figure)
    assert [axes.get_ylabel() for axes in figure.axes] == ["top", "top", "bottom"]
    assert figure.axes[2].get_title() == "left"
    assert figure.axes[1].get_title().count("\n") == 1
    assert figure.get_figheight() == pytest.approx(0.75 * height)


def test_rows_keep_a_shared_scale_and_legends_stand_below_their_panels() -> None:
    with narrow():
        figure, grid = new_figure(1, 2, sharey="row", stacked=(4.0, 2.0))
        for axes, top in zip(grid[0], (1.0, 5.0), strict=True):
            axes.plot([0, 1], [0, top], label="curve")
            axes.set_xlabel("step")
            axes.legend()
    assert figure.get_figheight() == pytest.approx(6.0)
    assert grid[0, 0].get_ylim() == grid[0, 1].get_ylim()
    finish_stacked(figure)
    figure.canvas.draw()
    for axes in grid[0]:
        legend = axes.get_legend()
        assert legend.get_window_extent().y1 < axes.get_window_extent().y0
