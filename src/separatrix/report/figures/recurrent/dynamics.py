"""Figures of recurrent networks: fixed points in a plane with the motion around them, branches, spectra, gradients."""

from __future__ import annotations

from typing import Any

import numpy
from matplotlib.axes import Axes

from separatrix.core.errors import InvalidInput

from ..house.layout import mark
from ..house.plots import plots
from ..house.style import PALETTE, SEQUENTIAL, faint, ink

_MOST_VISITED = 800


@plots("FixedPoints")
def draw_fixed_points(result: Any, ax: Axes) -> None:
    """Fixed points among the visited states in their first two principal components, arrows for the motion.

    The arrows and the visited states are those of the first input; points at other inputs are drawn too.
    """
    plane = result.plane
    if plane is None:
        raise InvalidInput("result must have states of at least two numbers to be drawn in a plane.")
    grid, field = plane.grid.numpy(), plane.field.numpy()
    length = numpy.linalg.norm(field, axis=1, keepdims=True)
    shown = field / numpy.maximum(length, 1e-300) * numpy.sqrt(length / max(length.max(), 1e-300))
    ax.quiver(*grid.T, *shown.T, color=faint(), width=0.003, zorder=0)
    visited = plane.visited.numpy()[:_MOST_VISITED]
    ax.scatter(visited[:, 0], visited[:, 1], s=4, color=PALETTE[6], alpha=0.4, linewidths=0, label="visited", zorder=1)
    _scatter(ax, plane.project(result.slow_states), "d", PALETTE[4], "slow point")
    places = plane.project(result.states)
    _scatter(ax, places[~result.stable], "X", PALETTE[1], "unstable")
    _scatter(ax, places[result.stable], "o", PALETTE[0], "stable")
    first, second = (100 * float(share) for share in plane.share)
    ax.set(xlabel=f"first component ({first:.0f} %)", ylabel=f"second component ({second:.0f} %)")
    ax.legend(loc="best")


@plots("InputBranch")
def draw_input_branch(result: Any, ax: Axes) -> None:
    """Largest modulus of an eigenvalue along the way, solid where the fixed point is stable."""
    at, radius = result.parameters.numpy(), result.radius.numpy()
    stable = result.stable.numpy()
    ax.plot(at, numpy.where(stable, radius, numpy.nan), marker=mark(at), color=PALETTE[0], label="stable")
    ax.plot(at, numpy.where(stable, numpy.nan, radius), "--", marker=mark(at), color=PALETTE[1], label="unstable")
    for place in result.event_parameters.tolist():
        ax.axvline(place, color=ink(), linewidth=0.8, linestyle=":")
    ax.axhline(1, color=ink(), linewidth=0.8)
    ax.set(xlabel="from the first input (0) to the last (1)", ylabel="largest |eigenvalue|")
    ax.legend(loc="best")


@plots("BlockMeasures")
def draw_eigenvalues(result: Any, ax: Axes) -> None:
    """Eigenvalues of a recurrent matrix and the unit circle."""
    values = result.eigenvalues.numpy()
    turn = numpy.linspace(0, 2 * numpy.pi, 200)
    ax.plot(numpy.cos(turn), numpy.sin(turn), color=ink(), linewidth=0.8)
    ax.scatter(values.real, values.imag, s=12, alpha=0.7, color=PALETTE[0])
    title = f"{result.gate}: radius {result.spectral_radius:.4g}, relative Henrici {result.relative_henrici:.3f}"
    ax.set(xlabel="real part", ylabel="imaginary part", title=title, aspect="equal")


@plots("LayerReport")
def draw_layer(result: Any, ax: Axes) -> None:
    """What a layer does along its run, its exponents; without a run the eigenvalues of all its matrices."""
    if result.spectrum is not None:
        draw_exponents(result.spectrum, ax)
        ax.set_title(f"{result.name or result.kind}: top exponent {float(result.spectrum.exponents[0]):+.4f} a step")
        return
    _draw_all_eigenvalues([result], ax)


@plots("RecurrentReport")
def draw_recurrent_report(result: Any, ax: Axes) -> None:
    """Exponents of all layers that were run, one colour each; without a run the eigenvalues of their matrices."""
    if not result.layers:
        raise InvalidInput("result must hold a layer to be drawn; draw the parts of result.linear one by one.")
    ran = [layer for layer in result.layers if layer.spectrum is not None]
    if not ran:
        _draw_all_eigenvalues(result.layers, ax)
        return
    ax.axhline(0, color=ink(), linewidth=0.8)
    for number, layer in enumerate(ran):
        values = layer.spectrum.exponents.numpy()
        errors = numpy.nan_to_num(layer.spectrum.standard_errors.numpy())
        shown = numpy.isfinite(values)
        places = numpy.arange(1, len(values) + 1)[shown]
        name, colour = layer.name or layer.kind, PALETTE[number % len(PALETTE)]
        ax.errorbar(places, values[shown], errors[shown], fmt=".", color=colour, label=name)
    ax.set(xlabel="number", ylabel="Lyapunov exponent per step", title=result.inputs_are)
    ax.legend(loc="best")


def _draw_all_eigenvalues(layers: Any, ax: Axes) -> None:
    turn = numpy.linspace(0, 2 * numpy.pi, 200)
    ax.plot(numpy.cos(turn), numpy.sin(turn), color=ink(), linewidth=0.8)
    blocks = [(layer.name or layer.kind, block) for layer in layers for block in layer.blocks]
    for number, (name, block) in enumerate(blocks):
        values = block.eigenvalues.numpy()
        ax.scatter(
            values.real, values.imag, s=8, alpha=0.6, color=PALETTE[number % len(PALETTE)], label=f"{name} {block.gate}"
        )
    gated = any(layer.gated for layer in layers)
    title = "eigenvalues of recurrent matrices" + ("; no sign of (in)stability behind gates" if gated else "")
    ax.set(xlabel="real part", ylabel="imaginary part", title=title, aspect="equal")
    if blocks:
        ax.legend(loc="best")


@plots("SchurPicture")
def draw_schur_form(result: Any, ax: Axes) -> None:
    """Moduli of the entries of the Schur form, modes by falling modulus of their eigenvalue."""
    image = ax.imshow(numpy.log10(numpy.maximum(result.form.numpy(), 1e-6)), cmap=SEQUENTIAL)
    ax.figure.colorbar(image, ax=ax, label="log10 |entry|")
    ax.grid(False)
    ax.set(xlabel="from mode", ylabel="to mode")


@plots("LyapunovSpectrum")
def draw_exponents(result: Any, ax: Axes) -> None:
    """Exponents per step with their standard errors; those that are minus infinity are counted in the title."""
    values, errors = result.exponents.numpy(), numpy.nan_to_num(result.standard_errors.numpy())
    shown = numpy.isfinite(values)
    ax.axhline(0, color=ink(), linewidth=0.8)
    ax.errorbar(numpy.arange(1, len(values) + 1)[shown], values[shown], errors[shown], fmt=".", color=PALETTE[0])
    title = f"{result.n_extinguished} directions extinguished" if result.n_extinguished else ""
    ax.set(xlabel="number", ylabel="Lyapunov exponent per step", title=title)


@plots("GradientFlow")
def draw_gradients(result: Any, ax: Axes) -> None:
    """Logarithms of gradients and of products of Jacobians against the number of steps."""
    ax.plot(result.lags.numpy(), result.log_norms.numpy(), color=PALETTE[0], label="gradient")
    ax.plot(result.product_lags.numpy(), result.product_log_norms.numpy(), "--", color=PALETTE[1], label="product")
    ax.axhline(0, color=ink(), linewidth=0.8)
    ax.set(xlabel="steps", ylabel="log of the norm")
    ax.legend(loc="best")


@plots("LinearRecurrence")
def draw_time_constants(result: Any, ax: Axes) -> None:
    """Time constants of all modes, the longest first; those that never forget stand at the top."""
    values = result.time_constants.numpy()
    finite = values[numpy.isfinite(values)]
    top = 10 * finite.max() if len(finite) else 1.0
    ax.plot(numpy.arange(1, len(values) + 1), numpy.where(numpy.isfinite(values), values, top), ".", color=PALETTE[0])
    ax.set(yscale="log", xlabel="mode", ylabel="time constant (steps)", title=result.name)


def _scatter(ax: Axes, places: Any, marker: str, colour: str, label: str) -> None:
    if len(places):
        across, up = places.numpy().T
        ax.scatter(across, up, s=45, marker=marker, color=colour, edgecolors=ink(), linewidths=0.6, label=label)
