"""Drawings of recurrent networks in training: curves of several models, what their Schur forms became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.figure import Figure

from .style import PALETTE, ink, new_figure, single_axes, styled


@styled
def draw_over_steps(curves: Sequence[Mapping[str, Any]], label: str, across: str = "step of the sequence") -> Figure:
    """One line per model against the place along a sequence.

    Args:
        curves: mappings with ``model`` and ``curve``.
        label: of the vertical axis.
        across: of the horizontal axis.
    """
    figure, axes = single_axes(width=5.6, height=3.4)
    for place, curve in enumerate(curves):
        axes.plot(curve["curve"], color=PALETTE[place % len(PALETTE)], label=curve["model"])
    axes.set_xlabel(across)
    axes.set_ylabel(label)
    axes.legend()
    return figure


@styled
def draw_model_curves(
    curves: Sequence[Mapping[str, Any]], *, label: str, logarithmic: bool = False, baseline: float | None = None
) -> Figure:
    """Validation against training steps: a thin line per seed, a thick one for the median of each model.

    Args:
        curves: mappings with ``model``, ``steps`` and ``values``, one per seed.
        label: of the vertical axis.
        logarithmic: whether that axis is.
        baseline: a value to mark, such as what can be had without memory.
    """
    figure, axes = single_axes(width=5.8, height=3.6)
    for place, model in enumerate(dict.fromkeys(curve["model"] for curve in curves)):
        colour = PALETTE[place % len(PALETTE)]
        own = [curve for curve in curves if curve["model"] == model]
        for curve in own:
            axes.plot(curve["steps"], curve["values"], color=colour, linewidth=0.5, alpha=0.45)
        length = min(len(curve["steps"]) for curve in own)
        middle = numpy.median([curve["values"][:length] for curve in own], axis=0)
        axes.plot(own[0]["steps"][:length], middle, color=colour, linewidth=2.0, label=model)
    if baseline is not None:
        axes.axhline(baseline, color=ink(), linewidth=0.8, linestyle=":", label="no memory")
    if logarithmic:
        axes.set_yscale("log")
    axes.set_xlabel("training step")
    axes.set_ylabel(label)
    axes.legend()
    return figure


@styled
def draw_schur_forms(forms: Sequence[Mapping[str, Any]]) -> Figure:
    """Sizes of the entries of learned Schur forms above their angles, one column per task.

    Args:
        forms: mappings with ``task``, ``form`` (a square matrix) and ``angles``.
    """
    figure, grid = new_figure(2, len(forms), width=2.5 * len(forms) + 0.6, height=4.4)
    for column, form in enumerate(forms):
        values = numpy.abs(numpy.asarray(form["form"], dtype=float))
        grid[0, column].imshow(values, cmap="magma", vmin=0, vmax=float(numpy.quantile(values, 0.99)) or 1.0)
        grid[0, column].set_title(form["task"])
        grid[0, column].grid(visible=False)
        angles = numpy.mod(numpy.asarray(form["angles"], dtype=float), 2 * numpy.pi)
        grid[1, column].hist(angles, bins=18, range=(0, 2 * numpy.pi), color=PALETTE[0])
        grid[1, column].set_xlabel("angle of a block")
    grid[0, 0].set_ylabel("|Schur form|")
    grid[1, 0].set_ylabel("blocks")
    return figure
