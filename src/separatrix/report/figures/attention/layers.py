"""Figures of attention layers with real weights: their spectra, where they end if frozen, how tokens lean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..house.layout import captioned, legend_outside
from ..house.plots import plots
from ..house.style import PALETTE, faint, ink, new_figure, single_axes, styled

END_COLOURS = {
    "consensus": PALETTE[0],
    "consensus cycle": PALETTE[2],
    "bipartite": PALETTE[4],
    "clustering": PALETTE[1],
    "moving groups": PALETTE[3],
    "resting, not certified": PALETTE[6],
}


@styled
def layer_spectra(rows: Sequence[Mapping[str, Any]], *, title: str) -> Figure:
    """Principal eigenvalue and range of real parts of each layer (left), asymmetry (right); controls beside them.

    Args:
        rows: with ``layer``, ``control``, ``real part``, ``imaginary part``, ``least real part``, ``asymmetry``.
        title: which model.
    """
    figure, axes = new_figure(1, 2, width=8.2, height=3.6, width_ratios=(3, 2))
    left, right = axes[0]
    for row in rows:
        colour, shift = (PALETTE[6], 0.15) if row["control"] else (PALETTE[0], -0.15)
        place = row["layer"] + shift
        left.vlines(place, row["least real part"], row["real part"], color=colour, linewidth=1, alpha=0.6)
        filled = colour if row["imaginary part"] == 0 else "none"
        left.plot(place, row["real part"], "o", mfc=filled, mec=colour, ms=6, mew=1.4)
        right.plot(place, row["asymmetry"], "o", color=colour, ms=5)
    left.axhline(0, color=ink(), linewidth=0.8)
    left.set(xlabel="layer", ylabel=r"real parts of the eigenvalues of $V_S$")
    right.set(xlabel="layer", ylabel=r"asymmetry of $V_S$", ylim=(0, 1.15))
    for ax in (left, right):
        ax.set_xticks(sorted({row["layer"] for row in rows}))
        ax.grid(axis="x", visible=False)
    legend_outside(figure, _spectrum_legend(), at="lower")
    figure.suptitle(title)
    return captioned(
        figure,
        """Value matrices of attention layers with real weights. Left: principal eigenvalue (filled if real, open if
        a complex pair) and the range of real parts; right: asymmetry. Grey: weights drawn anew, for comparison.""",
    )


def _spectrum_legend() -> list[Line2D]:
    def dot(colour: str, filled: bool, label: str) -> Line2D:
        face = colour if filled else "none"
        return Line2D([], [], marker="o", linestyle="", mfc=face, mec=colour, ms=6, mew=1.4, label=label)

    return [
        dot(PALETTE[0], True, "principal, real"),
        dot(PALETTE[0], False, "principal, complex pair"),
        dot(PALETTE[6], True, "weights drawn anew"),
    ]


@styled
def frozen_ends(rows: Sequence[Mapping[str, Any]], *, title: str) -> Figure:
    """Where each start of each frozen layer ends: alignment of the largest group, colour for the kind of end.

    Args:
        rows: with ``layer``, ``control``, ``kind``, ``alignment`` and ``groups``.
        title: which model.
    """
    figure, axes = single_axes(width=7.2, height=3.6)
    seen: dict[tuple[int, bool], int] = {}
    noted: dict[tuple[int, bool], list[tuple[float, str]]] = {}
    for row in rows:
        key = (row["layer"], bool(row["control"]))
        number = seen[key] = seen.get(key, -1) + 1
        place = row["layer"] + (0.22 if row["control"] else -0.28) + 0.1 * number
        marker = "s" if row["control"] else "o"
        axes.plot(place, row["alignment"], marker, color=END_COLOURS[row["kind"]], ms=6)
        if "/" in row["groups"]:
            noted.setdefault((row["layer"], bool(row["control"])), []).append((row["alignment"], _sizes(row["groups"])))
    _note_groups(axes, noted)
    axes.set(xlabel="layer", ylabel="alignment with the principal\neigenvector or plane", ylim=(-0.05, 1.08))
    axes.set_xticks(sorted({row["layer"] for row in rows}))
    axes.grid(axis="x", visible=False)
    kinds = [kind for kind in END_COLOURS if any(row["kind"] == kind for row in rows)]
    handles = [Line2D([], [], marker="o", linestyle="", color=END_COLOURS[kind], label=kind) for kind in kinds]
    if any(row["control"] for row in rows):
        handles.append(Line2D([], [], marker="s", linestyle="", mfc="none", mec=ink(), label="weights drawn anew"))
    legend_outside(figure, handles, at="lower")
    axes.set_title(title)
    return captioned(
        figure,
        """Where the tokens of each layer end if the layer is frozen and repeated, one mark per start: alignment of
        the largest group with the principal eigenvector (or plane), coloured by the kind of end. Squares: weights
        drawn anew.""",
    )


def _note_groups(axes: Axes, noted: Mapping[tuple[int, bool], Sequence[tuple[float, str]]]) -> None:
    """Beside the marks of a layer what groups its tokens formed, one line a start, in the order of the marks."""
    for (layer, control), notes in noted.items():
        middle = sum(alignment for alignment, _ in notes) / len(notes)
        words = "\n".join(text for _, text in notes)
        where: dict[str, Any] = {"xytext": (26 if control else 8, 0), "textcoords": "offset points", "fontsize": 8}
        axes.annotate(words, (layer, middle), va="bottom" if middle < 0.15 else "center", **where)


def _sizes(groups: str) -> str:
    """Sizes of a few groups as they are, the number of many."""
    many = groups.count("/") + 1
    return groups if many <= 3 else f"{many} groups"


@styled
def energy_plot(rows: Sequence[Mapping[str, Any]], *, title: str) -> Figure:
    """Energy in the dominant subspace of each layer, with intervals over texts, against chance and the rotated null.

    Args:
        rows: of the table "Alignment" of a diagnosis.
        title: which model.
    """
    kinds = ("tokens", "update", "output")
    figure, axes = new_figure(1, 3, width=8.6, height=3.3, sharey=True)
    for ax, what in zip(axes[0], kinds, strict=True):
        chosen = [row for row in rows if row["what"] == what and not row["control"]]
        place = numpy.arange(len(chosen))
        mean = numpy.array([row["energy"] for row in chosen])
        half = numpy.array([row["high"] - row["energy"] for row in chosen])
        ax.plot(place, [row["chance"] for row in chosen], color=ink(), linestyle=":", label="chance r/d")
        ax.fill_between(
            place, 0, [row["random high"] for row in chosen], color=faint(), label="random subspaces, 97.5%"
        )
        ax.plot(place, [row["rotated"] for row in chosen], "_", color=PALETTE[1], ms=12, label="rotated values, mean")
        ax.errorbar(place, mean, half, fmt="o", color=PALETTE[0], label="real tokens, 95%")
        ax.set_title(what)
        ax.set_xlabel("layer")
        ax.set_xticks(place)
        ax.grid(axis="x", visible=False)
    axes[0, 0].set_ylabel("energy in the dominant subspace")
    legend_outside(figure, at="lower")
    figure.suptitle(title)
    return captioned(
        figure,
        """Energy of tokens, updates and outputs in the dominant subspace of each layer, with 95 % intervals over
        texts, against chance (dotted), random subspaces (shaded) and rotated values (dashes).""",
    )


@plots("LayerSpectrum")
def draw_layer_spectrum(result: Any, ax: Axes) -> None:
    """Principal eigenvalues of the heads and of the whole layer in the complex plane."""
    heads = result.head_principal.numpy()
    ax.plot(heads.real, heads.imag, "o", color=PALETTE[0], label="heads")
    ax.plot(result.principal.real, result.principal.imag, "D", color=PALETTE[1], label="whole layer")
    ax.axvline(0, color=ink(), linewidth=0.8)
    ax.set(xlabel="real part", ylabel="imaginary part", title=f"Principal eigenvalues: {result.name}")
    ax.legend()
