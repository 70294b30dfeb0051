"""The exact product ``w2 w1`` of one balanced network at many times, batched over times.

The reference is ``BalancedFlow`` (QR per time, any batch, a few units of rounding). Here one Cholesky factorisation per
time does, in a hidden basis in which it is well conditioned; how well is read off the factor, and what is not reliable
to ``ACCURACY`` is not returned. Cost per time and network: about 5 products of n x n matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import final

import numpy
import torch

from .hidden_bases import EPS, HiddenBasis, echelon, given, pivoted
from .network_modes import NetworkModes
from .plain_arrays import Array, PlainNetwork

ACCURACY = 1e-12
"""Largest estimated error of a product relative to its size."""
_ERROR = 10 * EPS
"""Error of a solution whose scaled Cholesky factor has no small pivot."""
_CHUNK_NUMBERS = 2**19
_LATEST = 1e150
_CERTAIN = 1e20
"""A term that has fallen by this factor, times its size, is rounding, whatever the condition of the system is."""


class Unreliable(Exception):
    """No hidden basis gives the product to ``ACCURACY``; ``BalancedFlow`` does."""


@final
class NetworkProduct:
    """Exact products of a network.

    Args:
        network: the weights and the task.
        horizon: the latest time that will be asked for, in units of the flow.
    """

    def __init__(self, network: PlainNetwork, horizon: float) -> None:
        self.network, self.horizon = network, horizon
        self.modes = NetworkModes.of(network)
        self._bases = _bases(self.modes, horizon)
        self.basis = next(self._bases)

    @property
    def fastest(self) -> float:
        """The largest rate."""
        return float(self.modes.rates[0])

    @property
    def weight(self) -> int:
        """Multiplications of one evaluation, up to a factor."""
        return int(self.modes.rows.size * self.modes.rows.shape[1])

    @property
    def settled(self) -> float:
        """A time from which the product is its limit to rounding; infinite where no such time is known.

        Known in the pivoted basis, where the limit is the identity on the fastest modes and every other term falls like
        ``exp(-x t)`` with an exponent x of at least ``slowest``, from a size of at most ``amplitude``.
        """
        modes, basis = self.modes, self.basis
        if not basis.n_unit or not modes.n_growing:
            return math.inf
        growing = basis.gaps[(basis.gaps < 0) & (basis.rows[: len(basis.gaps)] != 0)]
        slowest = min(float(modes.rates[modes.n_growing - 1]), -float(growing.max(initial=-math.inf)))
        memory = 1 / (2 * float(numpy.abs(modes.rates).min())) if modes.rates.all() else math.inf
        weights = float(numpy.vdot(basis.rows, basis.rows)) * min(memory, self.horizon)
        amplitude = 1 + 2 * self.fastest * (float(numpy.abs(basis.gram).max()) + weights)
        return math.log(_CERTAIN * amplitude) / slowest if slowest > 0 else math.inf

    def product(self, times: Array) -> Array:
        """``w2 w1`` at times (n,) in units of the flow, (n, n_out, n_in).

        Raises:
            Unreliable: see there.
        """
        outputs, inputs = self.modes.outputs, self.modes.inputs
        coordinates = self.coordinates(numpy.minimum(times, _LATEST))
        one_side = coordinates.reshape(-1, inputs.shape[1]) @ inputs.T  # one product of matrices for all times
        found: Array = outputs @ one_side.reshape(len(times), -1, inputs.shape[0])
        found[times == 0] = self.network.w2 @ self.network.w1
        return found

    def coordinates(self, times: Array) -> Array:
        """The product in the directions of the modes, in the first basis that is reliable at all of the times."""
        size = max(1, _CHUNK_NUMBERS // max(1, self.modes.rows.size))
        while True:
            parts = []
            for begin in range(0, len(times), size):
                with numpy.errstate(all="ignore"):  # what became NaN or infinite is noticed and not returned
                    part = evaluated(self.modes, self.basis, times[begin : begin + size])
                if part is None:
                    break
                parts.append(part)
            else:
                return parts[0] if len(parts) == 1 else numpy.concatenate(parts)
            following = next(self._bases, None)
            if following is None:
                raise Unreliable
            self.basis = following


def _bases(modes: NetworkModes, horizon: float) -> Iterator[HiddenBasis]:
    """Whatever is promising, cheapest first."""
    makers: tuple[Callable[[], HiddenBasis | None], ...] = (lambda: given(modes, horizon), lambda: pivoted(modes))
    for make in makers:
        basis = make()
        if basis is not None:
            yield basis
    yield echelon(modes)


def evaluated(modes: NetworkModes, basis: HiddenBasis, times: Array) -> Array | None:
    """Mode coordinates of the product at times (n,), or None where rounding may exceed ``ACCURACY``."""
    k, unit, n_times = len(basis.pivots), basis.n_unit, len(times)
    if k == 0 or n_times == 0:
        return numpy.zeros((n_times, modes.outputs.shape[1], modes.inputs.shape[1]))
    n_growing = modes.n_growing - unit
    t = times[:, None]
    shrunk = numpy.exp(-basis.pivots * t)
    memory = _integral(numpy.abs(modes.rates), t)
    states = numpy.empty((n_times, unit + len(basis.rows), k))
    rows = states[:, unit:]
    if n_growing:
        growing = rows[:, :n_growing]
        numpy.multiply(basis.gaps, t[:, :, None], out=growing)
        numpy.exp(growing, out=growing)
        growing *= basis.rows[:n_growing]
    late = rows[:, n_growing:]
    numpy.multiply(basis.rows[n_growing:], shrunk[:, None, :], out=late)
    weighted = numpy.sqrt(memory[:, unit:])[:, :, None] * rows
    system = weighted.transpose(0, 2, 1) @ weighted
    system += shrunk[:, :, None] * basis.gram * shrunk[:, None, :]
    late *= numpy.exp(modes.rates[modes.n_growing :] * t)[:, :, None]
    diagonal = system.reshape(n_times, -1)[:, :: k + 1]
    if unit:
        diagonal += memory[:, :unit]
        states[:, :unit] = numpy.eye(k)
    lower, upper = modes.sides(states)
    return _solved(lower, system, diagonal, upper)


def _solved(lower: Array, system: Array, diagonal: Array, upper: Array) -> Array | None:
    """``lower system^-1 upper'``; the smallest scaled pivot of the Cholesky factor bounds the error."""
    factor, failed = torch.linalg.cholesky_ex(torch.from_numpy(system))
    pivots = factor.diagonal(dim1=-2, dim2=-1).numpy()
    smallest = float(numpy.min(pivots * pivots / diagonal))
    if int(failed.max()) or not smallest >= _ERROR / ACCURACY:
        return None
    solved = torch.cholesky_solve(torch.from_numpy(upper).mT, factor)
    found: Array = numpy.matmul(lower, solved.numpy())
    return found


def _integral(rate: Array, time: Array) -> Array:
    """``int_0^t exp(-2 rate s) ds`` for rates of at least zero."""
    x = 2 * rate * time
    return numpy.where(x < 1e-8, time * (1 - x / 2), -numpy.expm1(-x) / (2 * rate))
