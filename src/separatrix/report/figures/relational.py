"""Figures of relational networks: accuracies on unseen pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.figure import Figure

from .style import PALETTE, ink, new_figure, single_axes, styled

_FAMILIES = ("CoRelNet", "CoRelNet-T", "ESBN", "PrediNet", "Transformer", "LSTM", "RN", "NTM")
_HATCHES = {"random encoder": "//", "asymmetric": "xx", "cat": "..", "L1": "++", "nhid": "oo", "symmetric": "\\\\"}


def model_style(model: str) -> tuple[str, str]:
    """Colour and hatching: one colour for a network and its variants, one hatching for a kind of variant."""
    found = [name for name in sorted(_FAMILIES, key=len, reverse=True) if name in model]
    colour = PALETTE[_FAMILIES.index(found[0])] if found else PALETTE[sum(map(ord, model)) % len(PALETTE)]
    hatch = next((mark for word, mark in _HATCHES.items() if word in model), "")
    return colour, hatch


@styled
def draw_accuracies(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Bars of mean accuracy with 95 % intervals, grouped by task; dots are the least and the greatest seed.

    Args:
        rows: of the table of accuracies; of several numbers of held-out shapes the last is drawn.
    """
    last = {(row["task"], row["asked on"], row["model"]): row for row in rows}
    groups = list(dict.fromkeys((task, asked) for task, asked, _ in last))
    models = list(dict.fromkeys(model for *_, model in last))
    figure, axes = single_axes(width=max(6.4, 0.9 + 0.28 * len(groups) * (len(models) + 1)), height=3.8)
    width = 0.8 / len(models)
    for place, model in enumerate(models):
        colour, hatch = model_style(model)
        chosen = [(k, last[(*group, model)]) for k, group in enumerate(groups) if (*group, model) in last]
        x = numpy.array([k for k, _ in chosen]) - 0.4 + (place + 0.5) * width
        means = numpy.array([row["mean"] for _, row in chosen])
        ends = numpy.array([[row["low"], row["high"]] for _, row in chosen], dtype=float)
        reach = numpy.where(numpy.isfinite(ends), numpy.abs(ends - means[:, None]), 0.0)
        axes.bar(x, 100 * means, width * 0.92, color=colour, hatch=hatch, edgecolor=ink(), linewidth=0.4, label=model)
        axes.errorbar(x, 100 * means, yerr=100 * reach.T, fmt="none", color=ink(), linewidth=0.8)
        for bound in ("least", "greatest"):
            axes.plot(x, [100 * row[bound] for _, row in chosen], ".", color=ink(), markersize=2.5)
    names = [task if asked == "unseen shapes" else f"{task}\n{asked}" for task, asked in groups]
    axes.set_xticks(range(len(groups)), [name.replace("game_", "") for name in names], rotation=20, ha="right")
    axes.set_ylabel("right answers about unseen pictures, %")
    axes.set_ylim(0, 105)
    figure.legend(loc="outside upper center", ncols=min(4, len(models)))
    return figure


@styled
def draw_holdouts(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Accuracy against the number of held-out shapes, a panel per task.

    Args:
        rows: of the table of accuracies.
    """
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    figure, grid = new_figure(1, len(tasks), width=1.2 + 2.3 * len(tasks), height=3.2, sharey=True)
    for axes, task in zip(grid[0], tasks, strict=True):
        own = [row for row in rows if row["task"] == task]
        ticks = list(dict.fromkeys(str(row["held out"]) for row in own))
        for model in dict.fromkeys(row["model"] for row in own):
            points = [row for row in own if row["model"] == model]
            colour, hatch = model_style(model)
            x = [ticks.index(str(row["held out"])) for row in points]
            style = "--" if hatch else "-"
            axes.plot(x, [100 * row["mean"] for row in points], style, marker="o", color=colour, label=model)
        axes.set_title(task)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel("shapes held out")
    grid[0, 0].set_ylabel("right answers, %")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)))
    return figure


@styled
def draw_unseen_curves(curves: Sequence[Mapping[str, Any]]) -> Figure:
    """Accuracy on unseen pictures during training, a thin line per seed, a panel per task.

    Args:
        curves: mappings with ``task``, ``model``, ``steps`` and ``values``, of which the last number of held-out shapes
            is drawn.
    """
    tasks = list(dict.fromkeys(curve["task"] for curve in curves))
    columns = min(4, len(tasks))
    n_rows = -(-len(tasks) // columns)
    figure, grid = new_figure(n_rows, columns, width=1.0 + 2.3 * columns, height=0.8 + 2.2 * n_rows, sharey=True)
    for axes in grid.flat[len(tasks) :]:
        axes.set_visible(False)
    for axes, task in zip(grid.flat, tasks, strict=False):
        own = [curve for curve in curves if curve["task"] == task]
        own = [curve for curve in own if curve["holdout"] == own[-1]["holdout"]]
        for curve in own:
            colour, hatch = model_style(curve["model"])
            first = curve is next(c for c in own if c["model"] == curve["model"])
            label = curve["model"] if first else None
            style = "--" if hatch else "-"
            axes.plot(curve["steps"], 100 * numpy.array(curve["values"]), style, color=colour, lw=0.8, label=label)
        axes.set_title(task)
        axes.set_xlabel("training step")
    grid[0, 0].set_ylabel("right answers about\nunseen pictures, %")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)))
    return figure
