"""Where the resolvent is large: pseudospectra and the Kreiss constant.

The smallest singular value of ``z - V`` is the distance from V to a matrix that has z as an eigenvalue. All points of
a grid share one Schur form, and the triangular solves run over all points at once.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import ShapeError, as_tensor, require_integer, require_square

from .schur import complex_schur_form

_MAX_LANCZOS = 60
_LANCZOS_TOL = 1e-10


def pseudospectrum(matrix: Tensor, points: Tensor) -> Tensor:
    r"""Smallest singular value of :math:`zI - V` at every point of the complex plane that is given.

    Its level set at epsilon bounds the epsilon-pseudospectrum: all eigenvalues of :math:`V + E, \|E\|_2\le\epsilon`.

    Args:
        matrix: one real or complex square matrix (n, n), or a batch (..., n, n).
        points: complex numbers in any shape, the same for every matrix.

    Returns:
        Real tensor (..., *points.shape), float64; 0 to rounding at an eigenvalue.

    Cost: one Schur form, then about 10 to 30 Lanczos steps of ``8 n^2`` operations per point.

    Example:
        >>> line = torch.diag(torch.ones(9, dtype=torch.float64), -1)
        >>> float(pseudospectrum(line, torch.tensor([0.5]))) < 1e-2
        True
    """
    matrix = as_tensor(matrix, "matrix", allow_complex=True)
    require_square(matrix, "matrix")
    points = as_tensor(points, "points", allow_complex=True).to(matrix.device, torch.complex128)
    form = complex_schur_form(matrix.to(torch.complex128))
    flat = points.reshape(-1).expand(*matrix.shape[:-2], -1)
    return _smallest_singular_values(form, flat).reshape((*matrix.shape[:-2], *points.shape))


def kreiss_constant(matrix: Tensor, *, n_radii: int = 24, n_angles: int = 180) -> Float[Tensor, "*batch"]:
    r"""Kreiss constant of a discrete-time system, a two-sided measure of transient growth.

    .. math:: K = \sup_{|z|>1}\frac{|z|-1}{\sigma_{\min}(zI - V)}, \qquad K \le \sup_k\|V^k\|_2 \le e\,n\,K

    A scan over logarithmic radii (1 + 1e-6 to 11) and angles is refined by zooming in on the best point, so the value
    is a lower bound that is sharp unless the resolvent has peaks narrower than the scan.

    Args:
        matrix: real or complex square matrices.
        n_radii: radii of the scan.
        n_angles: angles of the scan.

    Returns:
        At least 1; infinite where the spectral radius exceeds 1.

    Cost: ``n_radii * n_angles + 1000`` smallest singular values per matrix (see ``pseudospectrum``); of the scan, half
    as many for a real matrix.
    """
    matrix = as_tensor(matrix, "matrix", allow_complex=True)
    require_square(matrix, "matrix")
    require_integer(n_radii, "n_radii", at_least=2)
    require_integer(n_angles, "n_angles", at_least=4)
    n_scanned = n_angles if matrix.is_complex() else n_angles // 2 + 1  # a real matrix: conjugate points are alike
    form = complex_schur_form(matrix.to(torch.complex128))
    calm = torch.diagonal(form, dim1=-2, dim2=-1).abs().amax(-1) <= 1
    found = torch.full(matrix.shape[:-2], math.inf, dtype=torch.float64, device=form.device)
    if bool(calm.any()):
        found[calm] = _largest_quotient(form[calm], n_radii, n_scanned, 2 * math.pi / n_angles).clamp_min(1.0)
    return found.to(matrix.device, matrix.real.dtype if matrix.is_complex() else matrix.dtype)


def _largest_quotient(form: Tensor, n_radii: int, n_angles: int, step_angle: float) -> Tensor:
    """The largest (|z| - 1) / sigma_min of each form (b, n, n): a scan, then zooming in on its best point."""
    spread = torch.linspace(math.log(1e-6), math.log(10.0), n_radii, dtype=torch.float64)
    angles = torch.arange(n_angles, dtype=torch.float64) * step_angle
    log_excess, angle = (
        axis.reshape(-1).expand(len(form), -1) for axis in torch.meshgrid(spread, angles, indexing="ij")
    )
    best, log_excess, angle = _best_point(form, log_excess, angle)
    step_radius = float(spread[1] - spread[0])
    corners = torch.linspace(-1, 1, 7, dtype=torch.float64)
    for _ in range(20):
        radial, angular = (axis.reshape(-1) for axis in torch.meshgrid(corners, corners, indexing="ij"))
        value, log_excess, angle = _best_point(form, log_excess + radial * step_radius, angle + angular * step_angle)
        best = torch.maximum(best, value)
        step_radius, step_angle = step_radius / 2, step_angle / 2
    return best.squeeze(-1)


def _best_point(form: Tensor, log_excess: Tensor, angle: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The largest (|z| - 1) / sigma_min among the points of each matrix, and where it is; last axis of size 1."""
    excess = torch.exp(log_excess)
    points = torch.polar(1 + excess, angle.expand_as(excess))
    ratio = excess / _smallest_singular_values(form, points).clamp_min(torch.finfo(torch.float64).tiny)
    best, index = ratio.max(dim=-1, keepdim=True)
    return best, log_excess.gather(-1, index), angle.gather(-1, index)


def _smallest_singular_values(form: Tensor, points: Tensor) -> Tensor:
    """Inverse Lanczos on a triangular form (..., n, n) at points (..., g), all points that are not done in step."""
    if form.shape[:-2] != points.shape[:-1]:
        raise ShapeError(f"points {tuple(points.shape)} do not match matrices {tuple(form.shape)}.")
    size, n_points = form.shape[-1], points.shape[-1]
    pivots = _pivots(form, points)
    start = torch.cos(torch.arange(size, dtype=torch.float64) ** 2 + 0.5).to(form)  # generic, and no random draw
    vector = (start / torch.linalg.vector_norm(start))[:, None].expand(*form.shape[:-2], size, n_points)
    previous, coupling = torch.zeros_like(vector), torch.zeros_like(points.real)
    alphas: list[Tensor] = []
    betas: list[Tensor] = []
    found = torch.zeros_like(points.real)
    estimate, left = found, torch.arange(n_points, device=points.device)
    for step in range(min(_MAX_LANCZOS, 2 * size + 2)):
        image = _apply_inverse_gram(form, pivots, vector) - coupling[..., None, :] * previous
        alpha = (vector.conj() * image).sum(-2).real
        image = image - alpha[..., None, :] * vector
        coupling = torch.linalg.vector_norm(image, dim=-2)
        alphas.append(alpha)
        if step % 3 == 2 or size == 1:
            fresh = _largest_ritz_value(alphas, betas)
            done = (fresh - estimate).abs() <= _LANCZOS_TOL * fresh
            estimate = found[..., left] = fresh
            open_points = (~done).reshape(-1, len(left)).any(0).nonzero().squeeze(-1)
            if not len(open_points):
                break
            if 2 * len(open_points) <= len(left):  # most points are far from every eigenvalue, and done early
                left, pivots, vector, image, coupling, estimate = (
                    kept[..., open_points] for kept in (left, pivots, vector, image, coupling, estimate)
                )
                alphas, betas = ([kept[..., open_points] for kept in rows] for rows in (alphas, betas))
        betas.append(coupling)
        previous = vector
        vector = image / coupling.clamp_min(torch.finfo(torch.float64).tiny)[..., None, :]
    return found.clamp_min(torch.finfo(torch.float64).tiny).rsqrt()


def _pivots(form: Tensor, points: Tensor) -> Tensor:
    """Diagonal of ``z - T``; at an eigenvalue the zero is replaced by rounding, as far away as cannot be told."""
    diagonal = torch.diagonal(form, dim1=-2, dim2=-1)
    pivots = points[..., None, :] - diagonal[..., :, None]
    scale = torch.linalg.matrix_norm(form)[..., None, None] + points.abs()[..., None, :]
    floor = torch.finfo(torch.float64).eps * scale.clamp_min(1e-280)
    return torch.where(pivots.abs() < floor, floor.to(pivots), pivots)


def _apply_inverse_gram(form: Tensor, pivots: Tensor, vector: Tensor) -> Tensor:
    """``((z - T)^H (z - T))^{-1}`` times vectors (..., n, g): forward, then backward substitution, row by row."""
    size = form.shape[-1]
    forward = torch.empty_like(pivots)
    adjoint = form.mH
    for row in range(size):
        known = adjoint[..., row : row + 1, :row] @ forward[..., :row, :]
        forward[..., row, :] = (vector[..., row, :] + known[..., 0, :]) / pivots[..., row, :].conj()
    backward = torch.empty_like(pivots)
    for row in range(size - 1, -1, -1):
        known = form[..., row : row + 1, row + 1 :] @ backward[..., row + 1 :, :]
        backward[..., row, :] = (forward[..., row, :] + known[..., 0, :]) / pivots[..., row, :]
    return backward


def _largest_ritz_value(alphas: list[Tensor], betas: list[Tensor]) -> Tensor:
    tridiagonal = torch.diag_embed(torch.stack(alphas, -1))
    if betas:
        off = torch.stack(betas, -1)
        tridiagonal = tridiagonal + torch.diag_embed(off, 1) + torch.diag_embed(off, -1)
    # at an eigenvalue of higher order the inverse overflows: there the smallest singular value is zero
    finite = torch.isfinite(tridiagonal).flatten(-2).all(dim=-1)
    values = torch.linalg.eigvalsh(torch.where(finite[..., None, None], tridiagonal, 0.0))[..., -1]
    return torch.where(finite, values, torch.inf)
