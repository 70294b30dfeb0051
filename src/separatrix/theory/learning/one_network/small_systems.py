"""What all forms of the exact product need: positive-definite systems whose accuracy is known, and integrals."""

from __future__ import annotations

import numpy
import torch
from torch import Tensor

from .hidden_bases import EPS
from .plain_arrays import Array

ACCURACY = 1e-12
"""Largest estimated error of a product relative to its size."""
_ERROR = 10 * EPS
"""Error of a solution whose scaled Cholesky factor has no small pivot."""


def scaled_factor(system: Tensor) -> Tensor | None:
    """Cholesky factors (n, k, k), or None if one may be too inaccurate: its smallest scaled pivot bounds the error."""
    factor, failed = torch.linalg.cholesky_ex(system)
    diagonal, pivots = (matrix.diagonal(dim1=-2, dim2=-1).numpy() for matrix in (system, factor))
    smallest = float(numpy.min(pivots * pivots / diagonal))
    return None if int(failed.max()) or not smallest >= _ERROR / ACCURACY else factor


def decaying_integral(rate: Array, time: Array) -> Array:
    """``int_0^t exp(-2 rate s) ds`` for rates of at least zero."""
    x = 2 * rate * time
    return numpy.where(x < 1e-8, time * (1 - x / 2), -numpy.expm1(-x) / (2 * rate))
