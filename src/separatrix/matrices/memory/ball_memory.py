"""Fisher memory in ball arithmetic: every number carries a bound of its own error.

Good delay lines have a noise covariance so ill-conditioned that double precision returns nonsense, sometimes negative
information. Here the same sums run in balls of many bits (python-flint's ``arb``); the tail of each infinite sum is
bounded and added to the radius, and the number of bits doubles until the radii are small. The input matrix counts as
exact. One matrix at a time: the library has no batches.
"""

from __future__ import annotations

import dataclasses
from typing import Any, final

import numpy
from flint import arb, arb_mat, ctx

from separatrix.core import InvalidInput

RELATIVE_RADIUS = 1e-12
ABSOLUTE_RADIUS = 1e-24
MAX_BITS = 1 << 16


@final
@dataclasses.dataclass(frozen=True)
class BallMemory:
    """Midpoints of the balls as doubles, and the bits that were needed."""

    curve: numpy.ndarray
    total: float
    spatial_fisher: numpy.ndarray
    covariance: numpy.ndarray
    trace: float
    bits: int
    radius: float
    """Largest radius of a ball of the curve or the total, relative to its midpoint."""
    is_sharp: bool
    matrix: numpy.ndarray | None = None
    """J_kl of all pairs of lags, where it was asked for."""


def ball_memory(
    recurrent: numpy.ndarray,
    source: numpy.ndarray,
    n_steps: int,
    noise_var: float,
    bits: int,
    *,
    adapt: bool,
    whole: bool = False,
) -> BallMemory:
    """Fisher memory of one stable matrix with ``bits`` bits, or as many as it takes if ``adapt``; the ``whole`` matrix
    of pairs of lags if asked for."""
    while True:
        with ctx.workprec(bits):
            found = _ball_memory(recurrent, source, n_steps, noise_var, bits, whole)
        if found is not None and (found.is_sharp or not adapt):
            return found
        if not adapt:
            raise InvalidInput(f"precision of {bits} bits is too low for this matrix; use 'auto' or {2 * bits} bits.")
        if bits >= MAX_BITS:
            raise InvalidInput(
                f"recurrent is too close to the edge of stability for {MAX_BITS} bits; scale it down first."
            )
        bits *= 2


def _ball_memory(
    recurrent: numpy.ndarray, source: numpy.ndarray, n_steps: int, noise_var: float, bits: int, whole: bool
) -> BallMemory | None:
    size = len(recurrent)
    matrix = arb_mat(recurrent.tolist())
    powers = _squarings(matrix, bits)
    if powers is None:
        return None
    identity = _diagonal([arb(1)] * size)
    covariance = _sum_by_doubling(identity, powers, transpose_first=False)
    try:
        inverse = covariance.solve(identity)
    except ZeroDivisionError:  # the balls are too wide to tell the covariance from a singular matrix
        return None
    spatial = _sum_by_doubling(inverse, powers, transpose_first=True)
    start = arb_mat([[entry] for entry in source.tolist()])
    curve, signals = [], [start]
    for _ in range(n_steps):
        curve.append((signals[-1].transpose() * (inverse * signals[-1]))[0, 0])
        signals.append(matrix * signals[-1])
    total = (start.transpose() * (spatial * start))[0, 0]
    found = _rounded(curve, total, spatial, covariance, noise_var, bits)
    return _with_matrix(found, signals[:-1], inverse, noise_var) if whole and found is not None else found


def _with_matrix(found: BallMemory, signals: list[Any], inverse: Any, noise_var: float) -> BallMemory:
    """All J_kl; one is sharp if its radius is small against the geometric mean of J_kk and J_ll, which bounds it."""
    n_steps = len(signals)
    columns = arb_mat([[signal[i, 0] for signal in signals] for i in range(inverse.nrows())])
    values, radii = _doubles((columns.transpose() * (inverse * columns)).entries())
    scale = numpy.sqrt(numpy.outer(found.curve, found.curve)).ravel() * noise_var
    is_sharp = bool((radii <= RELATIVE_RADIUS * scale + ABSOLUTE_RADIUS).all())
    matrix = values.reshape(n_steps, n_steps) / noise_var
    return dataclasses.replace(found, matrix=matrix, is_sharp=found.is_sharp and is_sharp)


def _squarings(matrix: Any, bits: int) -> list[Any] | None:
    """The powers 1, 2, 4, ... until the sums over them are complete to the working precision."""
    powers = [matrix]
    for _ in range(80):
        size = _frobenius(powers[-1])
        if not size.is_finite():
            return None
        if size < arb(2) ** -bits:
            return powers
        powers.append(powers[-1] * powers[-1])
    return None


def _sum_by_doubling(seed: Any, powers: list[Any], *, transpose_first: bool) -> Any:
    """Enclosure of sum_k M^k S M^kT (or M^kT S M^k) over all k >= 0; the last power only bounds the tail."""
    total = seed
    for power in powers[:-1]:
        left, right = (power.transpose(), power) if transpose_first else (power, power.transpose())
        total = total + left * total * right
    contraction = _frobenius(powers[-1]) ** 2
    tail = _frobenius(total) * contraction / (1 - contraction)
    ball = arb(0, tail.upper())
    size = seed.nrows()
    return total + arb_mat(size, size, [ball] * (size * size))


def _rounded(
    curve: list[Any], total: Any, spatial: Any, covariance: Any, noise_var: float, bits: int
) -> BallMemory | None:
    values, radii = _doubles([*curve, total])
    if not (numpy.isfinite(values).all() and numpy.isfinite(radii).all()):
        return None
    # information is never negative: where a ball reaches below zero, the part above zero is kept
    values = numpy.maximum(values, 0.0)
    allowed = RELATIVE_RADIUS * values + ABSOLUTE_RADIUS
    size = spatial.nrows()
    spatial_values, _ = _doubles(spatial.entries())
    covariance_values, _ = _doubles(covariance.entries())
    shown = values > ABSOLUTE_RADIUS
    return BallMemory(
        curve=values[:-1] / noise_var,
        total=float(values[-1]) / noise_var,
        spatial_fisher=spatial_values.reshape(size, size) / noise_var,
        covariance=covariance_values.reshape(size, size) * noise_var,
        trace=float(spatial.trace().mid()) / noise_var,
        bits=bits,
        radius=float((radii[shown] / values[shown]).max(initial=0.0)),
        is_sharp=bool((radii <= allowed).all()),
    )


def _doubles(balls: list[Any]) -> tuple[numpy.ndarray, numpy.ndarray]:
    middles = numpy.array([float(ball.mid()) for ball in balls])
    radii = numpy.array([float(ball.rad()) for ball in balls])
    return middles, radii


def _frobenius(matrix: Any) -> Any:
    """Upper bound of the Frobenius norm, a ball of radius zero."""
    return sum((entry * entry for entry in matrix.entries()), arb(0)).sqrt().upper()


def _diagonal(entries: list[Any]) -> Any:
    size = len(entries)
    return arb_mat(size, size, [entries[i] if i == j else arb(0) for i in range(size) for j in range(size)])
