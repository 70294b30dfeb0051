"""What ``kergE-algebras`` measures, one function per statement: number of instances and generator to numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix.lab import Payload

from ...worst_case import highest, lowest
from .lemma_measures import SIZE, randn

if TYPE_CHECKING:
    from torch import Tensor

TIMES = (-1.3, 0.4, 1.0, 2.7)
"""At which members of a one-parameter group are looked at."""


def _exp(matrix: Tensor) -> Tensor:
    import torch

    return torch.linalg.matrix_exp(matrix)


def _off_unitary(matrix: Tensor) -> float:
    import torch

    return float((matrix @ matrix.mH - torch.eye(len(matrix), dtype=matrix.dtype)).abs().max())


def _off_triangular(matrix: Tensor) -> float:
    """Distance from t(n): what lies below the diagonal, and how far its entries are from the unit circle."""
    below, circle = matrix.tril(-1).abs().max(), (matrix.diagonal().abs() - 1).abs().max()
    return max(float(below), float(circle))


def _angles(generator: Any) -> Tensor:
    return 2 * randn(generator, SIZE)


def unitary_group(n_instances: int, generator: Any) -> Payload:
    """U(n) and e(n) are bounded, and every member is joined to the identity by a path inside."""
    import torch

    found = {"largest entry": 0.0, "off the group on the path": 0.0, "gap at the end of the path": 0.0}
    for _ in range(n_instances):
        matrix = torch.linalg.qr(randn(generator, SIZE, SIZE, is_complex=True))[0]
        values, vectors = torch.linalg.eig(matrix)
        basis = torch.linalg.qr(vectors)[0]  # orthonormal already, but for rounding
        path = [(basis * (1j * values.angle() * t).exp()) @ basis.mH for t in (0.25, 0.5, 0.75, 1.0)]
        found["largest entry"] = highest(found["largest entry"], float(matrix.abs().max()))
        off = highest(*map(_off_unitary, path))
        found["off the group on the path"] = highest(found["off the group on the path"], off)
        gap = float((path[-1] - matrix).abs().max())
        found["gap at the end of the path"] = highest(found["gap at the end of the path"], gap)
    return found


def triangular_group(n_instances: int, generator: Any) -> Payload:
    """t(n) is a group, joined to the identity by paths inside, and not bounded."""
    import torch

    found = {"off the group, products": 0.0, "off the group, inverses": 0.0, "off the group, paths": 0.0}
    least = float("inf")
    for _ in range(n_instances):
        one, two = (_member(generator) for _ in range(2))
        found["off the group, products"] = highest(found["off the group, products"], _off_triangular(one @ two))
        inverse = torch.linalg.inv(one)
        found["off the group, inverses"] = highest(found["off the group, inverses"], _off_triangular(inverse))
        angles, above = one.diagonal().angle(), one.triu(1)
        path = [torch.diag((1j * t * angles).exp()) + t * above for t in (0.0, 0.5, 1.0)]
        off = highest(*map(_off_triangular, path), float((path[-1] - one).abs().max()))
        found["off the group, paths"] = highest(found["off the group, paths"], off)
        far = torch.diag(one.diagonal()) + 1e6 * above
        least = lowest(least, float(far.abs().max()))
    return {**found, "least entry of a far member": least}


def _member(generator: Any) -> Tensor:
    import torch

    return torch.diag((1j * _angles(generator)).exp()) + randn(generator, SIZE, SIZE, is_complex=True).triu(1)


def algebras(n_instances: int, generator: Any) -> Payload:
    """Exponentials of the stated algebras stay in e(n), t(n), U(n) and SO(n); those of other matrices leave."""
    import torch

    found = dict.fromkeys(("off e(n)", "off t(n)", "off U(n)", "off SO(n)", "off a turned group"), 0.0)
    found |= dict.fromkeys(
        ("least off t(n), others", "least off U(n), others", "least off SO(n), others"), float("inf")
    )
    for _ in range(n_instances):
        free, real = randn(generator, SIZE, SIZE, is_complex=True), randn(generator, SIZE, SIZE)
        diagonal = torch.diag(1j * _angles(generator))
        upper, skew, real_skew = diagonal + free.triu(1), (free - free.mH) / 2, (real - real.mT) / 2
        basis = torch.linalg.qr(randn(generator, SIZE, SIZE, is_complex=True))[0]
        for t in TIMES:
            turned = basis.mH @ _exp(t * basis @ upper @ basis.mH) @ basis
            off = {
                "off e(n)": highest(_off_triangular(_exp(t * diagonal)), _off_unitary(_exp(t * diagonal))),
                "off t(n)": _off_triangular(_exp(t * upper)),
                "off U(n)": _off_unitary(_exp(t * skew)),
                "off SO(n)": _off_rotation(_exp(t * real_skew)),
                "off a turned group": float((turned - _exp(t * upper)).abs().max()),
            }
            for name, value in off.items():
                found[name] = highest(found[name], value)
        others = {
            "least off t(n), others": _off_triangular(_exp(upper + 0.1 * torch.eye(SIZE))),
            "least off U(n), others": _off_unitary(_exp(skew + 0.1 * (free + free.mH))),
            "least off SO(n), others": _off_rotation(_exp(real_skew + 0.1 * (real + real.mT))),
        }
        for name, value in others.items():
            found[name] = lowest(found[name], value)
    return found


def _off_rotation(matrix: Tensor) -> float:
    import torch

    return highest(_off_unitary(matrix), abs(float(torch.linalg.det(matrix)) - 1))


def imaginary_spectra(n_instances: int, generator: Any) -> Payload:
    """Matrices whose eigenvalues have no real part: skew-Hermitian ones, normal ones, and any others."""
    import torch

    found = {"real part, skew-Hermitian": 0.0, "off skew-Hermitian, normal": 0.0, "off skew-Hermitian": 0.0}
    for _ in range(n_instances):
        free = randn(generator, SIZE, SIZE, is_complex=True)
        spectrum = torch.linalg.eigvals(free - free.mH)
        found["real part, skew-Hermitian"] = highest(
            found["real part, skew-Hermitian"], float(spectrum.real.abs().max())
        )
        vectors = torch.linalg.eigh(free + free.mH)[1]
        normal = (vectors * (1j * _angles(generator))) @ vectors.mH
        other = torch.linalg.solve(free, torch.diag(1j * _angles(generator)) @ free)
        for name, matrix in (("off skew-Hermitian, normal", normal), ("off skew-Hermitian", other)):
            found[name] = highest(found[name], float((matrix + matrix.mH).abs().max()))
    return found
