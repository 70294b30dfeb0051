"""Figures of linear networks: curves over time, heat maps of Gram matrices, maps over the balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..house.layout import captioned, legend_outside, plain_log_ticks
from ..house.style import DIVERGING, PALETTE, ink, new_figure, single_axes, styled

Curve = Mapping[str, Sequence[float]]
"""Keys ``x`` and ``y``, and optionally ``dots_x`` and ``dots_y`` (the simulation) and ``low``, ``high`` (a band)."""


@styled
def curves(
    series: Mapping[str, Curve],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    x_log: bool = False,
    y_log: bool = False,
    dots_label: str = "simulation",
    caption: str = "",
) -> Figure:
    """Named curves in one frame: lines for the theory, dots for the simulation."""
    figure, axes = single_axes(width=6.0, height=3.8)
    _draw_curves(axes, series, dots_label)
    _frame(axes, x_label, y_label, title, x_log, y_log)
    axes.legend(loc="best")
    return captioned(figure, caption)


@styled
def curve_panels(
    panels: Mapping[str, Mapping[str, Curve]],
    *,
    x_label: str,
    y_label: str,
    x_log: bool = False,
    y_log: bool = False,
    dots_label: str = "simulation",
    share_y: bool = False,
    caption: str = "",
) -> Figure:
    """Several frames of named curves side by side, with one legend."""
    count = len(panels)
    figure, axes = new_figure(1, count, width=3.1 * count + 0.6, height=3.3, sharey=share_y)
    for index, (title, series) in enumerate(panels.items()):
        _draw_curves(axes[0, index], series, dots_label)
        _frame(axes[0, index], x_label, y_label if index == 0 else "", title, x_log, y_log)
    legend_outside(figure, at="lower")
    return captioned(figure, caption)


@styled
def heat_maps(
    matrices: Mapping[str, Any],
    *,
    limit: float | None = None,
    label: str = "",
    columns: int = 4,
    split: int | None = None,
    caption: str = "",
) -> Figure:
    """Matrices as images with one symmetric colour scale; ``split`` draws the border between inputs and outputs."""
    arrays = {name: numpy.asarray(matrix, dtype=float) for name, matrix in matrices.items()}
    top = limit or max(float(numpy.abs(array).max()) for array in arrays.values()) or 1.0
    columns = min(columns, len(arrays))
    rows = -(-len(arrays) // columns)
    figure, axes = new_figure(rows, columns, width=2.2 * columns + 0.7, height=2.4 * rows)
    image = None
    for axis in axes.flat[len(arrays) :]:
        axis.set_axis_off()
    for axis, (name, array) in zip(axes.flat, arrays.items(), strict=False):
        image = axis.imshow(array, cmap=DIVERGING, vmin=-top, vmax=top, interpolation="nearest")
        axis.set(title=name, xticks=[], yticks=[])
        axis.grid(False)
        if split is not None:
            axis.axhline(split - 0.5, color=ink(), linewidth=0.6)
            axis.axvline(split - 0.5, color=ink(), linewidth=0.6)
    if image is not None:
        figure.colorbar(image, ax=axes, shrink=0.8, label=label)
    return captioned(figure, caption)


def _draw_curves(axes: Axes, series: Mapping[str, Curve], dots_label: str) -> None:
    dotted = False
    for index, (name, curve) in enumerate(series.items()):
        color = PALETTE[index % len(PALETTE)]
        if len(curve["x"]):
            axes.plot(curve["x"], curve["y"], color=color, label=name)
        if "low" in curve:
            axes.fill_between(curve["x"], curve["low"], curve["high"], color=color, alpha=0.2, linewidth=0)
        if "dots_x" in curve:
            axes.plot(curve["dots_x"], curve["dots_y"], "o", color=color, markersize=3, markerfacecolor="none")
            dotted = True
    if dotted:
        axes.plot([], [], "o", color=ink(), markersize=3, markerfacecolor="none", label=dots_label)


def _end_above_zero(axes: Axes) -> None:
    """A band that reaches zero, which a logarithmic axis has not, leaves the frame a little below the lowest curve."""
    values = [numpy.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()]
    positive = [float(found.min()) for value in values if len(found := value[value > 0])]
    if positive and axes.collections and axes.get_ylim()[0] < min(positive) / 30:
        axes.set_ylim(bottom=min(positive) / 3)


def _frame(axes: Axes, x_label: str, y_label: str, title: str, x_log: bool, y_log: bool) -> None:
    axes.set(xlabel=x_label, ylabel=y_label, title=title)
    if x_log:
        axes.set_xscale("symlog" if x_log == "symlog" else "log")
    if y_log:
        axes.set_yscale("log")
        _end_above_zero(axes)
    for axis, log in ((axes.xaxis, x_log is True), (axes.yaxis, y_log)):
        if log:
            plain_log_ticks(axis)
