"""Figures of relational networks: accuracies on unseen pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke

from separatrix.tasks.relational.titles import task_title

from ..house.layout import captioned, is_narrow, legend_outside, mark, one_place, within
from ..house.models import hatch_of, is_model, line_of, model_look
from ..house.style import PALETTE, ink, new_figure, paper, single_axes, styled

_LETTERS_SIDE_BY_SIDE = 75
"""As many letters of names stand below an axis of the usual width."""


@styled
def draw_accuracies(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Bars of mean accuracy with 95 % intervals, grouped by task; dots are the least and the greatest seed.

    Args:
        rows: of the table of accuracies; of several numbers of held-out shapes the last is drawn.
    """
    last = {(row["task"], row["asked on"], row["model"]): row for row in rows}
    groups = list(dict.fromkeys((task, asked) for task, asked, _ in last))
    models = list(dict.fromkeys(model for *_, model in last))
    if is_narrow():
        figure = _bars_below_each_other(last, groups, models)
    else:
        figure = _bars_side_by_side(last, groups, models)
    legend_outside(figure)
    return captioned(
        figure,
        """Right answers about pictures that were never seen in training, by task and network: mean over seeds with
        its 95 % interval, cut at 0 and 100; dots are the least and the greatest seed.""",
    )


def _bars_side_by_side(last: Mapping[Any, Mapping[str, Any]], groups: Sequence[Any], models: Sequence[str]) -> Figure:
    figure, axes = single_axes(width=max(6.4, 0.9 + 0.28 * len(groups) * (len(models) + 1)), height=3.8)
    _draw_bars(axes, last, groups, models, upright=True)
    letters = max(8, round(_LETTERS_SIDE_BY_SIDE * figure.get_figwidth() / 6.4 / len(groups)))
    axes.set_xticks(range(len(groups)), [_group_name(group, letters) for group in groups])
    margin = max(0.5, 1.2 - 0.3 * len(groups))
    axes.set(xlim=(-margin, len(groups) - 1 + margin), ylim=(0, 105), ylabel="right answers about unseen pictures, %")
    return figure


def _bars_below_each_other(
    last: Mapping[Any, Mapping[str, Any]], groups: Sequence[Any], models: Sequence[str]
) -> Figure:
    """For a narrow page, on which dozens of bars have no room beside each other."""
    figure, axes = single_axes(height=1.0 + max(0.17 * len(models) + 0.14, 0.6) * len(groups))
    _draw_bars(axes, last, groups, models, upright=False)
    axes.set_yticks(range(len(groups)), [_group_name(group, 14) for group in groups])
    axes.set(
        xlim=(0, 105), ylim=(len(groups) - 0.5, -0.5), xlabel="right answers about unseen pictures, %", ylabel="task"
    )
    return figure


def _draw_bars(
    axes: Axes, last: Mapping[Any, Mapping[str, Any]], groups: Sequence[Any], models: Sequence[str], *, upright: bool
) -> None:
    beside = [[model for model in models if (*group, model) in last] for group in groups]
    width = min(0.8 / max(map(len, beside)), 0.4)  # one network needs no wall of colour
    for place, model in enumerate(models):
        colour, _, label = model_look(model)
        if not is_model(model):  # what was left out of training, for instance: told apart by the palette
            colour = PALETTE[place % len(PALETTE)]
        chosen = [(k, last[(*group, model)]) for k, group in enumerate(groups) if (*group, model) in last]
        x = numpy.array([k + (beside[k].index(model) + 0.5 - len(beside[k]) / 2) * width for k, _ in chosen])
        means = numpy.array([row["mean"] for _, row in chosen])
        reach = 100 * within(means, [row["low"] for _, row in chosen], [row["high"] for _, row in chosen])
        looks: dict[str, Any] = {
            "color": colour,
            "hatch": hatch_of(model) if len(models) > 1 else "",
            "edgecolor": ink(),
            "linewidth": 0.4,
        }
        ends: dict[str, Any] = {"fmt": "none", "color": ink(), "linewidth": 0.9}
        halo = [Stroke(linewidth=3.0, foreground=paper()), Normal()]  # seen on any colour and hatching
        bounds = [[100 * row[bound] for _, row in chosen] for bound in ("least", "greatest")]
        if upright:
            axes.bar(x, 100 * means, width * 0.92, label=label, **looks)
            drawn = axes.errorbar(x, 100 * means, yerr=reach, **ends)
        else:
            axes.barh(x, 100 * means, width * 0.92, label=label, **looks)
            drawn = axes.errorbar(100 * means, x, xerr=reach, **ends)
        for part in (*drawn.lines[1], *drawn.lines[2]):
            part.set_path_effects(halo)
        for bound in bounds:
            axes.plot(*((x, bound) if upright else (bound, x)), ".", color=ink(), markersize=3, path_effects=halo)


def _group_name(group: tuple[str, str], letters: int) -> str:
    task, asked = group
    words = task_title(task) if asked == "unseen shapes" else f"{task_title(task)}, {asked}"
    return textwrap.fill(words, letters, break_long_words=False)


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
            colour, marker, label = model_look(model)
            x = [ticks.index(str(row["held out"])) for row in points]
            means = numpy.array([row["mean"] for row in points])
            reach = within(means, [row["low"] for row in points], [row["high"] for row in points])
            drawn: dict[str, Any] = {"linestyle": line_of(model), "marker": marker, "color": colour, "label": label}
            axes.errorbar(x, 100 * means, yerr=100 * reach, elinewidth=0.7, **drawn)
        axes.set_title(textwrap.fill(task_title(task), 26))
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel("shapes held out")
    _label_first_column(grid, "right answers, %")
    legend_outside(figure)
    return captioned(
        figure,
        """Right answers about unseen pictures against the number of shapes that were held out of training, mean
        over seeds with 95 % intervals, a panel per task. A network that learned the relation stays level to the
        right.""",
    )


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
    once = True
    for axes, task in zip(grid.flat, tasks, strict=False):
        own = [curve for curve in curves if curve["task"] == task]
        own = [curve for curve in own if curve["holdout"] == own[-1]["holdout"]]
        for curve in own:
            colour, marker, name = model_look(curve["model"])
            first = curve is next(c for c in own if c["model"] == curve["model"])
            drawn: dict[str, Any] = {
                "color": colour,
                "lw": 1.1,
                "label": name if first else None,
                "ls": line_of(curve["model"]),
            }
            values = 100 * numpy.array(curve["values"])
            axes.plot(curve["steps"], values, marker=mark(values, marker), **drawn)
        once = one_place(axes, (step for curve in own for step in curve["steps"])) and once
        axes.set_title(textwrap.fill(task_title(task), 26))
        axes.set_xlabel("training step")
    axes = grid.flat[0]
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 95.0), min(high, 101.0))  # where all are right, the margin of the axis would be the picture
    axes.set_yticks(
        [tick for tick in axes.get_yticks() if min(low, 95.0) <= tick <= 100.0]
    )  # there is no more than 100
    _label_first_column(grid, "right answers about\nunseen pictures, %")
    legend_outside(figure)
    if once:
        return captioned(
            figure,
            """Right answers about unseen pictures, measured once in so short a training, a mark per seed, a panel per
            task. There is no course to see.""",
        )
    return captioned(
        figure,
        """Right answers about unseen pictures during training, a line per seed, a panel per task. Look for seeds
        that fall again after they were right.""",
    )


def _label_first_column(grid: numpy.ndarray, label: str) -> None:
    """On a narrow page every panel is in it."""
    for axes in grid.flat:
        place = axes.get_subplotspec()
        if place is not None and place.is_first_col():
            axes.set_ylabel(label)
