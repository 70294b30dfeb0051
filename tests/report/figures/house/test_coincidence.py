from __future__ import annotations

from typing import Any

import numpy
import pytest

from separatrix.report.figures.house.coincidence import reveal
from separatrix.report.figures.house.layout import legend_outside
from separatrix.report.figures.house.style import PALETTE, new_figure, single_axes, styled

X = numpy.linspace(0, 1, 40)


def test_of_two_lines_on_one_another_the_upper_is_dashed_in_the_legend_too() -> None:
    figure, axes = single_axes()
    (lower,) = axes.plot(X, X**2, color=PALETTE[0], label="lower")
    elsewhere = numpy.linspace(0, 1, 23)  # the same curve, computed at other places
    (upper,) = axes.plot(elsewhere, elsewhere**2 * (1 + 1e-4), color=PALETTE[1], label="upper")
    legend = legend_outside(figure)
    reveal(figure)
    assert (lower.get_linestyle(), upper.get_linestyle()) == ("-", "--")
    assert legend is not None
    assert [line.get_linestyle() for line in legend.get_lines()] == ["-", "--"]


@pytest.mark.parametrize(
    "above",
    [
        {"y": X**2 + 0.1},
        {"y": numpy.where(X < 0.6, X**2, 0.1)},  # less than half of the lower line lies below it
        {"y": X**2, "color": PALETTE[0]},  # another seed of the same network
        {"y": X**2, "linewidth": 0.5},
    ],
    ids=["apart", "for a part of the way", "of one colour", "thin"],
)
def test_a_line_that_hides_none_stays_solid(above: dict[str, Any]) -> None:
    figure, axes = single_axes()
    axes.plot(X, X**2, color=PALETTE[0])
    looks: dict[str, Any] = {"color": PALETTE[1], "linewidth": 1.5, **above}
    (upper,) = axes.plot(X, looks.pop("y"), **looks)
    reveal(figure)
    assert upper.get_linestyle() == "-"


def test_near_in_value_and_far_in_the_picture_is_apart() -> None:
    figure, axes = single_axes()
    axes.plot(X, -1.3 + 0.01 * X, color=PALETTE[0])
    (other,) = axes.plot(X, -1.3 - 0.01 * X, color=PALETTE[1])
    reveal(figure)
    assert other.get_linestyle() == "-"


def test_dashes_that_mean_something_are_left_alone() -> None:
    figure, axes = single_axes()
    axes.plot(X, X, color=PALETTE[0])
    (covering,) = axes.plot(X, X, color=PALETTE[1])
    axes.plot(X, 0.5 * X, "--", color=PALETTE[1])
    reveal(figure)
    assert covering.get_linestyle() == "-"


def test_thin_lines_beside_a_thick_one_and_other_panels_follow_the_colour() -> None:
    figure, grid = new_figure(1, 2)
    left, right = grid[0]
    left.plot(X, X, color=PALETTE[0], linewidth=2)
    (thick,) = left.plot(X, X, color=PALETTE[1], linewidth=2)
    (thin,) = left.plot(X, 0.3 * X, color=PALETTE[1], linewidth=0.5)
    (beside,) = right.plot(X, 0.3 * X, color=PALETTE[1], linewidth=2)
    reveal(figure)
    assert [line.get_linestyle() for line in (thick, thin, beside)] == ["--", "-", "--"]


def test_every_styled_drawing_is_revealed() -> None:
    @styled
    def draw() -> object:
        figure, axes = single_axes()
        axes.plot(X, X, color=PALETTE[0])
        axes.plot(X, X, color=PALETTE[1])
        return figure

    figure = draw()
    assert [line.get_linestyle() for line in figure.axes[0].get_lines()] == ["-", "--"]  # type: ignore[attr-defined]
