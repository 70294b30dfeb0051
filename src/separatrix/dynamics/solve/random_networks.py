"""Equilibria of z = phi(W z) + x for given matrices and inputs, and the spectral radius of their Jacobian."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import as_float64, relative_asymmetry, require_last_dim, require_square
from separatrix.core.arithmetic.eigenvalues import eigvals

from .convergence.solution import EquilibriumSolution
from .find import solve_quietly
from .methods.picard import Picard

_DENSE_WIDTH = 600
"""Up to this width all eigenvalues are computed; above it, the outermost by Lanczos or Arnoldi iteration."""
_DENSE_SLOPES = 1000
"""Slopes that are not zero up to which those of a matrix without symmetry are all computed: moduli that crowd at the
edge, and above all a circle, cost an Arnoldi iteration more than this."""


def network_equilibria(
    recurrent: Float[Tensor, "*batch n n"],
    phi: Callable[[Tensor], Tensor],
    inputs: Float[Tensor, "*batch k n"],
    *,
    damping: float = 1.0,
    tol: float = 1e-8,
    max_steps: int = 1000,
) -> EquilibriumSolution:
    """Picard iteration of z <- phi(W z) + x from zero for k inputs per matrix, one matrix product per step.

    Args:
        recurrent: W.
        phi: the activation.
        inputs: x.
        damping: step in (0, 1]; one half also settles where the spectrum lies in the disc of radius 2 around -1.
        tol: on the root mean square of the residual over the n units.
        max_steps: evaluations at most.
    """
    require_square(recurrent, "recurrent")
    method = Picard(damping=damping, tol=tol * inputs.shape[-1] ** 0.5, stop="residual", max_steps=max_steps)
    return solve_quietly(lambda z: phi(z @ recurrent.mT) + inputs, method, torch.zeros_like(inputs))


def network_radius(recurrent: Float[Tensor, "n n"], slopes: Float[Tensor, " n"]) -> float:
    """Spectral radius of D W, D = diag of slopes.

    Dense eigenvalues up to width 600. Above that: Lanczos on D^{1/2} W D^{1/2} for symmetric W, on minus its square
    for antisymmetric W. Without symmetry, or with a negative slope, dense eigenvalues of the rows and columns whose
    slope is not zero (the other units only add zeros) if they are at most 1000, Arnoldi otherwise (relative accuracy
    1e-3: the outermost eigenvalues of a non-symmetric random matrix crowd at the same modulus; where it does not
    settle, as on the circle of an orthogonal matrix, all eigenvalues are computed). The starting vector is fixed, so
    the result is deterministic.

    Cost: some hundreds of products with W, or that of the eigenvalues of a 1000 x 1000 matrix (half a second).
    """
    matrix, d = as_float64(recurrent, "recurrent").detach(), as_float64(slopes, "slopes").detach()
    require_square(matrix, "recurrent")
    require_last_dim(d, "slopes", matrix.shape[-1])
    if matrix.shape[-1] <= _DENSE_WIDTH:
        return _dense(d[:, None] * matrix)
    linear = d != 0
    if not linear.any():
        return 0.0
    rising = bool((d >= 0).all())  # else D has no real square root
    if rising and float(relative_asymmetry(matrix)) < 1e-12:
        return _lanczos(_congruent(matrix, d))
    if rising and float((matrix + matrix.mT).abs().max()) < 1e-12 * float(matrix.abs().max()):
        congruent = _congruent(matrix, d)
        return _lanczos(-congruent @ congruent) ** 0.5
    if int(linear.sum()) <= _DENSE_SLOPES:
        return _dense(d[linear, None] * matrix[linear][:, linear])
    return _arnoldi(d[:, None] * matrix)


def _dense(matrix: Tensor) -> float:
    return float(eigvals(matrix).abs().max())


def _congruent(matrix: Tensor, d: Tensor) -> numpy.ndarray:
    return (d.sqrt()[:, None] * matrix * d.sqrt()).numpy()


def _start(size: int) -> numpy.ndarray:
    return numpy.cos(numpy.arange(size) * 2.399963)  # golden angle: no symmetry to be orthogonal to


def _lanczos(matrix: numpy.ndarray) -> float:
    from scipy.sparse.linalg import eigsh

    values = eigsh(matrix, k=1, which="LM", v0=_start(len(matrix)), tol=1e-8, return_eigenvectors=False)
    return float(abs(values).max())


def _arnoldi(matrix: Tensor) -> float:
    from scipy.sparse.linalg import ArpackNoConvergence, eigs

    try:
        values = eigs(
            matrix.numpy(),
            k=4,
            ncv=min(120, len(matrix) - 2),
            which="LM",
            v0=_start(len(matrix)),
            tol=1e-3,
            maxiter=30,
            return_eigenvectors=False,
        )
    except ArpackNoConvergence:
        return _dense(matrix)
    return float(abs(values).max())
