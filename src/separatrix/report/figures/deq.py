"""Figures about equilibrium networks: length variance, field variance, spectral radius, convergence, advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from .families import look
from .style import PALETTE, ink, new_figure, single_axes, styled

Rows = Sequence[Mapping[str, Any]]

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
        axes.loglog(delta[order], _column(chosen, "theory")[order], color=colour, lw=1)
        axes.loglog(delta, _column(chosen, "measured"), marker, color=colour, label=f"{label}, one matrix per seed")
    axes.invert_xaxis()
    axes.set_xlabel(r"distance to criticality, $\delta = 1 - V/V_c$")
    axes.set_ylabel(r"tr $[(1-W)^{\rm T}(1-W)]^{-2}$")
    axes.set_title(f"Length variance of linear equilibrium networks, width {width}; lines: infinite width")
    axes.legend()
    return figure


@styled
def scale_curves(rows: Rows, quantity: str) -> Figure:
    """A measured quantity with error bars over matrices, our theory (line) and the document's (dotted)."""
    figure, axes = single_axes()
    for family in _families(rows):
        colour, marker, label = look(family)
        chosen = [row for row in rows if row["family"] == family]
        scale, measured = _column(chosen, "scale"), _column(chosen, quantity)
        error = _column(chosen, f"{quantity}_se")
        axes.errorbar(scale, measured, 2 * error, fmt=marker, color=colour, capsize=2, label=f"{label}, simulated")
        axes.plot(scale, _column(chosen, f"theory_{quantity}"), color=colour, lw=1.2, label=f"{label}, theory")
        document = _column(chosen, f"document_{quantity}")
        if not numpy.allclose(document, _column(chosen, f"theory_{quantity}"), rtol=1e-3, equal_nan=True):
            axes.plot(scale, document, color=colour, ls=":", label=f"{label}, free independence")
    if quantity == "radius":
        axes.axhline(1, color=ink(), lw=0.8, ls="--")
        axes.set_ylim(0, 1.8)
    axes.set_xlabel("scale of the weights √V")
    axes.set_ylabel(_LABELS[quantity])
    axes.set_title("Hard-tanh equilibrium networks; bars: two standard errors over matrices")
    axes.legend(ncols=2)
    return figure


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
        axes.axvline(critical[family], color=colour, ls="--", lw=1.2)
    goe = look("goe")
    axes.axvline(document_goe, color=goe.colour, ls=":", lw=1.4, label=f"{goe.label}, free independence")
    axes.set_yscale("log")
    axes.set_xlabel("scale of the weights √V")
    axes.set_ylabel(r"$|h_{t+1} - h_t|$ at the last step")
    axes.set_title("Loss of convergence of plain iteration; dashed: predicted by theory")
    axes.legend()
    return figure


@styled
def theory_against_simulation(rows: Rows) -> Figure:
    """Measured over predicted, minus 1, with error bars over matrices, one line per case."""
    quantities = [name for name in ("h_var", "radius") if any(row.get(name) is not None for row in rows)]
    figure, grid = new_figure(1, len(quantities), width=8.4, height=0.35 * len(rows) + 1.3, sharey=True)
    position = numpy.arange(len(rows))
    for axes, quantity in zip(grid[0], quantities, strict=True):
        theory = _column(rows, f"theory_{quantity}")
        ratio = _column(rows, quantity) / theory - 1
        axes.errorbar(ratio, position, xerr=2 * _column(rows, f"{quantity}_se") / theory, fmt="o", capsize=2)
        axes.axvline(0, color=ink(), lw=0.8)
        axes.set_xlabel(f"measured / theory − 1\n{_LABELS[quantity]}")
        axes.margins(y=0.08)
    grid[0, 0].set_yticks(position, [f"{row['family']}, {row['phi']}, {row['scale']:.2g}" for row in rows])
    grid[0, 0].invert_yaxis()
    figure.suptitle("Cavity theory against simulation; bars are two standard errors over matrices", fontsize=10)
    return figure


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
    axes.set_title("Moments of linear equilibrium networks; bars are 4 standard errors")
    axes.legend()
    return figure


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
    axes.set_title("Forecast of iterations; the band is 25% either way")
    axes.legend(ncols=2)
    return figure


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
