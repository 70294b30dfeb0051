"""Figures of a diagnosis: signal and gradient over depth, gradients along time, entropy of attention layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..house.plots import plots
from ..house.style import PALETTE, new_figure, styled

if TYPE_CHECKING:
    from separatrix.diagnose import Diagnosis

_TICKS = 12


@plots("Diagnosis")
def draw_depth_profile(result: Any, ax: Axes) -> None:
    """Over weights in the order in which they run: size, difference between samples, gradient."""
    rows = result.profiles.get("depth", [])
    at = numpy.arange(len(rows))
    for place, (name, label) in enumerate(
        (("rms", "size"), ("centred", "difference between samples"), ("gradient", "gradient"))
    ):
        values = numpy.array([_positive(row[name]) for row in rows], dtype=float)
        if numpy.isfinite(values).any():
            ax.plot(at, values, "o-", color=PALETTE[place], label=label)
    if rows:
        ax.set_yscale("log")
        ax.legend(loc="best")
    step = max(1, -(-len(rows) // _TICKS))
    ax.set_xticks(at[::step], [str(rows[i]["module"])[-24:] for i in at[::step]], rotation=60, ha="right")
    ax.set(xlabel="weights in the order in which they run", ylabel="rms")


def draw_time_profile(result: Any, ax: Axes) -> None:
    """Logarithm of the gradient norm over lag, for each recurrent layer."""
    for place, (name, row) in enumerate(result.profiles.get("time", {}).items()):
        norms = numpy.asarray(row["log_norms"], dtype=float)
        label = f"{name}: {row['rate']:.3g} ± {row['se']:.1g} per step"
        ax.plot(numpy.arange(len(norms)), norms, color=PALETTE[place % 7], label=label)
    ax.set(xlabel="steps back", ylabel="ln |gradient|")
    ax.legend(loc="best")


def draw_attention_profile(result: Any, ax: Axes) -> None:
    """Entropy over that of uniform attention, for each layer."""
    rows = [row for row in result.profiles.get("attention", []) if row["entropy"] is not None]
    ax.plot(numpy.arange(1, len(rows) + 1), [row["entropy"] for row in rows], "o-", color=PALETTE[0])
    ax.set(xlabel="attention layer", ylabel="entropy / ln(keys)", ylim=(0, 1.05))


@styled
def diagnosis_figures(result: Diagnosis) -> dict[str, Figure]:
    """The profiles that a diagnosis has, each as a figure of its own."""
    figures: dict[str, Figure] = {}
    for name, draw in _DRAWINGS.items():
        if result.profiles.get(name):
            figure, axes = new_figure(width=7.2, height=3.6)
            draw(result, axes[0, 0])
            figures[name] = figure
    return figures


_DRAWINGS = {"depth": draw_depth_profile, "time": draw_time_profile, "attention": draw_attention_profile}


def _positive(value: Any) -> float:
    return float(value) if value is not None and 0 < float(value) < float("inf") else numpy.nan
