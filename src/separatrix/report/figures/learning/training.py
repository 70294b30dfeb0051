"""Drawings of training: losses against steps, and what seeds of different families and scales reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..house.families import look
from ..house.layout import captioned, legend_outside, within
from ..house.plots import plots
from ..house.style import ink, new_figure, single_axes, styled


@styled
def draw_error_by_scale(rows: Sequence[Mapping[str, Any]], errors: Sequence[Mapping[str, Any]]) -> Figure:
    """Test error against the initial scale: mean with its 95 % interval, median, and every seed.

    Args:
        rows: mappings with ``family``, ``weight_scale``, ``mean_error``, ``median_error`` and ``half_width``.
        errors: mappings with ``family``, ``weight_scale`` and ``values``, one per seed.
    """
    figure, axes = single_axes(width=6.0, height=3.8)
    families = list(dict.fromkeys(row["family"] for row in rows))
    for place, family in enumerate(families):
        shift = 1 + 0.03 * (place - (len(families) - 1) / 2)  # neighbours must not hide each other
        own = sorted((row for row in rows if row["family"] == family), key=lambda row: row["weight_scale"])
        scales = shift * numpy.array([row["weight_scale"] for row in own])
        widths = numpy.array([row["half_width"] for row in own])
        colour, marker, label = look(family)
        means = numpy.array([row["mean_error"] for row in own])
        bars = within(means, means - widths, means + widths)
        axes.errorbar(scales, means, yerr=bars, fmt=f"{marker}-", color=colour, label=label)
        axes.plot(scales, [row["median_error"] for row in own], "_", color=ink(), markersize=11)
        for entry in (entry for entry in errors if entry["family"] == family):
            values = entry["values"]
            axes.plot([shift * entry["weight_scale"]] * len(values), values, ".", color=colour, alpha=0.4)
    axes.plot([], [], "_", color=ink(), markersize=11, label="median")
    axes.set_xscale("log")
    ticks = sorted({row["weight_scale"] for row in rows})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("initial scale √V")
    axes.set_ylabel("test error")
    legend_outside(figure)
    return captioned(
        figure,
        """Test error against the scale of the initial matrix. Marks with bars: mean over seeds and its 95 %
        interval; dashes: median; dots: every seed. Intervals that overlap decide nothing between the families.""",
    )


@styled
def draw_perplexities(groups: Sequence[Mapping[str, Any]]) -> Figure:
    """Perplexity of every seed, by family and scale, with the mean as a bar.

    Args:
        groups: mappings with ``family``, ``weight_scale`` and ``values``.
    """
    scales = sorted({group["weight_scale"] for group in groups})
    figure, axes = single_axes(width=6.0, height=3.6)
    families = list(dict.fromkeys(group["family"] for group in groups))
    for place, family in enumerate(families):
        colour, mark, name = look(family)
        for group in (group for group in groups if group["family"] == family):
            x = scales.index(group["weight_scale"]) + 0.24 * (place - (len(families) - 1) / 2)
            label: dict[str, Any] = {"label": name} if group["weight_scale"] == scales[0] else {}
            axes.plot([x] * len(group["values"]), group["values"], mark, color=colour, alpha=0.6, **label)
            mean = float(numpy.mean(group["values"]))
            axes.plot([x - 0.08, x + 0.08], [mean, mean], "-", color=colour, linewidth=2.5)
    axes.set_xticks(range(len(scales)), [f"{scale:g}" for scale in scales])
    axes.set_xlabel("initial scale √V of the dense block")
    axes.set_ylabel("test perplexity")
    legend_outside(figure)
    return captioned(
        figure,
        """Test perplexity of an equilibrium transformer for three families and scales of the initial matrix. Each
        mark is a seed, each bar the mean of its seeds. Compare the spread of the seeds with the differences of the
        means.""",
    )


@styled
def draw_learning_curves(curves: Sequence[Mapping[str, Any]], *, panels: str) -> Figure:
    """Test loss against steps: a thin line per seed, a thick one for their mean where all are still running.

    Args:
        curves: mappings with ``family``, ``steps``, ``losses`` and the entry named by ``panels``, one per seed.
        panels: entry whose values have a panel each: ``"weight_scale"`` or ``"embedding_std"``.
    """
    values = sorted({curve[panels] for curve in curves})
    figure, grid = new_figure(1, len(values), width=2.7 * len(values) + 0.9, height=3.4, sharey=True)
    for axes, value in zip(grid[0], values, strict=True):
        shown = [curve for curve in curves if curve[panels] == value]
        for family in dict.fromkeys(curve["family"] for curve in shown):
            own = [curve for curve in shown if curve["family"] == family]
            _draw_seeds(axes, own, look(family).colour, look(family).label)
        axes.set_title(_PANELS[panels].format(value))
        axes.set_xlabel("step")
    grid[0, 0].set_ylabel("test loss (nats a symbol)")
    legend_outside(figure)
    return captioned(figure, _LEARNING_CAPTIONS[panels])


_LEARNING_CAPTIONS = {
    "weight_scale": """Test loss of an equilibrium transformer during training, a panel per scale of the initial
    matrix. Thin: one seed each; thick: their mean. Look for single seeds that stray and move the mean of their
    family.""",
    "embedding_std": """Test loss of an equilibrium transformer with square blocks, for two sizes of the token
    embeddings. Thin: one seed each; thick: their mean. Compare how far the families lie apart in the two panels.""",
}
_PANELS = {"weight_scale": "√V = {:g}", "embedding_std": "embeddings of size {:g}"}


def _draw_seeds(axes: Axes, curves: Sequence[Mapping[str, Any]], colour: str, label: str) -> None:
    for curve in curves:
        axes.plot(curve["steps"], curve["losses"], color=colour, linewidth=0.6, alpha=0.55)
    shortest = min(curves, key=lambda curve: len(curve["steps"]))["steps"]
    mean = numpy.mean([curve["losses"][: len(shortest)] for curve in curves], axis=0)
    axes.plot(shortest, mean, color=colour, linewidth=2.2, label=label)


@plots("TrainingRun")
def draw_training_run(result: Any, ax: Axes) -> None:
    """The loss of every member against the step."""
    steps, losses = result.history.column("loss")
    ax.plot(steps, numpy.array(losses), alpha=0.8)
    for step in sorted({step for step in result.diverged_at if step is not None}):
        ax.axvline(step, color=ink(), linewidth=0.8, linestyle=":")
    ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("training loss")
