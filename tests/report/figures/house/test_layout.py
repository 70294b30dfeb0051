from __future__ import annotations

import io
import math
from typing import Any

import numpy
import pytest
from matplotlib.figure import Figure

from separatrix.core import InvalidInput
from separatrix.report.figures.house.layout import (
    HouseFigure,
    caption_of,
    captioned,
    legend_outside,
    mark,
    narrow,
    plain_log_ticks,
    smooth,
    within,
)
from separatrix.report.figures.house.style import new_figure, single_axes, theme


def test_intervals_end_at_what_a_share_can_be_and_unknown_ends_have_no_bar() -> None:
    bars = within([0.05, 0.95, 0.5], [-0.2, 0.8, -math.inf], [0.2, 1.3, math.inf])
    assert numpy.allclose(bars, [[0.05, 0.15, 0.0], [0.15, 0.05, 0.0]])


def test_panels_stand_side_by_side_or_one_below_the_other() -> None:
    wide, grid = new_figure(2, 3, width=9, height=4, width_ratios=(1, 2, 1))
    with narrow():
        tall, stacked = new_figure(2, 3, width=9, height=4, width_ratios=(1, 2, 1))
    assert grid.shape == stacked.shape == (2, 3)
    assert wide.get_figwidth() == 9 > tall.get_figwidth()
    assert len({axes.get_subplotspec().colspan.start for axes in stacked.flat}) == 1
    assert tall.get_figheight() > wide.get_figheight()


def test_a_legend_has_as_many_columns_as_fit_and_each_name_once() -> None:
    figure, grid = new_figure(1, 2, width=4)
    for axes in grid.flat:
        for name in ("a network with a long name", "another network with a long name", "a third one, as long as these"):
            axes.plot([0, 1], [0, 1], label=name)
    legend = legend_outside(figure)
    assert legend is not None
    assert len(legend.get_texts()) == 3
    assert legend._ncols == 1
    assert legend_outside(new_figure()[0]) is None


@pytest.mark.parametrize("log", [False, True])
def test_a_smooth_curve_goes_through_the_exact_values(log: bool) -> None:
    x = numpy.geomspace(0.01, 10, 9)
    dense, curve = smooth(x, x**3, log=log, n=4001)
    found = numpy.interp(x, dense, curve)
    assert numpy.allclose(found, x**3, rtol=2e-2, atol=1e-3)


def test_a_curve_of_one_point_is_marked() -> None:
    assert mark([3.0]) == "o"
    assert mark([1.0, 2.0, 3.0]) == ""


def test_a_short_logarithmic_axis_has_plain_numbers() -> None:
    figure, axes = single_axes()
    axes.plot([50, 200], [1, 2])
    axes.set_xscale("log")
    plain_log_ticks(axes.xaxis)
    figure.canvas.draw()
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert "100" in shown


def test_a_caption_is_one_line_of_words() -> None:
    figure, _ = single_axes()
    assert caption_of(figure) == ""
    assert caption_of(captioned(figure, "What is\n        shown.")) == "What is shown."


def test_a_notebook_shows_a_figure_and_axes_as_a_picture_of_the_same_width() -> None:
    figure, ax = single_axes(width=3, height=2)
    ax.plot([0, 1])
    for thing in (figure, ax):
        picture, told = thing._repr_png_()
        assert picture.startswith(b"\x89PNG")
        assert told == {"width": 288}
    ax.remove()
    with pytest.raises(InvalidInput, match="removed from their figure"):
        ax._repr_png_()


def test_a_projection_keeps_its_own_axes() -> None:
    _, axes = new_figure(1, 1, subplot_kw={"projection": "polar"})
    assert axes[0, 0].name == "polar"


def counted_line(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[int]]:
    """A figure, and how often its line was drawn, in a file or nowhere."""
    figure, axes = single_axes()
    (line,) = axes.plot([0, 1], [0, 1], label="a")
    draw, drawn = line.draw, []
    monkeypatch.setattr(line, "draw", lambda renderer: drawn.append(1) or draw(renderer))
    return figure, drawn


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_figure_that_is_saved_is_drawn_once_and_looks_as_matplotlib_would_save_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    written = []
    for save in (HouseFigure.savefig, Figure.savefig):
        figure, drawn = counted_line(monkeypatch)
        stream = io.BytesIO()
        with theme("light"):
            save(figure, stream, format=kind, metadata=date)
        written.append((stream.getvalue(), len(drawn)))
    (ours, once), (theirs, twice) = written
    assert ours == theirs
    assert (once, twice) == (1, 2)


def test_a_figure_that_is_cut_to_size_is_drawn_before_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    figure, drawn = counted_line(monkeypatch)
    figure.savefig(io.BytesIO(), format="png", bbox_inches="tight")
    assert len(drawn) == 2
    figure.savefig(io.BytesIO(), format="png")
    assert len(drawn) == 3
