"""Drawings of memory: totals, curves against the lag, and transients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..house.layout import captioned, legend_outside
from ..house.style import PALETTE, ink, new_figure, single_axes, styled


def line_label(sub: float, rest: float, diagonal: float | None = None) -> str:
    """Short name of a triangular matrix for a legend."""
    name = f"α={sub:g}, β={rest:g}"
    return name if diagonal is None else f"{name}, d={diagonal:g}"


@styled
def draw_memory_totals(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Exact totals as bars, printed totals and plain double precision as marks.

    Args:
        rows: mappings with ``alpha``, ``beta``, ``d``, ``total``, ``printed`` (or None) and ``plain_double``.
    """
    figure, axes = single_axes(width=6.4, height=0.34 * len(rows) + 1.3)
    place = numpy.arange(len(rows))[::-1]
    colours = [PALETTE[0] if row["d"] == 0 else PALETTE[2] for row in rows]
    axes.barh(place, [row["total"] for row in rows], color=colours, height=0.62, alpha=0.75, label="exact")
    printed = [(y, row["printed"]) for y, row in zip(place, rows, strict=True) if row["printed"] is not None]
    if printed:
        heights, values = zip(*printed, strict=True)
        axes.plot(values, heights, "|", color=ink(), markersize=12, markeredgewidth=1.8, label="printed")
    double = [row["plain_double"] for row in rows]
    axes.plot(double, place, "x", color=PALETTE[1], markersize=5, label="plain double precision")
    axes.set_yticks(place, [line_label(row["alpha"], row["beta"], row["d"]) for row in rows])
    axes.set_xlim(0, 1.08 * max(row["total"] for row in rows))
    axes.set_xlabel("total Fisher memory (noise variance 1)")
    axes.set_ylabel("recurrent matrix")
    axes.grid(visible=False, axis="y")
    legend_outside(figure)
    return captioned(
        figure,
        """Total Fisher memory of triangular recurrent matrices (sub-diagonal α, rest β, diagonal d; green with a
        diagonal). Bars: exact, with error-bounded arithmetic; strokes: as printed; crosses: plain double precision,
        which fails where cross and bar part.""",
    )


@styled
def draw_memory_curves(curves: Sequence[Mapping[str, Any]], n_units: int) -> Figure:
    """Memory curves against the lag; dashed with a diagonal, and a mark where nilpotent lines forget.

    Args:
        curves: mappings with ``alpha``, ``beta``, ``d`` and ``curve``.
        n_units: size of the matrices.
    """
    figure, axes = single_axes(width=6.4, height=3.8)
    for curve in curves:
        values = numpy.asarray(curve["curve"], dtype=float)
        shown = numpy.where(values > 0, values, numpy.nan)
        colour, style = _line_style(curve)
        axes.plot(shown, style, color=colour, label=line_label(curve["alpha"], curve["beta"], curve["d"]))
    axes.axvline(n_units, color=ink(), linewidth=0.8, linestyle=":")
    axes.annotate("N", (n_units, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=8)
    axes.set_yscale("log")
    axes.set_ylim(3e-4, 1.3)
    axes.set_xlabel("lag k (steps)")
    axes.set_ylabel("Fisher memory J(k)")
    legend_outside(figure, at="right")
    return captioned(
        figure,
        """Fisher memory of an input that arrived k steps ago, for triangular recurrent matrices. Without a diagonal
        (d = 0) everything is forgotten after N steps (dotted); look at the level and the reach of those with one.""",
    )


@styled
def draw_transients(transients: Sequence[Mapping[str, Any]], n_units: int) -> Figure:
    """Norm of the state and spread across starts against time; the exact root mean square as a thin line.

    Args:
        transients: mappings with ``alpha``, ``beta``, ``mean_norm``, ``std_norm``, ``mean_spread`` and ``rms_norm``.
        n_units: size of the matrices.
    """
    figure, grid = new_figure(2, 1, width=6.4, height=5.2, sharex=True)
    top, bottom = grid[0, 0], grid[1, 0]
    for transient in transients:
        colour, style = _line_style({**transient, "d": 0.0})
        label = line_label(transient["alpha"], transient["beta"])
        _log_line(top, transient["mean_spread"], style, color=colour, label=label)
        mean, spread = numpy.asarray(transient["mean_norm"]), numpy.asarray(transient["std_norm"])
        low, high = numpy.maximum(mean - spread, 1e-6), mean + spread
        bottom.fill_between(numpy.arange(len(mean)), low, high, where=mean > 0, color=colour, alpha=0.15, linewidth=0)
        _log_line(bottom, mean, style, color=colour)
        exact = {} if transient is not transients[-1] else {"label": "exact root mean square"}
        _log_line(bottom, transient["rms_norm"], "-", color=ink(), linewidth=0.5, **exact)
    for axes, name in ((top, "spread of a unit"), (bottom, "norm of the state")):
        axes.set_yscale("log")
        axes.set_ylabel(name)
        axes.axvline(n_units, color=ink(), linewidth=0.8, linestyle=":")
    top.set_ylim(2e-6, 2e2)
    bottom.set_ylim(2e-5, 3e2)
    bottom.set_xlabel("step t (dotted: t = N)")
    legend_outside(figure, at="right")
    return captioned(
        figure,
        """Transients of triangular recurrent matrices: spread of a unit over random starts (top) and norm of the state
        (bottom, band: one standard deviation). All eigenvalues are zero: look at how far states grow before they vanish
        at t = N. Thin: exact root mean square.""",
    )


@styled
def draw_memory_bounds(bounds: Mapping[str, Sequence[float]]) -> Figure:
    """A memory curve between its bounds: the amplification bound above, the two triangular bounds below.

    Args:
        bounds: ``memory``, ``ceiling``, ``printed`` and ``sharp``, each a list over the lag.
    """
    figure, axes = single_axes(width=5.4, height=3.4)
    names = {
        "ceiling": ("amplification bound", "--", PALETTE[1]),
        "memory": ("J(k)", "o-", PALETTE[0]),
        "sharp": ("sharper lower bound", "-.", PALETTE[2]),
        "printed": ("Proposition 3.4.1", ":", PALETTE[3]),
    }
    for key, (label, style, colour) in names.items():
        _log_line(axes, bounds[key], style, color=colour, label=label)
    axes.set_yscale("log")
    axes.set_xlabel("lag k (steps)")
    axes.set_ylabel("Fisher memory")
    axes.legend()
    return captioned(
        figure,
        """A memory curve J(k) between its bounds: amplification above, below it the printed bound (Proposition
        3.4.1, dotted) and the sharper one (dash-dotted). Compare how far below the curve each of them lies.""",
    )


def _line_style(curve: Mapping[str, Any]) -> tuple[str, str]:
    colours = {0.95: PALETTE[0], 1.0: PALETTE[2], 1.05: PALETTE[1]}
    colour = colours.get(curve["alpha"], PALETTE[6])
    dashes = {(False, False): "-", (True, False): "--", (False, True): "-.", (True, True): ":"}
    return colour, dashes[curve["beta"] > 0, curve["d"] > 0]


def _log_line(axes: Axes, values: Any, style: str, **options: Any) -> None:
    numbers = numpy.asarray(values, dtype=float)
    axes.plot(numpy.where(numbers > 0, numbers, numpy.nan), style, **options)
