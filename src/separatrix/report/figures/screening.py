"""Drawings of attentive recurrent networks: accuracies over delays, learning, attention, gradients over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import PALETTE, SEQUENTIAL, ink, new_figure, single_axes, styled

COLOURS = {
    "RelRNN": PALETTE[0],
    "RelLSTM": PALETTE[5],
    "MemRNN": PALETTE[1],
    "MemLSTM": PALETTE[4],
    "SAB": PALETTE[3],
    "LSTM": PALETTE[2],
    "h-detach": PALETTE[7],
    "GORU": PALETTE[7],
    "expRNN": PALETTE[6],
    "orth-RNN": "#8C564B",
    "RNN": "#17202A",
}
"""One colour for each model in all figures."""


def _colour(name: str, place: int) -> str:
    return COLOURS.get(name, PALETTE[place % len(PALETTE)])


@styled
def draw_accuracies(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Accuracy against the delay, one line per model, with intervals.

    Args:
        rows: mappings with ``model``, ``delay``, ``mean``, ``low`` and ``high``.
    """
    figure, axes = single_axes(width=5.8, height=3.6)
    for place, model in enumerate(dict.fromkeys(row["model"] for row in rows)):
        own = sorted((row for row in rows if row["model"] == model), key=lambda row: row["delay"])
        mean = numpy.array([row["mean"] for row in own])
        ends = numpy.array([[max(0.0, row["mean"] - row["low"]), max(0.0, row["high"] - row["mean"])] for row in own])
        delays = [row["delay"] for row in own]
        axes.errorbar(
            delays, mean, ends.T, color=_colour(model, place), marker="o", markersize=3, capsize=2, label=model
        )
    axes.set_xscale("log")
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("delay of the test")
    axes.set_ylabel("share of right symbols")
    axes.legend(ncols=2)
    return figure


@styled
def draw_learning(curves: Sequence[Mapping[str, Any]], *, baseline: float | None = None) -> Figure:
    """Cross entropy on problems kept aside against updates; the level that can be had without memory is dotted.

    Args:
        curves: mappings with ``model``, ``steps`` and ``valid``.
        baseline: loss without memory.
    """
    figure, axes = single_axes(width=5.8, height=3.6)
    seen: set[str] = set()
    for place, model in enumerate(dict.fromkeys(curve["model"] for curve in curves)):
        for curve in (curve for curve in curves if curve["model"] == model):
            label = None if model in seen else model
            seen.add(model)
            axes.plot(curve["steps"], curve["valid"], color=_colour(model, place), label=label)
    if baseline is not None:
        axes.axhline(baseline, color=ink(), linewidth=0.8, linestyle=":", label="no memory")
    axes.set_yscale("log")
    axes.set_xlabel("updates")
    axes.set_ylabel("cross entropy")
    axes.legend(ncols=2)
    return figure


@styled
def draw_attention_maps(maps: Sequence[Mapping[str, Any]]) -> Figure:
    """Attention of each step (down) to the steps before it (across), one panel per map.

    Args:
        maps: mappings with ``title``, ``map`` (t, t) and ``marked``, steps that the answer depends on.
    """
    figure, grid = new_figure(1, len(maps), width=3.0 * len(maps) + 0.9, height=3.3)
    for axes, one in zip(grid[0], maps, strict=True):
        values = numpy.sqrt(numpy.asarray(one["map"], dtype=float))
        shown = axes.imshow(values, cmap=SEQUENTIAL, vmin=0, vmax=1, interpolation="nearest")
        for step in one["marked"]:
            axes.plot(step, -1.5, marker="v", color=PALETTE[1], markersize=4, clip_on=False)
        axes.set_title(one["title"])
        axes.set_xlabel("attended step")
        axes.grid(visible=False)
    grid[0, 0].set_ylabel("step")
    figure.colorbar(shown, ax=list(grid[0]), label="root of the weight", shrink=0.8)
    return figure


@styled
def draw_gradient_norms(panels: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Logarithm of the gradient norm against the distance from the end, one panel per group.

    Args:
        panels: by title, mappings with ``model`` and ``curve``, the latest step first.
    """
    figure, grid = new_figure(1, len(panels), width=3.7 * len(panels) + 0.6, height=3.3)
    for axes, (title, curves) in zip(grid[0], panels.items(), strict=True):
        _lines(axes, curves)
        axes.set_title(title)
        axes.set_xlabel("steps from the end")
        axes.legend()
    grid[0, 0].set_ylabel("log10 of the norm of dL/dh")
    return figure


def _lines(axes: Axes, curves: Sequence[Mapping[str, Any]]) -> None:
    for place, curve in enumerate(curves):
        axes.plot(curve["curve"], color=_colour(curve["model"], place), label=curve["model"])


@styled
def draw_kept_bytes(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Megabytes that a training step keeps for the way back against the length, both axes logarithmic.

    Args:
        rows: mappings with ``model``, ``steps`` and ``bytes``.
    """
    figure, axes = single_axes(width=5.2, height=3.4)
    for place, model in enumerate(dict.fromkeys(row["model"] for row in rows)):
        own = [row for row in rows if row["model"] == model]
        name, _, rest = model.partition(",")
        style = "--" if rest else "-"
        sizes = [row["bytes"] / 1e6 for row in own]
        axes.plot(
            [row["steps"] for row in own],
            sizes,
            style,
            marker="o",
            markersize=3,
            color=_colour(name, place),
            label=model,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("steps of the sequence")
    axes.set_ylabel("MB kept for the way back")
    axes.legend()
    return figure
