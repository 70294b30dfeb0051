"""What can be seen by a program in a figure that a reader would stumble over: captions, labels, colours, lost marks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from .layout import caption_of
from .models import SHADES
from .style import faint, ink, paper

_WORDS_OF_A_KEY = re.compile(r"^[a-z0-9_-]+$")


def lint_figure(figure: Figure, *, rendered: bool = False) -> list[str]:
    """What is wrong with a figure, each in a sentence; an empty list if nothing was found.

    Args:
        figure: to look at.
        rendered: whether to draw it and look for text that covers other text or leaves the figure, too.

    Cost: reading the artists; with ``rendered`` one drawing, about a tenth of a second.
    """
    found = [*_caption(figure), *_labels(figure), *_colours(figure), *_lost_marks(figure)]
    found += [*_alike(figure), *_one_place(figure)]
    return found + (list(_overlaps(figure)) if rendered else [])


def _caption(figure: Figure) -> Iterator[str]:
    caption = caption_of(figure)
    if not caption or _WORDS_OF_A_KEY.match(caption):
        yield "it has no caption"
    elif not (caption[0].isupper() and caption.endswith(".")):
        yield f"its caption is no sentence: {caption[:60]!r}"


def _shown(figure: Figure) -> list[Axes]:
    """Axes with a frame, colour bars left out."""
    return [axes for axes in figure.axes if axes.get_visible() and axes.axison and axes.get_label() != "<colorbar>"]


def _labels(figure: Figure) -> Iterator[str]:
    shown = _shown(figure)
    for axes in shown:
        if not axes.get_xlabel() and not _named_ticks(axes, "x") and not _shared_label(axes, shown, "x"):
            yield f"the horizontal axis of the panel {axes.get_title()!r} has no label"
        if not axes.get_ylabel() and not _named_ticks(axes, "y") and not _shared_label(axes, shown, "y"):
            yield f"the vertical axis of the panel {axes.get_title()!r} has no label"


def _named_ticks(axes: Axes, which: str) -> bool:
    """Whether the ticks carry words, or there are none, as on a picture."""
    ticks = axes.get_xticklabels() if which == "x" else axes.get_yticklabels()
    words = [tick.get_text() for tick in ticks if tick.get_text()]
    if not len(axes.get_xticks() if which == "x" else axes.get_yticks()):
        return True
    return any(re.search(r"[A-Za-zα-ω]{2}", word.replace("mathdefault", "")) for word in words)


def _shared_label(axes: Axes, shown: list[Axes], which: str) -> bool:
    """Whether a panel of the same row (for the vertical axis) or column carries the label for all."""
    spec = axes.get_subplotspec()
    for other in shown:
        place = other.get_subplotspec()
        label = other.get_xlabel() if which == "x" else other.get_ylabel()
        if spec is None or place is None or not label:
            continue
        if (place.rowspan == spec.rowspan) if which == "y" else (place.colspan == spec.colspan):
            return True
    return False


def _colours(figure: Figure) -> Iterator[str]:
    known = {to_hex(colour) for colour in (*SHADES.values(), ink(), faint(), paper(), "black", "white", "grey")}
    for axes in _shown(figure):
        for line in axes.get_lines():
            bare = line.get_linestyle() == "None"
            colour = to_hex(line.get_markeredgecolor() if bare else line.get_color())
            if colour not in known:
                yield f"the line {line.get_label()!r} has the colour {colour}, which is not of the palette"


def _lost_marks(figure: Figure) -> Iterator[str]:
    for axes in _shown(figure):
        (left, right), (low, high) = (_with_rim(limits) for limits in (axes.get_xlim(), axes.get_ylim()))
        for line in axes.get_lines():
            if line.get_marker() in (None, "None", "", " ") or line.get_transform() != axes.transData:
                continue
            if not line.get_clip_on():
                continue
            x, y = (numpy.asarray(values, dtype=float) for values in (line.get_xdata(), line.get_ydata()))
            outside = numpy.isfinite(x) & numpy.isfinite(y) & ~((left <= x) & (x <= right) & (low <= y) & (y <= high))
            if outside.any():
                yield f"{int(outside.sum())} marks of {line.get_label()!r} lie outside the axes"


def _one_place(figure: Figure) -> Iterator[str]:
    """Curves of one point on an axis with numbers that nobody measured."""
    for axes in _shown(figure):
        lines = [line for line in axes.get_lines() if line.get_transform() == axes.transData]
        values = [numpy.asarray(line.get_xdata()).ravel() for line in lines]
        places = numpy.unique(numpy.concatenate(values)) if values else numpy.array([])
        low, high = sorted(axes.get_xlim())
        n_ticks = sum(low <= tick <= high for tick in axes.get_xticks())
        lying = axes.containers and _named_ticks(axes, "y")  # bars that lie: the scale is theirs
        if len(places) == 1 and n_ticks > 1 and not _named_ticks(axes, "x") and not lying:
            yield f"the panel {axes.get_title()!r} has a scale and one place on it"


def _with_rim(limits: tuple[float, float]) -> tuple[float, float]:
    """Limits with a rim for rounding: a mark on the edge is seen."""
    low, high = sorted(limits)
    return low - 1e-9 * (high - low), high + 1e-9 * (high - low)


def _alike(figure: Figure) -> Iterator[str]:
    """Two names of a legend that look the same."""
    for axes in _shown(figure):
        looks: dict[tuple[str, ...], str] = {}
        for line in axes.get_lines():
            name = str(line.get_label())
            if name.startswith("_"):
                continue
            look = _look(line)
            if look in looks and looks[look] != name:
                yield f"{name!r} and {looks[look]!r} are drawn alike"
            looks[look] = name


def _look(line: Line2D) -> tuple[str, ...]:
    face = str(line.get_markerfacecolor())
    dashes = str(
        getattr(line, "_unscaled_dash_pattern", line.get_linestyle())
    )  # matplotlib tells only that it is dashed
    return to_hex(line.get_color()), dashes, str(line.get_marker()), face, str(line.get_linestyle())


def _overlaps(figure: Figure) -> Iterator[str]:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    page = figure.bbox
    texts = [text for text in _texts(figure) if text.get_text().strip() and text.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    for words, box in boxes:
        if box.x0 < page.x0 - 2 or box.x1 > page.x1 + 2 or box.y0 < page.y0 - 2 or box.y1 > page.y1 + 2:
            yield f"the text {words!r} leaves the figure"
    for (first, one), (second, other) in itertools.combinations(boxes, 2):
        if _covered(one, other) > 0.15:
            yield f"the texts {first!r} and {second!r} cover each other"


def _texts(figure: Figure) -> Iterator[Text]:
    for axes in _shown(figure):
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            reach = 1e-9 * (high - low)
            ticks = [
                *zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False),
                *zip(axis.get_minorticklocs(), axis.get_minorticklabels(), strict=False),
            ]
            yield from (label for place, label in ticks if low - reach <= place <= high + reach)
        yield from (axes.xaxis.label, axes.yaxis.label, axes.title)
        yield from axes.texts
        legend = axes.get_legend()
        if legend is not None:
            yield from legend.get_texts()
    for outside in figure.legends:
        yield from outside.get_texts()


def _covered(one: Bbox, other: Bbox) -> float:
    """The part of the smaller box that the other covers."""
    shared = Bbox.intersection(one, other)
    smaller = min(one.width * one.height, other.width * other.height)
    return 0.0 if shared is None or not smaller else shared.width * shared.height / smaller
