"""Drawings of single result objects, for ``separatrix.plot(result)``."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes

from ..house.families import look
from ..house.plots import plots
from ..house.style import PALETTE, ink

_MOST_LINES = 50
"""More members of a batch than this would only paint the axes."""


@plots("FisherMemory")
def draw_fisher_memory(result: Any, ax: Axes) -> None:
    """The memory curve J(k), a line for each matrix of a batch."""
    for curve in _lines(result.curve):
        ax.plot(numpy.arange(curve.shape[0]), numpy.where(curve > 0, curve, numpy.nan))
    ax.set(yscale="log", xlabel="lag k (steps)", ylabel="Fisher memory J(k)")


@plots("BlockSpectrum")
def draw_spectrum(result: Any, ax: Axes) -> None:
    """Tangent eigenvalues of an equilibrium in the complex plane; it is stable if all lie left of the line."""
    values = _array(result.expand()).ravel()
    ax.axvline(0, color=ink(), linewidth=0.8)
    ax.scatter(values.real, values.imag, s=22, alpha=0.6, color=PALETTE[0])
    ax.set(xlabel="real part", ylabel="imaginary part", title=f"{result.kind}, abscissa {float(result.abscissa):.4g}")


@plots("StableCount")
def draw_stable_count(result: Any, ax: Axes) -> None:
    """Stable consensus points on each eigenvector, in powers of two of the 2^n on each."""
    counts = [max(0.0, float(log2)) for log2 in result.log2_stable]
    ax.bar(numpy.arange(1, len(counts) + 1), counts, color=PALETTE[0])
    ax.axhline(result.n_tokens, color=ink(), linewidth=0.8, linestyle=":")
    ax.set(
        xlabel="eigenvector of the value matrix", ylabel="log2 of the stable points", xticks=range(1, len(counts) + 1)
    )


@plots("EquilibriumSolution")
def draw_residuals(result: Any, ax: Axes) -> None:
    """Residual of each sample along the iteration."""
    for trace in _lines(_array(result.trace).reshape(result.trace.shape[0], -1).T):
        ax.plot(numpy.arange(1, len(trace) + 1), numpy.where(trace > 0, trace, numpy.nan), linewidth=1)
    ax.set(yscale="log", xlabel="evaluations of the map", ylabel="residual |f(z) - z|")


@plots("LayerTrajectory")
def draw_losses(result: Any, ax: Axes) -> None:
    """Loss of each network along training."""
    times = _array(result.times)
    for loss in _lines(_array(result.loss).reshape(len(times), -1).T):
        ax.plot(times, loss)
    ax.set(yscale="log", xlabel="time", ylabel="loss")


@plots("Trajectory")
def draw_trajectory(result: Any, ax: Axes) -> None:
    """Distance of each trajectory from its end along time; without frames the tokens at their ends."""
    if result.states is None:
        tokens = _array(result.final).reshape(-1, result.final.shape[-1])
        second = tokens[:, 1] if tokens.shape[1] > 1 else numpy.zeros(len(tokens))
        ax.plot(tokens[:, 0], second, "o", color=PALETTE[0], alpha=0.6)
        ax.set(xlabel="first coordinate", ylabel="second coordinate", title="where the tokens end")
        return
    moved = _array(result.states) - _array(result.final)[..., None, :, :]  # (*batch, frames, tokens, coordinates)
    distance = numpy.sqrt((moved**2).sum((-2, -1)))
    for line in _lines(distance):
        ax.plot(_array(result.times), numpy.where(line > 0, line, numpy.nan))
    ax.set(yscale="log", xlabel="time", ylabel="distance from the end")


@plots("Equilibrium")
def draw_equilibrium(result: Any, ax: Axes) -> None:
    """The clusters in their first two coordinates, larger where more tokens stand; filled if it is stable."""
    places = _array(result.clusters).reshape(-1, _array(result.clusters).shape[-1])
    turn = numpy.linspace(0, 2 * numpy.pi, 200)
    ax.plot(numpy.cos(turn), numpy.sin(turn), color=ink(), linewidth=0.6)
    second = places[:, 1] if places.shape[1] > 1 else numpy.zeros(len(places))
    sizes = 40 + 200 * numpy.asarray(result.sizes, dtype=float)[: len(places)] / max(sum(result.sizes), 1)
    face = PALETTE[0] if result.stable else "none"
    ax.scatter(places[:, 0], second, s=sizes, facecolors=face, edgecolors=PALETTE[0])
    stability = "stable" if result.stable else "unstable"
    ax.set(xlabel="first coordinate", ylabel="second coordinate", title=f"{result.kind}, {stability}", aspect="equal")


@plots("MeanField")
def draw_mean_field(result: Any, ax: Axes) -> None:
    """Spectral radius and variance of the preactivations against the scale of the weights."""
    scale = numpy.sqrt(numpy.atleast_1d(_array(result.weight_var)).ravel())
    for values, label, colour in (
        (result.radius, "spectral radius", PALETTE[0]),
        (result.h_var, "variance of h", PALETTE[1]),
    ):
        column = numpy.broadcast_to(numpy.atleast_1d(_array(values)).ravel(), scale.shape)
        ax.plot(scale, column, "o-" if len(scale) < 20 else "-", color=colour, label=label)
    ax.axhline(1, color=ink(), linewidth=0.8, linestyle="--")
    ax.set(xlabel="scale of the weights √V", ylabel="prediction", title=f"{result.ensemble}, {result.phi}")
    ax.legend()


@plots("DeqAdvice")
def draw_advice(result: Any, ax: Axes) -> None:
    """Spectral radius against the scale, family by family; the star is what is advised."""
    for curve in result.curves:
        colour, _, label = look(curve.family)
        ax.plot(numpy.asarray(curve.weight_scale), numpy.asarray(curve.radius), color=colour, label=label)
    ax.axhspan(*result.target_radius, color=PALETTE[2], alpha=0.12, linewidth=0)
    ax.axhline(1, color=ink(), linewidth=0.8, linestyle="--")
    ax.plot(result.weight_scale, result.radius, "*", markersize=12, color=ink())
    ax.set(xlabel="scale of the weights √V", ylabel="spectral radius", ylim=(0, 1.25))
    ax.legend()


@plots("Branch")
def draw_branch(result: Any, ax: Axes) -> None:
    """Largest real part of the spectrum along a branch of equilibria: stable below zero."""
    abscissa = numpy.maximum(_array(result.quotient_abscissa), _array(result.transversal_abscissa))
    ax.plot(_array(result.parameters), abscissa, color=PALETTE[0])
    ax.axhline(0, color=ink(), linewidth=0.8)
    ax.set(xlabel="parameter", ylabel="largest real part")


@plots("LimitCycle")
def draw_multipliers(result: Any, ax: Axes) -> None:
    """Floquet multipliers and the unit circle: the cycle attracts if all but one lie inside."""
    values = _array(result.multipliers)
    turn = numpy.linspace(0, 2 * numpy.pi, 200)
    ax.plot(numpy.cos(turn), numpy.sin(turn), color=ink(), linewidth=0.8)
    ax.scatter(values.real, values.imag, s=22, color=PALETTE[0], alpha=0.7)
    title = f"Floquet multipliers, period {result.period:.4g}"
    ax.set(xlabel="real part", ylabel="imaginary part", title=title, aspect="equal")


@plots("Metastability")
def draw_metastability(result: Any, ax: Axes) -> None:
    """Speed of the fastest token along time; plateaus are shaded."""
    ax.semilogy(_array(result.times), numpy.maximum(_array(result.speed), 1e-16), color=PALETTE[0])
    for plateau in result.plateaus:
        ax.axvspan(plateau.start, plateau.start + plateau.duration, color=PALETTE[4], alpha=0.15, linewidth=0)
    ax.set(xlabel="time", ylabel="speed of the fastest token")


@plots("Census")
def draw_census(result: Any, ax: Axes) -> None:
    """How often each kind of end was reached, over all instances and starts."""
    totals: dict[str, int] = {}
    for instance in result.instances:
        for family, count in instance.families.items():
            totals[family] = totals.get(family, 0) + count
    names = sorted(totals, key=lambda name: -totals[name])
    starts = sum(instance.n_starts for instance in result.instances)
    ax.barh(names, [totals[name] / max(starts, 1) for name in names], color=PALETTE[0], height=0.6)
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set(xlabel=f"share of {starts} starts", ylabel="kind of end")


@plots("GradientPaths")
def draw_gradient_paths(result: Any, ax: Axes) -> None:
    """Logarithm of the gradient that reaches each step."""
    values = _array(result.log_norms)
    ax.plot(numpy.arange(len(values)), values, color=PALETTE[0])
    ax.set(xlabel="step", ylabel="log of the gradient norm")


@plots("Replay")
def draw_replay(result: Any, ax: Axes) -> None:
    """Which times are kept as relevant at each step."""
    kept = [(step + 1, time) for step, times in enumerate(result.relevant) for time in times]
    if kept:
        steps, times = zip(*kept, strict=True)
        ax.plot(steps, times, "s", markersize=3, color=PALETTE[0])
    ax.set(xlabel="step", ylabel="time of a kept state")


def _array(values: Any) -> numpy.ndarray:
    return numpy.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _lines(values: Any) -> numpy.ndarray:
    """The members of a batch as rows, the first of them if there are many."""
    array = _array(values)
    return array.reshape(-1, array.shape[-1])[:_MOST_LINES]
