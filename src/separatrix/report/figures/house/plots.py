"""``plot(result)``: one call that draws any result object, by functions that stand beside this sub-room.

Results do not draw themselves, so that computing needs no plotting library. A drawing function is registered for the
name of a result's class; the class itself is never imported here.
"""

from __future__ import annotations

import functools
import html
import importlib
import itertools
import pkgutil
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from matplotlib.axes import Axes

from separatrix.core.errors import InvalidInput

from .coincidence import reveal
from .style import current_theme, single_axes, theme, to_notebook_svg, to_svg

Drawing: TypeAlias = Callable[[Any, Axes], None]
Function = TypeVar("Function", bound=Callable[..., None])

_DRAWINGS: dict[str, Drawing] = {}


def plots(*class_names: str) -> Callable[[Function], Function]:
    """Register ``draw(result, ax)`` for results of the named classes.

    Example:
        >>> @plots("MemoryCurve")
        ... def draw_memory_curve(result, ax):
        ...     ax.plot(result.delays, result.memory)
    """

    def register(function: Function) -> Function:
        for name in class_names:
            if name in _DRAWINGS:
                raise InvalidInput(f"{name} already has the drawing {_DRAWINGS[name].__qualname__}.")
            _DRAWINGS[name] = function
        return function

    return register


def plot(result: Any, ax: Axes | None = None) -> Axes:
    """Draw a result object.

    Args:
        result: what a function of this package returned.
        ax: where to draw; new axes in the house style when it is not given.

    Returns:
        The axes; ``separatrix.report.save(ax.figure, "figure.pdf")`` writes them.

    Raises:
        InvalidInput: no drawing is known for this type of result.
    """
    drawing = _drawing_for(type(result))
    with theme(current_theme()):
        if ax is not None:
            drawing(result, ax)  # somebody's own axes: lines that stand there already are not ours to dash
            return ax
        figure, ax = single_axes()
        drawing(result, ax)
        reveal(figure)
    return ax


def small_svg(result: Any) -> str:
    """A result as a small ``<svg>`` element, as a notebook shows it; empty if there is no drawing for it.

    A drawing that fails must not hide the numbers beside it: a line says what went wrong in its place.
    """
    if not any(ancestor.__name__ in drawable() for ancestor in type(result).__mro__):
        return ""
    try:
        with theme(current_theme()):
            figure, ax = single_axes(width=4.2, height=2.8)
            _drawing_for(type(result))(result, ax)
            reveal(figure)
        drawn = to_svg if current_theme() == "dark" else to_notebook_svg
        return drawn(figure, f"small{next(_numbers)}")
    except Exception as error:
        return f"<p>The picture could not be drawn: {html.escape(f'{type(error).__name__}: {error}')}</p>"


_numbers = itertools.count()
"""Ids of small pictures, apart in one notebook."""


def drawable() -> list[str]:
    """Names of the classes that ``plot`` can draw."""
    _import_drawings()
    return sorted(_DRAWINGS)


def _drawing_for(kind: type) -> Drawing:
    known = drawable()
    for ancestor in kind.__mro__:
        if ancestor.__name__ in _DRAWINGS:
            return _DRAWINGS[ancestor.__name__]
    listing = f"Known: {', '.join(known)}." if known else "No drawing is registered."
    raise InvalidInput(f"plot has no drawing for a {kind.__name__}. {listing}")


@functools.cache
def _import_drawings() -> None:
    """Import every module of the figures once, so that their registrations are in place."""
    figures = __package__.rpartition(".")[0]
    for info in pkgutil.walk_packages(importlib.import_module(figures).__path__, f"{figures}."):
        importlib.import_module(info.name)
