"""Drawings of single result objects, for ``separatrix.plot(result)``."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes

from .plots import plots
from .style import PALETTE, ink

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


def _array(values: Any) -> numpy.ndarray:
    return numpy.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _lines(values: Any) -> numpy.ndarray:
    """The members of a batch as rows, the first of them if there are many."""
    array = _array(values)
    return array.reshape(-1, array.shape[-1])[:_MOST_LINES]
