"""Panels one below the other on a narrow page: what they lose by it is given back to them."""

from __future__ import annotations

import textwrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .layout import legend_columns, legend_outside

_LETTERS, _LETTERS_BESIDE_NAMES = 38, 26
"""Longest line of a title or label on a narrow page, beside numbers and beside the names of rows."""
_LONG_NAME = 12
_TICKS, _LINE = 0.2, 0.16
"""Inches of the numbers below a panel and of a line of its label."""


def finish_stacked(figure: Figure) -> Figure:
    """What stacking takes from a figure, given back: the label that stood once beside a row and the title that stood
    once above a column; titles and labels that fit the page."""
    columns = getattr(figure, "n_columns", 1)
    _close_gaps(figure)
    panels = {
        place.rowspan.start: axes
        for axes in figure.axes
        if (place := axes.get_subplotspec()) is not None and axes.get_label() != "<colorbar>"
    }
    for index, axes in panels.items():
        beside = _beside_names(axes)
        above, first = panels.get(index % columns), panels.get(index - index % columns)
        title = above.get_title() if above is not None and columns > 1 and axes.axison else ""
        axes.set_title(_folded(axes.get_title() or title, beside))
        axes.set_xlabel(_folded(axes.get_xlabel(), beside))
        if axes.get_xlabel():  # a shared axis hides its numbers above the last panel, far away now
            axes.tick_params(axis="x", labelbottom=True)
        if first is not None and axes.axison and not axes.get_ylabel():
            axes.set_ylabel(first.get_ylabel())
    _legend_below(figure)
    return figure


def _beside_names(axes: Axes) -> bool:
    return any(len(tick.get_text()) > _LONG_NAME for tick in axes.get_yticklabels())


def _legend_below(figure: Figure) -> None:
    """A legend inside a panel covers what is drawn there, now that the panel is small: below the figure if it is the
    only one, else each below its own panel."""
    inside = [axes for axes in figure.axes if axes.get_legend() is not None]
    for axes in inside:
        legend = axes.get_legend()
        assert legend is not None
        handles, labels = list(legend.legend_handles), [text.get_text() for text in legend.get_texts()]
        title = legend.get_title().get_text()
        legend.remove()
        known = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        handles = [known.get(label, handle) for label, handle in zip(labels, handles, strict=True)]
        looks: dict[str, Any] = {"frameon": False, "fontsize": 8, "labelcolor": axes.xaxis.label.get_color()}
        looks |= {"title": title} if title else {}
        if len(inside) == 1 and not figure.legends:
            legend_outside(figure, handles, labels, at="lower", **looks)
        else:
            _legend_below_panel(figure, axes, handles, labels, looks)


def _legend_below_panel(
    figure: Figure, axes: Axes, handles: list[Any], labels: list[str], looks: dict[str, Any]
) -> None:
    lines = 1 + axes.get_xlabel().count("\n") if axes.get_xlabel() else 0
    height = axes.get_position().height * figure.get_figheight()
    below = -(_TICKS + _LINE * lines) / height
    wide = 0.5 if _beside_names(axes) else 1.0  # of the page
    columns = legend_columns(wide * figure.get_figwidth(), labels)
    axes.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, below), ncols=columns, **looks)


def _close_gaps(figure: Figure) -> None:
    """Panels that stayed empty so that a grid is full take no room below each other."""
    empty = [axes for axes in figure.axes if not (axes.get_visible() and (axes.axison or _filled(axes)))]
    places = [place for axes in empty if (place := axes.get_subplotspec()) is not None]
    grid = places[0].get_gridspec() if places else None
    if grid is None or grid.ncols > 1 or len(places) >= grid.nrows:
        return
    gone = {place.rowspan.start for place in places}
    grid.set_height_ratios([1e-3 if row in gone else 1.0 for row in range(grid.nrows)])
    figure.set_figheight(figure.get_figheight() * (1 - len(gone) / grid.nrows))
    for axes in empty:
        figure.delaxes(axes)


def _filled(axes: Axes) -> bool:
    return bool(axes.has_data() or axes.texts or axes.get_legend())


def _folded(words: str, beside: bool) -> str:
    if "$" in words:  # a formula is not cut
        return words
    return "\n".join(textwrap.fill(line, _LETTERS_BESIDE_NAMES if beside else _LETTERS) for line in words.split("\n"))
