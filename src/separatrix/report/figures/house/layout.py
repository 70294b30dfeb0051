"""How a figure is laid out: its caption, panels that stack on a narrow page, legends that fit, bounded intervals."""

from __future__ import annotations

import contextlib
import contextvars
import io
import math
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, TypeAlias

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose

_Values: TypeAlias = Sequence[Any] | numpy.ndarray
"""What a curve is given as."""

NARROW_WIDTH = 4.2
"""Inches: a figure this wide is read on a telephone without zooming."""

_narrow: contextvars.ContextVar[bool] = contextvars.ContextVar("narrow", default=False)
_INCHES_A_LETTER = 0.066
_INCHES_A_HANDLE = 0.55
_NOTEBOOK_DPI = 144


class HouseFigure(Figure):
    """A figure that says what it shows. ``caption`` is one or two sentences: what is drawn and what to look at."""

    caption: str = ""
    n_columns: int = 1
    """How many panels stand side by side when there is room."""
    _rehearsed: bool = False

    def savefig(self, fname: Any, **options: Any) -> None:
        """As matplotlib's; of the drawing that only settles the layout, only the layout is made."""
        around = options.get("bbox_inches", matplotlib.rcParams["savefig.bbox"])  # to cut to size, it must be drawn
        self._rehearsed = around is None and self.get_layout_engine() is not None
        try:
            super().savefig(fname, **options)
        finally:
            self._rehearsed = False

    def draw(self, renderer: Any) -> None:
        """Draw everything; when saved, matplotlib first calls this with a renderer that draws nothing."""
        engine = self.get_layout_engine()
        if not self._rehearsed or engine is None:
            super().draw(renderer)
            return
        self._rehearsed = False
        if self.axes:
            engine.execute(self)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """What a notebook shows; without it a figure that pyplot does not know would be a line of text."""
        return _picture(self)


class HouseAxes(Axes):
    """Axes that a notebook shows as their figure: the last line of a cell may be ``separatrix.plot(result)``."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        figure = self.get_figure(root=True)
        if figure is None:
            raise InvalidInput("these axes were removed from their figure; there is nothing to show.")
        return _picture(figure)


def _picture(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """A picture in pixels for screens of either density, and how wide it is to be shown."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_NOTEBOOK_DPI)
    return stream.getvalue(), {"width": round(96 * figure.get_figwidth())}


def captioned(figure: Figure, caption: str) -> Figure:
    """The same figure with a caption."""
    figure.caption = " ".join(caption.split())  # type: ignore[attr-defined]  # a plain Figure of a user's takes it too
    return figure


def caption_of(figure: Figure) -> str:
    """The caption of a figure; empty if it has none."""
    return str(getattr(figure, "caption", ""))


@contextlib.contextmanager
def narrow() -> Iterator[None]:
    """Draw everything inside for a narrow page: panels one below the other, legends of few columns."""
    token = _narrow.set(True)
    try:
        yield
    finally:
        _narrow.reset(token)


def is_narrow() -> bool:
    """Whether figures are being drawn for a narrow page."""
    return _narrow.get()


def arrange(
    n_rows: int, n_cols: int, width: float | int, height: float | int
) -> tuple[int, int, float | int, float | int]:
    """Rows, columns and inches of a figure on the page it is drawn for."""
    if not is_narrow():
        return n_rows, n_cols, width, height
    if n_cols == 1:
        return n_rows, 1, min(width, NARROW_WIDTH), height
    panel = min(3.1, max(2.3, height / n_rows))
    return n_rows * n_cols, 1, NARROW_WIDTH, panel * n_rows * n_cols


def legend_outside(
    figure: Figure,
    handles: Sequence[Any] | None = None,
    labels: Sequence[str] | None = None,
    *,
    at: str = "upper",
    **options: Any,
) -> Legend | None:
    """A legend above (``"upper"``), below (``"lower"``) or beside (``"right"``) the panels, in as many columns as fit.

    Without handles those of all panels are taken, each name once. Nothing is drawn if there is none.
    """
    choose("at", at, ("upper", "lower", "right"))
    if handles is None:
        found: dict[str, Any] = {}
        for axes in figure.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                found.setdefault(label, handle)
        handles, labels = list(found.values()), list(found)
    if labels is None:
        labels = [str(handle.get_label()) for handle in handles]
    if not labels:
        return None
    if at == "right" and not is_narrow():
        return figure.legend(handles, labels, loc="outside right upper", **options)
    columns = legend_columns(figure.get_figwidth(), labels)
    if at == "upper":
        return figure.legend(handles, labels, loc="outside upper center", ncols=columns, **options)
    return figure.legend(handles, labels, loc="outside lower center", ncols=columns, **options)


def legend_columns(width: float, labels: Sequence[str]) -> int:
    """How many columns of a legend with these labels stand side by side in so many inches."""
    widest = _INCHES_A_HANDLE + _INCHES_A_LETTER * max(len(label) for label in labels)
    return max(1, min(len(labels), math.floor(width / widest)))


def within(means: _Values, low: _Values, high: _Values, bounds: tuple[float, float] = (0.0, 1.0)) -> numpy.ndarray:
    """Lengths of error bars (2, n) from means to ends, cut at what the quantity can be; unknown ends have none."""
    middle = numpy.asarray(means, dtype=float)
    ends = numpy.stack([numpy.asarray(low, dtype=float), numpy.asarray(high, dtype=float)])
    ends = numpy.where(numpy.isfinite(ends), numpy.clip(ends, *bounds), middle)
    return numpy.maximum(numpy.stack([middle - ends[0], ends[1] - middle]), 0.0)


def mark(values: Sized, marker: str = "o") -> str:
    """The marker of a curve: a curve of one or two points is seen only by its marks."""
    return marker if len(values) <= 2 else ""


def one_place(axes: Axes, places: Iterable[Any]) -> bool:
    """Whether everything was measured at one place; then the axis has a tick there, and no scale nobody measured."""
    distinct = {float(place) for place in places}
    if len(distinct) != 1:
        return False
    place = distinct.pop()
    axes.set_xscale("linear")
    axes.set_xlim(place - 1, place + 1)
    axes.set_xticks([place], [f"{place:g}"], minor=False)
    return True


def smooth(x: _Values, y: _Values, *, log: bool = False, n: int = 200) -> tuple[numpy.ndarray, numpy.ndarray]:
    """A dense monotone curve through exact values, for theory that was evaluated at the places of measurements.

    Args:
        x: increasing places.
        y: exact values; where one is not finite the curve ends.
        log: whether both are positive and the curve is drawn on logarithmic axes.
        n: points of the curve.
    """
    from scipy.interpolate import PchipInterpolator

    across, up = numpy.asarray(x, dtype=float), numpy.asarray(y, dtype=float)
    known = numpy.isfinite(up)
    if known.sum() < 3:
        return across, up
    across, up = across[known], up[known]
    if log:
        dense = numpy.geomspace(across[0], across[-1], n)
        return dense, numpy.exp(PchipInterpolator(numpy.log(across), numpy.log(up))(numpy.log(dense)))
    dense = numpy.linspace(across[0], across[-1], n)
    return dense, PchipInterpolator(across, up)(dense)


def plain_log_ticks(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis of less than two decades, where powers of ten are too few."""
    low, high = sorted(axis.get_view_interval())
    if not 0 < low < high < 100 * low:
        return
    subs = (1.0, 2.0, 5.0) if high > 4 * low else tuple(float(k) for k in range(1, 10))
    axis.set_major_locator(LogLocator(base=10, subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
