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

from .few_threads import inner, matrix_product
from .hidden_bases import HiddenBasis, echelon, given, pivoted
from .network_modes import NetworkModes
from .plain_arrays import Array, PlainNetwork
from .shared_rows import SharedRows
from .small_systems import decaying_integral, scaled_factor, whitened

_CHUNK_NUMBERS = 2**19
_LATEST = 1e150
_MANY_NUMBERS = 2**14
"""Numbers in the states of all times from which it pays to prepare."""
_DEAR = 2**18
"""Multiplications from which a trial that may fail costs more than a look at what will become of it."""
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
        weights = inner(basis.rows, basis.rows) * min(memory, self.horizon)
        amplitude = 1 + 2 * self.fastest * (float(numpy.abs(basis.gram).max()) + weights)
        return math.log(_CERTAIN * amplitude) / slowest if slowest > 0 else math.inf

    def product(self, times: Array) -> Array:
        """``w2 w1`` at times (n,) in units of the flow, (n, n_out, n_in).

        Raises:
            Unreliable: see there.
        """
        moments = numpy.minimum(times, _LATEST)
        found = None
        with numpy.errstate(all="ignore"):  # what became NaN or infinite is noticed and not returned
            while found is None:
                found = self._in_this_basis(moments) if self._promises(moments) else None
                if found is None:
                    self._take_next_basis()
        started = times == 0
        if started.any():
            found[started] = matrix_product(self.network.w2, self.network.w1)
        return found

    def _promises(self, times: Array) -> bool:
        """Whether many times are worth a trial in the present basis: the earliest system is nearly always the worst."""
        if not self.basis.n_unit or len(times) * self.weight < _DEAR:
            return True
        earliest = times[times > 0].min(initial=self.horizon, keepdims=True)
        return scaled_factor(_states_and_system(self.modes, self.basis, earliest)[1]) is not None

    def _in_this_basis(self, times: Array) -> Array | None:
        """The product if the present basis is reliable at all of the times."""
        many = len(times) * self.modes.rows.size >= _MANY_NUMBERS
        if many and SharedRows.fits(self.modes, self.basis, float(times.max())):
            return SharedRows(self.modes, self.basis).product(times)
        size = max(1, _CHUNK_NUMBERS // max(1, self.modes.rows.size))
        parts = []
        for begin in range(0, len(times), size):
            coordinates = evaluated(self.modes, self.basis, times[begin : begin + size])
            if coordinates is None:
                return None
            parts.append(self._lifted(coordinates))
        if not parts:
            return numpy.empty((0, *self.network.target.shape))
        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)

    def _take_next_basis(self) -> None:
        following = next(self._bases, None)
        if following is None:
            raise Unreliable
        self.basis = following

    def _lifted(self, coordinates: Array) -> Array:
        """The product from its coordinates in the directions of the modes."""
        outputs, inputs = self.modes.outputs, self.modes.inputs
        one_side = matrix_product(coordinates.reshape(-1, inputs.shape[1]), inputs.T)  # one product for all times
        return matrix_product(outputs, one_side.reshape(len(coordinates), -1, inputs.shape[0]))


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
    if len(basis.pivots) == 0 or len(times) == 0:
        return numpy.zeros((len(times), modes.outputs.shape[1], modes.inputs.shape[1]))
    states, system = _states_and_system(modes, basis, times)
    factor = scaled_factor(system)
    if factor is None:
        return None
    lower, upper = modes.sides(whitened(factor, states))
    return matrix_product(lower, upper.transpose(0, 2, 1))


def _states_and_system(modes: NetworkModes, basis: HiddenBasis, times: Array) -> tuple[Array, Array]:
    """Rows of all modes (n, m, k) and the matrix ``K^-1`` (n, k, k) of ``hidden_bases`` at times (n,)."""
    k, unit, n_times = len(basis.pivots), basis.n_unit, len(times)
    n_growing = modes.n_growing - unit
    t = times[:, None]
    shrunk = numpy.exp(-basis.pivots * t)
    memory = decaying_integral(numpy.abs(modes.rates), t)
    states = numpy.empty((n_times, unit + len(basis.rows), k))
    rows = states[:, unit:]
    if n_growing:
        growth = basis.gaps * t[:, :, None]
        numpy.exp(growth, out=growth)
        numpy.multiply(growth, basis.rows[:n_growing], out=rows[:, :n_growing])
    late = rows[:, n_growing:]
    numpy.multiply(basis.rows[n_growing:], shrunk[:, None, :], out=late)
    weighted = numpy.sqrt(memory[:, unit:])[:, :, None] * rows
    system = matrix_product(weighted.transpose(0, 2, 1), weighted)
    late *= numpy.exp(modes.rates[modes.n_growing :] * t)[:, :, None]
    diagonals = system.reshape(n_times, -1)[:, :: k + 1]
    if unit:
        system += shrunk[:, :, None] * basis.gram * shrunk[:, None, :]
        diagonals += memory[:, :unit]
        states[:, :unit] = numpy.eye(k)
    else:
        diagonals += shrunk * shrunk
    return states, system
