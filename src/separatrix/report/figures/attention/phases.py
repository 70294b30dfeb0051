"""The phase diagram of a head: which splits of its tokens are stable at which inverse temperature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..house.layout import captioned, legend_outside
from ..house.plots import plots
from ..house.style import PALETTE, ink, paper, single_axes, styled

if TYPE_CHECKING:
    from separatrix.diagnose import PhaseDiagram

MARKS = {"consensus": "_", "bipartite": "o", "clustering": "^"}
LABELS = {
    "consensus": "census: consensus",
    "bipartite": "census: opposite groups",
    "clustering": "census: clustering, largest share",
}


@styled
def phase_plot(diagram: PhaseDiagram, *, width: float | int = 6.4, title: str | None = None) -> Figure:
    """A ``PhaseDiagram`` as a figure of its own, ``width`` inches wide."""
    figure, axes = single_axes(width=width, height=max(3.2, 0.62 * width))
    draw_phase_diagram(diagram, axes)
    if title is not None:
        axes.set_title(title)
    return captioned(
        figure,
        """Stable splits of the tokens into two opposite groups over the inverse temperature: a band per
        eigenvector, opening at its critical value (dotted). Marks are ends that a census reached, larger where more
        starts led to them.""",
    )


@plots("PhaseDiagram")
def draw_phase_diagram(result: Any, ax: Axes) -> None:
    """Bands of stable shares n_1/n over beta, the betas where they open, and the ends of the census as marks."""
    betas = numpy.asarray(result.betas)
    for j, k in enumerate(result.eigenvectors):
        _band(ax, betas, numpy.asarray(result.half_width[j]), result.critical[j], PALETTE[j], f"$v_{{{k + 1}}}$", j)
    _census(ax, result)
    ax.set(xlabel=r"inverse temperature $\beta$", ylabel=r"share $n_1/n$ of the tokens", ylim=(-0.04, 1.04))
    if len(betas) > 1:
        ax.set_xlim(betas.min(), betas.max())
    ax.set_title(f"{result.n_tokens} tokens" + (f", {result.n_starts} starts per column" if result.n_starts else ""))
    if ax.get_legend_handles_labels()[1]:
        figure: Any = ax.figure
        legend_outside(figure, *ax.get_legend_handles_labels(), at="lower")


def _band(
    ax: Axes, betas: numpy.ndarray, half_width: numpy.ndarray, critical: float, colour: str, name: str, place: int
) -> None:
    """The stable shares on one eigenvector; the band begins at its critical beta, which no grid hits."""
    opened = half_width > 0
    if not opened.any():
        return
    x, h = betas[opened], half_width[opened]
    if betas.min() < critical < x[0]:
        x, h = numpy.insert(x, 0, critical), numpy.insert(h, 0, 0.0)
    low, high = 1 / (1 + numpy.exp(h)), 1 / (1 + numpy.exp(-h))
    ax.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0, label=f"stable groups on {name}")
    ax.plot(x, low, color=colour)
    ax.plot(x, high, color=colour)
    if betas.min() < critical <= betas.max():
        ax.axvline(critical, color=colour, linestyle=":", linewidth=1)
        ax.annotate(
            rf"$\beta_c = {critical:.3g}$",
            (critical, 0.03 + 0.07 * place),
            xytext=(3, 0),
            textcoords="offset points",
            color=colour,
            fontsize=8,
            annotation_clip=True,
        )


def _census(ax: Axes, result: Any) -> None:
    """A mark per label that was reached, larger for more starts; consensus stands at the upper edge."""
    colours = {f"bipartite v{k + 1}": PALETTE[j] for j, k in enumerate(result.eigenvectors)}
    seen: set[str] = set()
    for end in result.ends:
        kind = "clustering" if end.family.endswith("clustering") else end.family.split(" ")[0]
        if kind not in MARKS:
            continue  # cycles and starts that settled nowhere have no share
        label = LABELS[kind]
        size = 22 + 70 * end.count / max(result.n_starts, 1)
        face = ink() if kind == "consensus" else colours.get(end.family, PALETTE[4])
        options: dict[str, Any] = {} if kind == "consensus" else {"edgecolors": paper(), "linewidths": 0.6}
        ax.scatter(
            end.beta,
            end.share,
            s=size,
            marker=MARKS[kind],
            color=face,
            zorder=3,
            clip_on=False,
            label=None if label in seen else label,
            **options,
        )
        seen.add(label)


@plots("BetaSweep")
def draw_beta_sweep(result: Any, ax: Axes) -> None:
    """Largest real part of each followed state over beta; dotted lines are the thresholds in closed form."""
    for place, state in enumerate(result.states):
        colour = PALETTE[place % 7]
        branch = state.branch
        abscissa = numpy.maximum(numpy.asarray(branch.quotient_abscissa), numpy.asarray(branch.transversal_abscissa))
        ax.plot(numpy.asarray(branch.parameters), abscissa, color=colour, label=state.name)
        if state.predicted is not None and numpy.isfinite(state.predicted):
            ax.axvline(state.predicted, color=colour, linestyle=":", linewidth=1.2)
    ax.axhline(0, color=ink(), linewidth=0.8)
    ax.set(xlabel=r"inverse temperature $\beta$", ylabel="largest real part of the tangent spectrum")
    ax.set_xlim(float(result.betas.min()), float(result.betas.max()))
    ax.set_title(f"{result.n_tokens} tokens; stable below the line")
    if result.states:
        ax.legend()
