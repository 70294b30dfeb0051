"""Drawings of recurrent networks in training: curves of several models, what their Schur forms became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.figure import Figure

from ..house.layout import captioned, legend_outside, mark, one_place
from ..house.models import is_model, line_of, model_look
from ..house.style import PALETTE, ink, new_figure, single_axes, styled


@styled
def draw_over_steps(
    curves: Sequence[Mapping[str, Any]], label: str, across: str = "step of the sequence", *, caption: str
) -> Figure:
    """One line per model, or per case of one model, against the place along a sequence.

    Args:
        curves: mappings with ``model`` and ``curve``.
        label: of the vertical axis.
        across: of the horizontal axis.
        caption: what is shown, and what to look at.
    """
    figure, axes = single_axes(width=5.6, height=3.4)
    for place, curve in enumerate(curves):
        look = model_look(curve["model"])
        colour = look.colour if is_model(curve["model"]) else PALETTE[place % len(PALETTE)]
        axes.plot(curve["curve"], color=colour, label=look.label)
    axes.set_xlabel(across)
    axes.set_ylabel(label)
    axes.legend()
    return captioned(figure, caption)


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
    for model in dict.fromkeys(curve["model"] for curve in curves):
        colour, marker, name = model_look(model)
        own = [curve for curve in curves if curve["model"] == model]
        for curve in own:
            axes.plot(curve["steps"], curve["values"], color=colour, linewidth=0.5, alpha=0.45, ls=line_of(model))
        length = min(len(curve["steps"]) for curve in own)
        middle = numpy.median([curve["values"][:length] for curve in own], axis=0)
        drawn: dict[str, Any] = {
            "color": colour,
            "linewidth": 2.0,
            "label": name,
            "ls": line_of(model),
            "marker": mark(middle, marker),
        }
        axes.plot(own[0]["steps"][:length], middle, **drawn)
    if baseline is not None:
        axes.axhline(baseline, color=ink(), linewidth=0.8, linestyle=":", label="no memory")
    if logarithmic:
        axes.set_yscale("log")
    axes.set_xlabel("training step")
    axes.set_ylabel(label)
    legend_outside(figure)
    told, beside = (
        label[0].upper() + label[1:],
        "; dotted is what can be had without memory" if baseline is not None else "",
    )
    if one_place(axes, (step for curve in curves for step in curve["steps"])):
        return captioned(figure, f"{told}, measured once: median of each network{beside}. There is no course to see.")
    return captioned(
        figure,
        f"""{told} during training: thin lines are single seeds, thick ones the median of each network{beside}.""",
    )


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
        grid[0, column].set_xlabel("column")
        angles = numpy.mod(numpy.asarray(form["angles"], dtype=float), 2 * numpy.pi)
        grid[1, column].hist(angles, bins=18, range=(0, 2 * numpy.pi), color=PALETTE[0])
        grid[1, column].set_xlabel("angle of a block (radians)")
    grid[0, 0].set_ylabel("row of |Schur form|")
    grid[1, 0].set_ylabel("number of blocks")
    return captioned(
        figure,
        """Learned Schur forms of the recurrent matrix, a column per task: sizes of the entries (top; the brighter,
        the larger) and angles of the eigenvalues (bottom). Look at how much lies below the diagonal, the non-normal
        part.""",
    )
