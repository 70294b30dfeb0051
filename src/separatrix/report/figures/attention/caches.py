"""Figures of caches that forget: what they keep, what they cost, which needles are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..house.layout import captioned, legend_outside
from ..house.plots import plots
from ..house.style import PALETTE, ink, new_figure, styled

_FIRST = ("window", "sinks", "heavy_hitter", "tova", "screening", "screening_share", "append_only")
"""Policies with a colour of their own, the same in all figures."""


def _colour(name: str) -> str:
    if name in ("oracle", "full"):
        return ink()
    known = _FIRST.index(name) if name in _FIRST else sum(name.encode())
    return PALETTE[known % len(PALETTE)]


def _called(name: str) -> str:
    return name.replace("_", " ")


@plots("CacheAudit")
def draw_positions_kept(result: Any, ax: Axes) -> None:
    """Which part of the sequence the keys come from that each cache holds at the end."""
    for row in result.rows:
        share = numpy.asarray(row.positions)
        if len(share):
            across = (numpy.arange(len(share)) + 0.5) / len(share)
            ax.plot(across, share, marker="o", markersize=3, color=_colour(row.name), label=_called(row.name))
    ax.set(xlabel="place in the sequence (0 first, 1 last)", ylabel="share of the keys held at the end")
    ax.set_title("Where the keys come from that each cache holds at the end", fontsize=9)
    if ax.lines:
        ax.legend(loc="best", fontsize=7)


@plots("NeedleTable")
def draw_needles(result: Any, ax: Axes) -> None:
    """Accuracy by place of the needle at the smallest budget; dashed where it is paraphrased."""
    budget = min(row["budget"] for row in result.rows)
    for name in dict.fromkeys(row["cache"] for row in result.rows):
        for wording, line in (("exact", "-"), ("paraphrased", "--")):
            own = [
                row for row in result.rows if (row["cache"], row["budget"], row["wording"]) == (name, budget, wording)
            ]
            label = _called(name) if wording == "exact" or len(result.rows) == len(own) else None
            places = [row["place"] for row in own]
            ax.plot(places, [row["accuracy"] for row in own], line, color=_colour(name), marker=".", label=label)
    ax.set(xlabel="place of the needle", ylabel="accuracy", ylim=(-0.03, 1.03))
    ax.set_title(f"Needles found with {budget} keys a head (dashed: paraphrased)", fontsize=9)
    ax.legend(loc="best", fontsize=7)


@styled
def draw_cache_quality(
    recall: Sequence[Mapping[str, Any]], text: Sequence[Mapping[str, Any]], full: Mapping[str, float]
) -> Figure:
    """Quality against the budget, one line a policy, the mean over seeds.

    Args:
        recall: rows with ``policy``, ``budget`` and ``accuracy``.
        text: rows with ``policy``, ``budget`` and ``loss``.
        full: accuracy and loss without a bound, under ``accuracy`` and ``loss``.
    """
    figure, axes = new_figure(1, 2, width=9.0, height=3.6)
    panels = (
        (recall, "accuracy", "recall of values: part that is right"),
        (text, "loss", "characters: loss in nats"),
    )
    for ax, (rows, column, label) in zip(axes[0], panels, strict=True):
        for name in dict.fromkeys(row["policy"] for row in rows):
            budgets = sorted({row["budget"] for row in rows if row["policy"] == name})
            means = [
                numpy.mean([row[column] for row in rows if (row["policy"], row["budget"]) == (name, budget)])
                for budget in budgets
            ]
            style = ":" if name == "oracle" else "-"
            ax.plot(budgets, means, style, marker="o", markersize=3, color=_colour(name), label=_called(name))
        if column in full:
            ax.axhline(full[column], color=ink(), linewidth=0.8, label="no bound")
        ax.set(xlabel="keys a head may hold", ylabel=label)
    legend_outside(figure, at="lower")
    return captioned(
        figure,
        """Quality of caches against the number of keys a head may hold, at equal budget: half of it the newest
        keys, half those that the policy keeps; means over seeds. Left, higher is better; right, lower is better.
        Solid black: no bound.""",
    )


@styled
def draw_needle_rows(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Accuracy of every policy by place of the needle, a panel a budget; dashed where it is paraphrased."""
    budgets = sorted({row["budget"] for row in rows})
    figure, axes = new_figure(1, max(1, len(budgets)), width=3.0 * max(1, len(budgets)) + 1.0, height=3.4, sharey=True)
    for ax, budget in zip(axes[0], budgets, strict=False):  # one empty panel if there is nothing
        for name in dict.fromkeys(row["policy"] for row in rows):
            for wording, line in (("exact", "-"), ("paraphrased", "--")):
                own = [r for r in rows if (r["policy"], r["budget"], r["wording"]) == (name, budget, wording)]
                places = sorted({row["place"] for row in own})
                means = [numpy.mean([row["accuracy"] for row in own if row["place"] == place]) for place in places]
                label = _called(name) if wording == "exact" else None
                ax.plot(places, means, line, marker=".", color=_colour(name), label=label)
        ax.plot([], [], "--", color=ink(), label="asked by another name")
        ax.set(xlabel="place of the needle", title=f"{budget} keys a head", ylim=(-0.03, 1.03))
    axes[0][0].set_ylabel("part that is found")
    legend_outside(figure, at="lower")
    return captioned(
        figure,
        """Which needles are found, by their place in the sequence, a panel per budget; dashed: asked for by another
        name. A window finds the latest alone; look at what each policy keeps of the first and the middle ones.""",
    )
