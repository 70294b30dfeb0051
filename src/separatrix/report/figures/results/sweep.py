"""The heat map of a sweep over two parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.figure import Figure

from ..house.style import SEQUENTIAL, single_axes


def draw_sweep(rows: Sequence[Mapping[str, Any]], x: str, y: str, quantity: str) -> Figure:
    """One coloured square for each pair of values, with its number; pairs that were not computed stay empty.

    Args:
        rows: points of a sweep with their quantities.
        x: parameter along the horizontal axis.
        y: parameter along the vertical axis.
        quantity: which number to show.
    """
    across, up = _values(rows, x), _values(rows, y)
    table = numpy.full((len(up), len(across)), numpy.nan)
    for row in rows:
        if row.get(quantity) is not None:
            table[up.index(row[y]), across.index(row[x])] = row[quantity]
    figure, ax = single_axes()
    image = ax.pcolormesh(numpy.arange(len(across) + 1), numpy.arange(len(up) + 1), table, cmap=SEQUENTIAL)
    ax.set_xticks(numpy.arange(len(across)) + 0.5, [_name(value) for value in across])
    ax.set_yticks(numpy.arange(len(up)) + 0.5, [_name(value) for value in up])
    ax.set(xlabel=x, ylabel=y, title=f"{quantity} over {x} and {y}")
    ax.grid(False)
    figure.colorbar(image, ax=ax, label=quantity)
    if table.size <= 100:
        _write_numbers(ax, table)
    return figure


def _values(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    found = list({repr(row[name]): row[name] for row in rows}.values())
    return sorted(found) if all(isinstance(value, int | float) for value in found) else found


def _name(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _write_numbers(ax: Any, table: numpy.ndarray) -> None:
    middle = (numpy.nanmin(table) + numpy.nanmax(table)) / 2
    for (row, column), value in numpy.ndenumerate(table):
        if numpy.isfinite(value):
            colour = "white" if value < middle else "black"
            ax.text(column + 0.5, row + 0.5, f"{value:.3g}", ha="center", va="center", color=colour, fontsize="small")
