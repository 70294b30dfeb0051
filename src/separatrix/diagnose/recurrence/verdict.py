"""What the numbers of a recurrent layer say, in sentences that name their thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from .blocks import BlockMeasures
from .exponents import LyapunovSpectrum
from .gradients import GradientFlow
from .memory import LinearisedMemory

EDGE = 0.005
"""Growth per step below which, either way, a run counts as being at the edge of chaos."""
SURE = 3.0
"""Standard errors by which an exponent must differ from zero to be called so."""
NON_NORMAL = 0.5
"""Relative Henrici departure from which on a matrix is called strongly non-normal."""

AT_REST = 1e-9
"""Largest change of an entry in a step, over the largest entry (or one), of a run that does not move."""
GROWN = 10.0
"""How much larger states must be in the last quarter of a run than in the first for the run to count as growing."""


def radius_sentence(blocks: Sequence[BlockMeasures], kind: str, *, gated: bool, called: bool) -> str:
    """What may be said of the spectral radius; of a gated network, that it may not be judged by it."""
    if not blocks:
        return ""
    largest = max(block.spectral_radius for block in blocks)
    if gated and not called:
        return (
            f"Not judged by its recurrent matrices: their largest spectral radius is {largest:.4g}, but the gates of "
            f"the {kind} scale the state, so that it is no sign of instability (or of stability). See the exponents "
            "and gradients along a run."
        )
    if called:
        return (
            f"Not judged by its matrix (spectral radius {largest:.4g}): what stands between two states besides it is "
            "known by calls alone. See the exponents and gradients along a run."
        )
    side = "so small states grow" if largest > 1 else "so small states fade"
    return f"Spectral radius {largest:.4g} before the nonlinearity, {side} in the end where no unit is saturated."


def normality_sentence(blocks: Sequence[BlockMeasures]) -> str:
    """How far the matrices are from being normal."""
    if not blocks:
        return ""
    most = max(blocks, key=lambda block: block.relative_henrici)
    word = "Strongly" if most.relative_henrici >= NON_NORMAL else "Not strongly"
    return (
        f"{word} non-normal: relative Henrici departure {most.relative_henrici:.3f} ({most.gate}; strong from "
        f"{NON_NORMAL:g} on)."
    )


def exponent_sentence(spectrum: LyapunovSpectrum, states: Float[Tensor, "batch t n"]) -> str:
    """Chaos, order or the edge between them; growth is chaos only in a run that moves and stays bounded.

    Args:
        spectrum: the exponents.
        states: of the run, from its beginning.
    """
    top, error = float(spectrum.exponents[0]), float(spectrum.standard_errors[0])
    if math.isnan(error):
        return f"Not judged: top exponent {top:+.4f} over {_steps(spectrum.n_steps)}, too few to tell its error."
    shown = f"top exponent {top:+.4f} +- {error:.4f} a step over {_steps(spectrum.n_steps)}"
    doubt = SURE * error if math.isfinite(error) else 0.0
    if top == -math.inf:
        return f"Every direction is extinguished: {shown}."
    if abs(top) <= max(EDGE, doubt):
        return f"Edge of chaos: {shown} (within {EDGE:g}, or {SURE:g} standard errors, of zero)."
    if top > 0:
        return _growth_sentence(shown, states[:, spectrum.warm_up :])
    return f"Ordered on these inputs: {shown}; the past is forgotten in about {-1 / top:.3g} steps."


def _growth_sentence(shown: str, states: Float[Tensor, "batch t n"]) -> str:
    size = states.abs().amax((0, 2))
    moved = (states[:, 1:] - states[:, :-1]).abs().amax()
    if float(moved) <= AT_REST * max(1.0, float(size.max())):
        return (
            f"Unstable point of rest: {shown}, but the run never leaves the point where it began, so this says nothing "
            "of where a network goes that is pushed off it; run it on other inputs."
        )
    quarter = max(1, len(size) // 4)
    early, late = float(size[:quarter].max()), float(size[-quarter:].max())
    if late > GROWN * early:
        return f"Growing: {shown}, and states are {late / max(early, 1e-300):.3g} times as large in the end; not chaos."
    return f"Chaotic on these inputs: {shown}; small differences grow."


def _steps(number: int) -> str:
    return "1 step" if number == 1 else f"{number} steps"


def gradient_sentence(flow: GradientFlow) -> str:
    """How far gradients reach."""
    steps, length = flow.steps_to_e, len(flow.lags)
    if math.isnan(steps):
        return "Gradients: the run is too short to fit a rate."
    if steps == 0:
        return "Gradients vanish exactly within the run: units are switched off."
    if abs(steps) > 10 * length:
        return f"Gradients neither fall nor grow by a factor e within ten times the {length} steps of the run."
    way = "fall to 1/e" if steps > 0 else "grow by e"
    return f"Gradients {way} in {abs(steps):.3g} steps (fitted on the older half of {length} steps)."


def memory_sentence(memory: LinearisedMemory) -> str:
    """The memory of the linearisation, or why there is none."""
    if memory.totals is None:
        return f"No Fisher memory of the linearisation: {memory.reason}."
    size = len(memory.linearisation)
    return (
        f"Fisher memory of the linearisation at the mean state: {float(memory.totals.max()):.3g} for the best input, "
        f"at most {float(memory.spatial_eigenvalues[0]):.3g} for any direction (1 for a normal matrix, {size} units)."  # type: ignore[index]
    )
