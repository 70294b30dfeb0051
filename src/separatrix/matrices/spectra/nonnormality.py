"""How far a matrix is from being normal, and what its numerical range says of the first step.

A normal matrix commutes with its adjoint: orthogonal modes that do not talk to each other, and powers that never
exceed what the eigenvalues allow. Everything here is zero, or equals the spectral quantity, for normal matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import as_tensor, require_integer, require_square

from .schur import complex_schur_form

_GOLDEN = (math.sqrt(5) - 1) / 2


def henrici(matrix: Tensor, relative: bool = False) -> Float[Tensor, "*batch"]:
    r"""Henrici's departure from normality: the size of what eigenvalues leave out.

    .. math:: d(V) = \sqrt{\|V\|_F^2 - \sum_i|\lambda_i|^2} = \|\text{strict upper part of the complex Schur form}\|_F

    The right-hand side is what is computed: the difference on the left cancels and can come out negative.

    Args:
        matrix: real or complex square matrices.
        relative: divide by the Frobenius norm, which gives a number between 0 and 1 (0 for a zero matrix).

    Source:
        kerg2022, section 2.3.1. Check value: 4.628315 for the Grcar matrix of size 20.

    Cost: one Schur form per matrix, one after the other (see ``schur``).

    Example:
        >>> henrici(torch.tensor([[0.0, 0.0], [3.0, 0.0]], dtype=torch.float64)).item()
        3.0
    """
    form = complex_schur_form(matrix)
    departure = torch.linalg.matrix_norm(form.triu(1))
    if not relative:
        return departure
    norm = torch.linalg.matrix_norm(form)
    return torch.where(norm > 0, departure / norm.clamp_min(torch.finfo(norm.dtype).tiny), torch.zeros_like(norm))


def commutator_norm(matrix: Tensor) -> Float[Tensor, "*batch"]:
    r"""Frobenius norm of :math:`V^* V - V V^*`, zero if and only if the matrix is normal."""
    matrix = _square(matrix)
    return torch.linalg.matrix_norm(matrix.mH @ matrix - matrix @ matrix.mH)


def henrici_bound(matrix: Tensor) -> Float[Tensor, "*batch"]:
    r"""Upper bound of ``henrici`` from the commutator alone: :math:`d^2 \le \sqrt{(n^3-n)/12}\,\|V^*V - VV^*\|_F`."""
    matrix = _square(matrix)
    size = matrix.shape[-1]
    return torch.sqrt(math.sqrt((size**3 - size) / 12) * commutator_norm(matrix))


def numerical_abscissa(matrix: Tensor) -> Float[Tensor, "*batch"]:
    r"""Rightmost point of the numerical range, :math:`\lambda_{\max}((V + V^*)/2)`.

    It is the fastest growth of ``|h|`` under ``dh/dt = V h`` at time zero. Check value: 2.873589 for the Grcar matrix
    of size 20.
    """
    matrix = _square(matrix)
    return torch.linalg.eigvalsh((matrix + matrix.mH) / 2)[..., -1]


def numerical_radius(matrix: Tensor, *, n_angles: int = 64, n_refine: int = 40) -> Float[Tensor, "*batch"]:
    r"""Largest modulus in the numerical range, :math:`\max_\varphi\lambda_{\max}(\mathrm{Re}(e^{i\varphi}V))`.

    It lies between the spectral radius and the spectral norm, and the norm is at most twice as large. A scan over
    angles is refined by golden section around the best one.

    Args:
        matrix: real or complex square matrices.
        n_angles: angles of the scan, at least 4.
        n_refine: steps of the golden section; each shrinks the interval by 0.618.

    Cost: ``n_angles + n_refine`` Hermitian eigenvalue problems per matrix.
    """
    matrix = _square(matrix)
    require_integer(n_angles, "n_angles", at_least=4)
    require_integer(n_refine, "n_refine", at_least=0)
    wide = matrix.to(matrix.dtype if matrix.is_complex() else matrix.dtype.to_complex())

    def support(angle: Tensor) -> Tensor:
        turned = torch.polar(torch.ones_like(angle), angle)[..., None, None] * wide
        return torch.linalg.eigvalsh((turned + turned.mH) / 2)[..., -1]

    best = torch.full(matrix.shape[:-2], -math.inf, dtype=wide.real.dtype, device=matrix.device)
    where = torch.zeros_like(best)
    for index in range(n_angles):
        angle = torch.full_like(best, 2 * math.pi * index / n_angles)
        value = support(angle)
        where = torch.where(value > best, angle, where)
        best = torch.maximum(value, best)
    return torch.maximum(best, _golden_section(support, where, 2 * math.pi / n_angles, n_refine))


def power_norms(matrix: Tensor, n_steps: int) -> Float[Tensor, "*batch k"]:
    """Spectral norms of the powers ``0 .. n_steps - 1``: how much a step-by-step run can amplify.

    Cost: one product and one spectral norm per step.
    """
    matrix = _square(matrix)
    require_integer(n_steps, "n_steps", at_least=1)
    power = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device).expand_as(matrix)
    norms = []
    for _ in range(n_steps):
        norms.append(torch.linalg.matrix_norm(power, 2))
        power = matrix @ power
    return torch.stack(norms, dim=-1)


def _golden_section(function: Callable[[Tensor], Tensor], middle: Tensor, half: float, n_steps: int) -> Tensor:
    """Largest value of a function on ``middle +- half``, each element of the batch on its own interval."""
    low, high = middle - half, middle + half
    best = torch.full_like(middle, -math.inf)
    for _ in range(n_steps):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        at_left, at_right = function(left), function(right)
        best = torch.maximum(best, torch.maximum(at_left, at_right))
        low = torch.where(at_left < at_right, left, low)
        high = torch.where(at_left < at_right, high, right)
    return best


def _square(matrix: Tensor) -> Tensor:
    matrix = as_tensor(matrix, "matrix", allow_complex=True, half=False)
    require_square(matrix, "matrix")
    return matrix
