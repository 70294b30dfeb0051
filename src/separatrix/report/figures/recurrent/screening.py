"""Drawings of attentive recurrent networks: accuracies over delays, learning, attention, gradients over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..house.layout import captioned, legend_outside, mark, one_place, plain_log_ticks, within
from ..house.models import is_model, line_of, model_look
from ..house.style import PALETTE, SEQUENTIAL, ink, new_figure, single_axes, styled


def _colour(name: str, place: int) -> str:
    """That of the network; cases of one network are told apart by their place."""
    return model_look(name).colour if is_model(name) else PALETTE[place % len(PALETTE)]


@styled
def draw_accuracies(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Accuracy against the delay, one line per model, with intervals.

    Args:
        rows: mappings with ``model``, ``delay``, ``mean``, ``low`` and ``high``.
    """
    figure, axes = single_axes(width=5.8, height=3.6)
    models = list(dict.fromkeys(row["model"] for row in rows))
    side_by_side = len({row["delay"] for row in rows}) == 1  # else all that are right would hide one another
    for place, model in enumerate(models):
        own = sorted((row for row in rows if row["model"] == model), key=lambda row: row["delay"])
        mean = numpy.array([row["mean"] for row in own])
        ends = within(mean, [row["low"] for row in own], [row["high"] for row in own])
        shift = 1.2 * ((place + 0.5) / len(models) - 0.5) if side_by_side else 0
        delays = [row["delay"] + shift for row in own]
        drawn: dict[str, Any] = {
            "color": _colour(model, place),
            "marker": model_look(model).marker,
            "label": model_look(model).label,
        }
        axes.errorbar(delays, mean, ends, **drawn)
    axes.set_xscale("log")
    plain_log_ticks(axes.xaxis)
    alone = one_place(axes, (row["delay"] for row in rows))
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("delay of the test (steps)")
    axes.set_ylabel("share of right symbols")
    legend_outside(figure)
    if alone:
        return captioned(
            figure,
            """Share of symbols recalled rightly at the delay that the networks were trained on, with 95 % intervals cut
            at 0 and 1. Other delays were not tested.""",
        )
    return captioned(
        figure,
        """Share of symbols recalled rightly against the delay, with 95 % intervals cut at 0 and 1. Networks were
        trained at the shortest delay: look at which of them stay right at delays they never met.""",
    )


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
            drawn: dict[str, Any] = {"color": _colour(model, place), "label": label and model_look(model).label}
            axes.plot(curve["steps"], curve["valid"], marker=mark(curve["steps"], model_look(model).marker), **drawn)
    if baseline is not None:
        axes.axhline(baseline, color=ink(), linewidth=0.8, linestyle=":", label="no memory")
    axes.set_yscale("log")
    axes.set_xlabel("updates")
    axes.set_ylabel("cross entropy (nats a symbol)")
    legend_outside(figure)
    return captioned(
        figure,
        """Cross entropy on problems kept aside during training, a line per run. The dotted level can be had without
        memory: a network has learned to remember when it falls below.""",
    )


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
    return captioned(
        figure,
        """Attention of each step (down) to the steps before it (across); the brighter, the larger the weight.
        Triangles mark the steps on which the answer depends: look whether their columns stay bright.""",
    )


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
        axes.legend(fontsize=7)
    grid[0, 0].set_ylabel("log10 of the norm of dL/dh")
    return captioned(
        figure,
        """Size of the gradient that reaches each step, counted from the end of the sequence. A line that falls to
        the right loses what it should learn from long ago.""",
    )


def _lines(axes: Axes, curves: Sequence[Mapping[str, Any]]) -> None:
    for place, curve in enumerate(curves):
        axes.plot(curve["curve"], color=_colour(curve["model"], place), label=model_look(curve["model"]).label)


@styled
def draw_kept_bytes(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Megabytes that a training step keeps for the way back against the length, both axes logarithmic.

    Args:
        rows: mappings with ``model``, ``steps`` and ``bytes``.
    """
    figure, axes = single_axes(width=5.2, height=3.4)
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        sizes = [row["bytes"] / 1e6 for row in own]
        colour, marker, label = model_look(model)
        steps = [row["steps"] for row in own]
        axes.plot(steps, sizes, linestyle=line_of(model), marker=marker, color=colour, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_log_ticks(axes.xaxis)
    axes.set_xlabel("steps of the sequence")
    axes.set_ylabel("MB kept for the way back")
    legend_outside(figure)
    return captioned(
        figure,
        """Memory that a training step keeps for the backward pass against the length of the sequence, both axes
        logarithmic. Slope 1 is linear growth, slope 2 quadratic; dashed: plain variants.""",
    )
