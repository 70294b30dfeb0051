"""Figures about equilibrium networks: length variance, field variance, spectral radius, convergence, advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from .house.families import look
from .house.layout import captioned, legend_outside, smooth
from .house.style import PALETTE, ink, new_figure, single_axes, styled

Rows = Sequence[Mapping[str, Any]]

_SCALE_CAPTIONS = {
    "h_var": """Variance of the preactivations of hard-tanh equilibrium networks against the scale of their weights.
    Marks: simulated, with two standard errors over matrices; lines: theory, dashed where two families coincide;
    dotted: free independence, drawn where it says something else.""",
    "radius": """Spectral radius of the Jacobian at the equilibrium of hard-tanh networks against the scale of their
    weights. Marks: simulated, with two standard errors over matrices; lines: theory, dashed where two families
    coincide; dotted: free independence. Above the dashed level 1 plain iteration does not converge.""",
}
_LABELS = {"h_var": "variance of the preactivations, h·h / N", "radius": "spectral radius of the Jacobian"}


def _families(rows: Rows) -> list[str]:
    return list(dict.fromkeys(str(row["family"]) for row in rows))


def _column(rows: Rows, name: str) -> numpy.ndarray:
    return numpy.array([numpy.nan if row[name] is None else row[name] for row in rows], dtype=float)


@styled
def length_variance_curves(rows: Rows, width: int) -> Figure:
    """Measured traces and the infinite-width lines against the distance to criticality, on logarithmic axes."""
    figure, axes = single_axes()
    for family in _families(rows):
        colour, marker, label = look(family)
        chosen = [row for row in rows if row["family"] == family]
        delta = _column(chosen, "delta")
        order = numpy.argsort(delta)
        axes.loglog(*smooth(delta[order], _column(chosen, "theory")[order], log=True), color=colour, lw=1)
        axes.loglog(delta, _column(chosen, "measured"), marker, color=colour, label=f"{label}, one matrix per seed")
    axes.plot([], [], color=ink(), lw=1, label="infinite width, theory")
    axes.invert_xaxis()
    axes.set_xlabel(r"distance to criticality $\delta = 1 - V/V_c$ (falls to the right)")
    axes.set_ylabel(r"tr $[(1-W)^{\rm T}(1-W)]^{-2}$")
    axes.legend()
    return captioned(
        figure,
        f"""Length variance of linear equilibrium networks of width {width} as the weights approach the critical scale,
        which lies to the right. Marks: one sampled matrix each; lines: infinite width. Look at the slopes, which differ
        between families, and at where single matrices leave their line.""",
    )


@styled
def scale_curves(rows: Rows, quantity: str) -> Figure:
    """A measured quantity with error bars over matrices, our theory (line) and the document's (dotted)."""
    figure, axes = single_axes()
    for family in _families(rows):
        colour, marker, label = look(family)
        chosen = [row for row in rows if row["family"] == family]
        scale, measured = _column(chosen, "scale"), _column(chosen, quantity)
        error = _column(chosen, f"{quantity}_se")
        theory, document = _column(chosen, f"theory_{quantity}"), _column(chosen, f"document_{quantity}")
        across, up = smooth(scale, theory)
        axes.plot(across, up, color=colour, lw=1.2, label=f"{label}, theory")
        axes.errorbar(
            scale, measured, 2 * error, fmt=marker, ms=6, mfc="none", color=colour, label=f"{label}, simulated"
        )
        if not numpy.allclose(document, theory, rtol=1e-3, equal_nan=True):
            axes.plot(*smooth(scale, document), color=colour, ls=":", label=f"{label}, free independence")
    if quantity == "radius":
        axes.axhline(1, color=ink(), lw=0.8, ls="--")
        axes.set_ylim(0, 1.8)
    axes.set_xlabel("scale of the weights √V")
    axes.set_ylabel(_LABELS[quantity])
    legend_outside(figure)
    return captioned(figure, _SCALE_CAPTIONS[quantity])


@styled
def convergence(rows: Rows, critical: Mapping[str, float], document_goe: float) -> Figure:
    """Change of h at the last step, and where the theories place the transition."""
    figure, axes = single_axes()
    for family in _families(rows):
        colour, marker, label = look(family)
        chosen = [row for row in rows if row["family"] == family]
        change = numpy.maximum(_column(chosen, "change"), 1e-11)
        error = _column(chosen, "change_se")
        scale = _column(chosen, "scale")
        lower = numpy.minimum(2 * error, 0.9 * change)  # a bar below zero has no place on a logarithmic axis
        axes.errorbar(
            scale, change, [lower, 2 * error], fmt=marker, ls="-", lw=0.7, color=colour, capsize=2, label=label
        )
        shared = sum(
            abs(critical[other] - critical[family]) < 1e-3 for other in _families(rows)[: _families(rows).index(family)]
        )
        axes.axvline(critical[family], color=colour, ls=(4 * shared, (4, 4)), lw=1.2)
    goe = look("goe")
    axes.plot([], [], color=ink(), ls=(0, (4, 4)), lw=1.2, label="convergence lost, theory")
    axes.axvline(document_goe, color=goe.colour, ls=":", lw=1.4, label=f"{goe.label}, free independence")
    axes.set_yscale("log")
    axes.set_xlabel("scale of the weights √V")
    axes.set_ylabel(r"$|h_{t+1} - h_t|$ at the last step")
    legend_outside(figure)
    return captioned(
        figure,
        """Change of the state at the last step of plain iteration against the scale of the weights, with two
        standard errors over matrices. Vertical lines: where theory places the loss of convergence (two families
        share one), dotted where free independence would place it for GOE. Look at where the change leaves rounding
        level.""",
    )


@styled
def theory_against_simulation(rows: Rows) -> Figure:
    """Measured over predicted, minus 1, with error bars over matrices, one line per case."""
    quantities = [name for name in ("h_var", "radius") if any(row.get(name) is not None for row in rows)]
    tall = 0.35 * len(rows) + 1.3
    stacked = [0.7 * tall] * len(quantities)
    figure, grid = new_figure(1, len(quantities), width=8.4, height=tall, sharey=True, stacked=stacked)
    position = numpy.arange(len(rows))
    for axes, quantity in zip(grid[0], quantities, strict=True):
        theory = _column(rows, f"theory_{quantity}")
        ratio = _column(rows, quantity) / theory - 1
        axes.errorbar(ratio, position, xerr=2 * _column(rows, f"{quantity}_se") / theory, fmt="o", capsize=2)
        axes.axvline(0, color=ink(), lw=0.8)
        axes.set_xlabel(f"measured / theory − 1\n{_LABELS[quantity]}")
        axes.margins(y=0.08)
        axes.locator_params(axis="x", nbins=5)
    grid[0, 0].set_yticks(position, [f"{look(row['family']).label}, {row['phi']}, {row['scale']:.2g}" for row in rows])
    grid[0, 0].set_ylabel("family, activation, scale")
    grid[0, 0].invert_yaxis()
    return captioned(
        figure,
        """Cavity theory against simulation, one line per family, activation and scale: measured over predicted,
        minus 1, with two standard errors over matrices. Bars that cross zero agree.""",
    )


@styled
def moments(rows: Rows) -> Figure:
    """Measured moments of linear networks against their closed forms, tied and untied."""
    figure, axes = single_axes()
    for tied, marker in ((True, "o"), (False, "^")):
        chosen = [row for row in rows if row["tied"] == tied]
        theory = _column(chosen, "theory")
        axes.errorbar(
            theory,
            _column(chosen, "measured") / theory,
            4 * _column(chosen, "error") / theory,
            fmt=marker,
            capsize=2,
            label="one matrix for all steps" if tied else "a new matrix at every step",
        )
    axes.axhline(1, color=ink(), lw=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("closed form")
    axes.set_ylabel("measured / closed form")
    axes.legend()
    return captioned(
        figure,
        """Moments of linear equilibrium networks: measured over closed form, with 4 standard errors over matrices,
        for one matrix at all steps and for a new matrix at every step. All bars should cross 1.""",
    )


@styled
def forecast(rows: Rows) -> Figure:
    """Forecast and counted iterations of plain iteration, mean and largest over inputs."""
    figure, axes = single_axes(width=5.6, height=4.6)
    for family in _families(rows):
        colour, marker, label = look(family)
        chosen = [row for row in rows if row["family"] == family]
        predicted = _column(chosen, "forecast")
        axes.loglog(predicted, _column(chosen, "mean"), marker, color=colour, label=f"{label}, mean")
        axes.loglog(predicted, _column(chosen, "largest"), marker, color=colour, mfc="none", label=f"{label}, largest")
    limits = numpy.array([0.8 * _column(rows, "forecast").min(), 1.3 * _column(rows, "forecast").max()])
    axes.plot(limits, limits, color=ink(), lw=0.8)
    axes.fill_between(limits, 0.75 * limits, 1.25 * limits, color=ink(), alpha=0.08, lw=0)
    ticks = [tick for tick in (10, 20, 50, 100, 200, 500, 1000, 2000) if limits[0] <= tick <= limits[1]]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("forecast: ln(tol) / ln(radius)")
    axes.set_ylabel("counted iterations")
    axes.legend(ncols=2)
    return captioned(
        figure,
        """Iterations that plain iteration needed against those forecast from the spectral radius; the grey band is
        25 % either way. Filled: mean over inputs; open: the slowest input. Large forecasts belong to scales near
        the critical one.""",
    )


@styled
def advice(result: Any) -> Figure:
    """The picture of an advice: spectral radius and iterations against the scale, family by family."""
    figure, grid = new_figure(1, 2, width=8.4, height=3.6)
    left, right = grid[0]
    for place, curve in enumerate(result.curves):
        colour, _, label = look(curve.family)
        scale, radius = numpy.asarray(curve.weight_scale), numpy.asarray(curve.radius)
        covered = sum(numpy.allclose(radius, later.radius, equal_nan=True) for later in result.curves[place + 1 :])
        thick = 1.5 + 2 * covered  # seen below the curves that are the same
        left.plot(scale, radius, color=colour, lw=thick)
        right.semilogy(scale, numpy.asarray(curve.iterations), color=colour, lw=thick, label=label)
        left.axvline(curve.critical_scale, color=colour, ls="--", lw=0.8)
    left.axhspan(*result.target_radius, color=PALETTE[2], alpha=0.12, lw=0)
    left.axhline(1, color=ink(), lw=0.8, ls="--")
    _mark(left, right, result)
    left.set(xlabel="scale of the weights √V", ylabel="spectral radius", ylim=(0, 1.25))
    left.set_title("Stability; band: target, dashed: critical scales")
    right.set(xlabel="scale of the weights √V", ylabel=f"iterations to {result.tol:g}", ylim=(1, 1e4))
    right.set_title("Forecast of plain iteration")
    right.legend(loc="lower right")
    return figure


def _mark(left: Axes, right: Axes, result: Any) -> None:
    colour = next(look(curve.family).colour for curve in result.curves if curve.ensemble == result.ensemble)
    left.plot(result.weight_scale, result.radius, "*", ms=12, color=colour, mec=ink(), mew=0.5, zorder=5)
    right.plot(result.weight_scale, result.iterations, "*", ms=12, color=colour, mec=ink(), mew=0.5, zorder=5)
