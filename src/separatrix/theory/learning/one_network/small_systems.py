"""What all forms of the exact product need: positive-definite systems whose accuracy is known, and integrals."""

from __future__ import annotations

import numpy
import torch

from .few_threads import cholesky_factor
from .hidden_bases import EPS
from .plain_arrays import Array

ACCURACY = 1e-12
"""Largest estimated error of a product relative to its size."""
_ERROR = 10 * EPS
"""Error of a solution whose scaled Cholesky factor has no small pivot."""
_SLOW = 1e-100
"""Integrals over rates from here up need no other formula for short times: nothing underflows."""


def scaled_factor(system: Array) -> Array | None:
    """Cholesky factors (n, k, k), or None if one may be too inaccurate: its smallest scaled pivot bounds the error."""
    factor = cholesky_factor(system)
    if factor is None:
        return None
    pivots = numpy.einsum("nii->ni", factor)
    smallest = float((pivots * pivots / numpy.einsum("nii->ni", system)).min())
    return factor if smallest >= _ERROR / ACCURACY else None


def whitened(factor: Array, rows: Array) -> Array:
    """Rows (n, m, k) in the basis in which the system of a factor is the identity: ``rows factor'^-1``."""
    lower = torch.from_numpy(factor)
    found: Array = torch.linalg.solve_triangular(lower, torch.from_numpy(rows).mT, upper=False).mT.numpy()
    return found


def decaying_integral(rate: Array, time: Array) -> Array:
    """``int_0^t exp(-2 rate s) ds`` for rates of at least zero."""
    x = 2 * rate * time
    if float(rate.min(initial=1.0)) > _SLOW:
        quotient: Array = -numpy.expm1(-x) / (2 * rate)
        return quotient
    return numpy.where(x < 1e-8, time * (1 - x / 2), -numpy.expm1(-x) / (2 * rate))
