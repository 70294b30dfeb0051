"""Initial orthogonal matrices, by the names of the literature, as skew matrices or as the matrix itself."""

from __future__ import annotations

import math

import scipy.linalg
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose
from separatrix.matrices.ensembles.base import haar_orthogonal

STARTS = ("henaff", "cayley", "haar", "identity", "uniform-skew")


def skew_start(start: str, n: int, *, generator: torch.Generator) -> Float[Tensor, "n n"] | None:
    r"""The skew matrix of an initialisation; ``None`` for ``"haar"``, which has none of its own.

    - ``"henaff"``: 2x2 blocks ``[[0, s], [-s, 0]]`` with s uniform in (-pi, pi);
    - ``"cayley"``: blocks with ``s = -tan(t/2)``, t uniform in (0, pi/2). Under the Cayley map the angles are t; under
      the exponential they are tan(t/2), at most one radian and not uniform;
    - ``"identity"``: zero;
    - ``"uniform-skew"``: entries uniform in :math:`\pm 1/\sqrt n`, what public code of non-normal networks comes to.

    For odd n the last row is zero. Source: kerg2022, appendix A.1 and D.2.
    """
    choose("start", start, STARTS)
    matrix = torch.zeros(n, n, dtype=torch.float64)
    if start == "haar":
        return None
    if start == "identity":
        return matrix
    if start == "uniform-skew":
        entries = torch.rand(n, n, dtype=torch.float64, generator=generator).mul(2).sub(1).div(math.sqrt(n)).triu(1)
        return entries - entries.mT
    uniform = torch.rand(n // 2, dtype=torch.float64, generator=generator)
    sizes = (2 * uniform - 1) * math.pi if start == "henaff" else -torch.tan(uniform * math.pi / 4)
    even = torch.arange(0, n - 1, 2)
    matrix[even, even + 1] = sizes
    matrix[even + 1, even] = -sizes
    return matrix


def rotation_start(start: str, n: int, *, generator: torch.Generator) -> Float[Tensor, "n n"]:
    """An orthogonal matrix of determinant one: the exponential of ``skew_start``, or uniform on the rotations."""
    exponent = skew_start(start, n, generator=generator)
    if exponent is not None:
        return torch.linalg.matrix_exp(exponent)
    matrix = haar_orthogonal(n, n, generator=generator)
    if float(torch.linalg.det(matrix)) < 0:
        matrix[0] = -matrix[0]
    return matrix


def rotation_logarithm(matrix: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """The skew matrix of least norm whose exponential is a rotation; an angle of pi has two, of which one is taken.

    Raises:
        InvalidInput: the determinant is -1, so that no real logarithm exists.
    """
    form, basis = scipy.linalg.schur(matrix.detach().to("cpu", torch.float64).numpy(), output="real")
    n = len(form)
    exponent = torch.zeros(n, n, dtype=torch.float64)
    half_turns = []
    row = 0
    while row < n:
        if row + 1 < n and abs(form[row + 1, row]) > 1e-8:
            angle = math.atan2(form[row + 1, row] - form[row, row + 1], form[row, row] + form[row + 1, row + 1])
            exponent[row, row + 1], exponent[row + 1, row] = -angle, angle
            row += 2
            continue
        if form[row, row] < 0:
            half_turns.append(row)
        row += 1
    if len(half_turns) % 2:
        raise InvalidInput("the matrix has determinant -1; the exponential of a skew matrix has determinant +1.")
    for first, second in zip(half_turns[::2], half_turns[1::2], strict=True):
        exponent[first, second], exponent[second, first] = -math.pi, math.pi
    vectors = torch.from_numpy(basis)
    return vectors @ exponent @ vectors.mT


def unitary_logarithm(matrix: Complex[Tensor, "n n"]) -> Complex[Tensor, "n n"]:
    """The skew-Hermitian matrix with angles in (-pi, pi] whose exponential is a unitary matrix."""
    form, basis = scipy.linalg.schur(matrix.detach().to("cpu", torch.complex128).numpy(), output="complex")
    angles = torch.from_numpy(form.diagonal().copy()).angle()
    vectors = torch.from_numpy(basis)
    return vectors @ torch.diag(torch.complex(torch.zeros_like(angles), angles)) @ vectors.mH


def haar_unitary(n: int, *, generator: torch.Generator) -> Complex[Tensor, "n n"]:
    """Uniform on the unitary group: QR of a complex Gaussian matrix with the phases of R's diagonal put right."""
    gaussian = torch.randn(n, n, dtype=torch.complex128, generator=generator)
    q, r = torch.linalg.qr(gaussian)
    return q * torch.sgn(r.diagonal())
