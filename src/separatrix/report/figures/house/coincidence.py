"""Lines that lie on one another: the upper one is dashed, so that both are seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

_HIDDEN = 0.6
"""A line is hidden if this part of it lies under lines of another colour."""
_DASHES = ((5, 4), (2, 3), (7, 2, 1, 2), (1, 3))
_AS_THICK = 0.7
_MOST_PIXELS = 20_000

_Pixels: TypeAlias = set[tuple[int, int]]


def reveal(figure: Figure) -> Figure:
    """Dash every solid line that hides one of another colour, in all panels and legends alike.

    What counts is the picture, not the numbers: two curves may have been computed at different places, or part by less
    than a line is wide. Lines of one colour belong together (the seeds of a network) and are dashed together, thin ones
    beside thick ones left as they are. A colour whose dashed lines mean something of their own stays untouched, and a
    line much thinner than the one below hides nothing.

    Cost: in proportion to the length of all lines in pixels.
    """
    under: dict[str, set[str]] = {}
    thick: dict[str, float] = {}
    for axes in figure.axes:
        if axes.name != "rectilinear" or not axes.axison:
            continue
        drawn: dict[str, _Pixels] = {}
        for colour, line in _solid(axes):
            drawn.setdefault(colour, set()).update(_pixels(axes, line))
            thick[colour] = max(thick.get(colour, 0.0), line.get_linewidth())
        order = list(drawn)  # as they were drawn: the later lie above
        for place, lower in enumerate(order):
            for upper in order[place + 1 :]:
                wide = thick[upper] >= _AS_THICK * thick[lower]
                if wide and _covered(drawn[lower], drawn[upper]) >= _HIDDEN:
                    under.setdefault(upper, set()).add(lower)
    for colour, below in under.items():
        lines = [line for line in _all_lines(figure) if to_hex(line.get_color()) == colour]
        if all(line.get_linestyle() in ("-", "None") for line in lines):
            _dash(lines, _AS_THICK * thick[colour], _DASHES[min(len(below), len(_DASHES)) - 1])
    return figure


def _solid(axes: Axes) -> Iterator[tuple[str, Line2D]]:
    for line in axes.get_lines():
        curve = numpy.asarray(line.get_xdata()).size > 2
        if line.get_linestyle() == "-" and line.get_transform() == axes.transData and curve:
            yield to_hex(line.get_color()), line


def _pixels(axes: Axes, line: Line2D) -> _Pixels:
    """Pixels of a line inside its panel, about one for each step of a pixel along it."""
    axes.get_xlim(), axes.get_ylim()  # limits follow the data only when somebody asks
    with numpy.errstate(all="ignore"):
        points = axes.transData.transform(numpy.asarray(line.get_xydata(), dtype=float))
    points = points[numpy.isfinite(points).all(axis=1)]
    if len(points) < 2:
        return set()
    box = axes.bbox
    points = numpy.clip(points, [box.x0 - 50, box.y0 - 50], [box.x1 + 50, box.y1 + 50])
    along = numpy.concatenate([[0.0], numpy.cumsum(numpy.hypot(*numpy.diff(points, axis=0).T))])
    places = numpy.linspace(0.0, along[-1], min(_MOST_PIXELS, 2 + int(along[-1])))
    x, y = (numpy.interp(places, along, points[:, axis]) for axis in (0, 1))
    inside = (box.x0 - 1 <= x) & (x <= box.x1 + 1) & (box.y0 - 1 <= y) & (y <= box.y1 + 1)
    cells = numpy.stack([x[inside], y[inside]], axis=1).round().astype(int)
    return {(int(i), int(j)) for i, j in numpy.unique(cells, axis=0)}


def _covered(lower: _Pixels, upper: _Pixels) -> float:
    """The part of the lower line that the upper one hides, which is a pixel wider to either side."""
    if not lower or not upper:
        return 0.0
    wide = {(i + di, j + dj) for i, j in upper for di in (-1, 0, 1) for dj in (-1, 0, 1)}
    return len(lower & wide) / len(lower)


def _all_lines(figure: Figure) -> list[Any]:
    """Lines of panels and legends."""
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    shown = [line for legend in legends if legend is not None for line in legend.get_lines()]
    return [line for axes in figure.axes for line in axes.get_lines()] + shown


def _dash(lines: list[Any], thick: float, dashes: tuple[int, ...]) -> None:
    for line in lines:
        if line.get_linestyle() == "-" and line.get_linewidth() >= thick:
            line.set_linestyle((0, dashes))
            line.set_dash_capstyle("butt")
