"""Which networks the fast path takes: one network of plain numbers in double precision that is clearly balanced.

Whatever else there is (batches, single precision, other devices, gradients, weights near the edge of what counts as
balanced, bad input) goes to ``BalancedFlow``, which judges it and finds the words.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import transforms_active

from .few_threads import Array as Array, inner, matrix_product

_BALANCED = 1e-9
"""A tenth of what ``BalancedFlow`` allows."""


class PlainNetwork(NamedTuple):
    """Weights, task and balance of one network."""

    w1: Array
    w2: Array
    target: Array
    balance: float


def plain_network(w1: Any, w2: Any, corr_yx: Any, input_var: float = 1.0) -> PlainNetwork | None:
    """The network as arrays, or None if it is not one for the fast path.

    The fitted balance is that of ``matrices.fit_balance``; its residual is bounded from above by
    ``|Q|^2 >= |Q|_F^2 / n_hidden`` instead of a singular value.
    """
    first, second, corr = plain_array(w1, 2), plain_array(w2, 2), plain_array(corr_yx, 2)
    if first is None or second is None or corr is None:
        return None
    n_hidden, n_in = first.shape
    n_out = second.shape[0]
    if second.shape[1] != n_hidden or corr.shape != (n_out, n_in) or not (n_hidden and n_in and n_out):
        return None
    stacked = numpy.concatenate([first.T, second])
    weight = inner(stacked, stacked)
    if not 1e-200 < weight < 1e200 or not math.isfinite(corr.sum()):  # zero, enormous, or not finite
        return None
    acted = matrix_product(stacked, matrix_product(second.T, second) - matrix_product(first, first.T))
    balance = inner(acted, stacked) / weight
    acted -= balance * stacked
    left_over = inner(acted, acted) ** 0.5
    if not left_over * n_hidden <= _BALANCED * weight**1.5:
        return None
    return PlainNetwork(first, second, corr / input_var if input_var != 1.0 else corr, balance)


def plain_array(value: Any, ndim: int) -> Array | None:
    """The numbers of a tensor or array in double precision that nobody differentiates or maps; None of all else."""
    if type(value) is Tensor:
        if value.dtype is not torch.float64 or value.ndim != ndim or value.requires_grad or not value.is_cpu:
            return None
        return None if transforms_active() else value.resolve_neg().numpy()
    if isinstance(value, numpy.ndarray) and value.dtype == numpy.float64 and value.ndim == ndim:
        return value if value.flags.writeable and min(value.strides) >= 0 else value.copy()  # as torch wants it
    return None
