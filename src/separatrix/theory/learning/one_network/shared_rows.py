"""The exact product of a small network at many times, all of them in a few products of matrices.

Where the modes that hold a column of the hidden basis differ little in growth until the last time, one growth divides
all columns, that of the slowest. Then a mode is a row that never changes, times a number that depends on time,

    K^-1 = sum over modes of w(t) b b',   output side = sum over modes of a(t) e b',   input side likewise,

and each sum is one product (times, modes) x (modes, numbers) for all times, with constants that stay in the cache. What
is left per time is a Cholesky factorisation, a solution and a product. ``network_product.evaluated`` is the twin.
"""

from __future__ import annotations

from typing import final

import numpy
import torch

from .few_threads import matrix_product
from .hidden_bases import HiddenBasis
from .network_modes import NetworkModes
from .plain_arrays import Array
from .small_systems import decaying_integral, scaled_factor

_MOST_CONSTANTS = 2**16
_LARGEST_EXPONENT = 150.0
"""Twice as much on either side of a system still is an ordinary number."""
_FADED = 1e-100
"""Less than this next to one is nothing; products of such numbers are no ordinary numbers, with which processors are
slow."""


@final
class SharedRows:
    """A network in a hidden basis.

    Args:
        modes: of the network.
        basis: any.
    """

    def __init__(self, modes: NetworkModes, basis: HiddenBasis) -> None:
        k = len(basis.pivots)
        rows = numpy.concatenate([numpy.eye(basis.n_unit, k), basis.rows])
        to_outputs, to_inputs = modes.to_sides()
        self.basis, self.rates, self.n_growing = basis, numpy.abs(modes.rates), modes.n_growing
        self.outputs = _spread(to_outputs.T, rows)
        self.inputs = _spread(to_inputs.T, rows)
        self.squares = numpy.concatenate([_spread(rows, rows), basis.gram.reshape(1, -1)])

    @staticmethod
    def fits(modes: NetworkModes, basis: HiddenBasis, horizon: float) -> bool:
        """Whether the constants are few and the growths alike."""
        k = len(basis.pivots)
        constants = modes.rows.size * (k + modes.inputs.shape[0] + modes.outputs.shape[0])
        return k > 0 and constants <= _MOST_CONSTANTS and float(basis.excess[0]) * horizon <= _LARGEST_EXPONENT

    def product(self, times: Array) -> Array | None:
        """``w2 w1`` at times (n,), (n, n_out, n_in), or None where rounding may exceed ``ACCURACY``."""
        k, t, n_growing = len(self.basis.pivots), times[:, None], self.n_growing
        growth, fading = _unless_faded(self.basis.excess * t), _unless_faded(-self.basis.slowest * t)
        weights = numpy.empty((len(times), len(self.squares)))
        weights[:, n_growing:] = fading * fading
        numpy.square(growth[:, :n_growing], out=weights[:, :n_growing])
        weights[:, :-1] *= decaying_integral(self.rates, t)
        factor = scaled_factor(matrix_product(weights, self.squares).reshape(-1, k, k))
        if factor is None:
            return None
        sides = (matrix_product(growth, part) for part in (self.outputs, self.inputs))
        outputs, inputs = (side.reshape(len(times), -1, k) for side in sides)
        if outputs.shape[1] <= inputs.shape[1]:
            return matrix_product(_solved(factor, outputs).transpose(0, 2, 1), inputs.transpose(0, 2, 1))
        return matrix_product(outputs, _solved(factor, inputs))


def _solved(factor: Array, side: Array) -> Array:
    """``K side'`` by two triangular solutions, which take less than ``cholesky_solve`` with its copies."""
    lower = torch.from_numpy(factor)
    half = torch.linalg.solve_triangular(lower, torch.from_numpy(side).mT, upper=False)
    found: Array = torch.linalg.solve_triangular(lower.mT, half, upper=True).numpy()
    return found


def _unless_faded(exponent: Array) -> Array:
    found: Array = numpy.exp(exponent)
    found[found < _FADED] = 0.0
    return found


def _spread(sides: Array, rows: Array) -> Array:
    """Outer products of sides (modes, s) and rows (modes, k), (modes, s k)."""
    return (sides[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
