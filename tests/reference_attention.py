"""The attention flow written out plainly, and its dense tangent Jacobian by automatic differentiation.

Nothing here is shared with the package: it is the independent route that closed-form spectra are compared with.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy
import torch
from torch import Tensor

Velocity = Callable[[Tensor], Tensor]


def softmax_attention(coupling: Tensor, beta: float = 1.0, mask: Tensor | None = None, bias: Tensor | None = None):
    def attention(x: Tensor) -> Tensor:
        logits = beta * x @ coupling @ x.mT
        if bias is not None:
            logits = logits + bias
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf)
        return torch.softmax(logits, dim=-1)

    return attention


def uniform_attention(x: Tensor) -> Tensor:
    return torch.full((x.shape[0], x.shape[0]), 1.0 / x.shape[0], dtype=x.dtype)


def sinkhorn_attention(coupling: Tensor, beta: float = 1.0, sweeps: int = 150):
    def attention(x: Tensor) -> Tensor:
        logits = beta * x @ coupling @ x.mT
        for _ in range(sweeps):
            logits = logits - torch.logsumexp(logits, dim=1, keepdim=True)
            logits = logits - torch.logsumexp(logits, dim=0, keepdim=True)
        return torch.softmax(logits, dim=1)

    return attention


def velocity_of(attention: Callable[[Tensor], Tensor], value: Tensor) -> Velocity:
    def velocity(x: Tensor) -> Tensor:
        pull = attention(x) @ x @ value.mT
        return pull - x * (x * pull).sum(-1, keepdim=True)

    return velocity


def multihead_velocity(couplings: Tensor, values: Tensor, beta: float = 1.0) -> Velocity:
    def velocity(x: Tensor) -> Tensor:
        pull = sum(softmax_attention(m, beta)(x) @ x @ v.mT for m, v in zip(couplings, values, strict=True))
        return pull - x * (x * pull).sum(-1, keepdim=True)

    return velocity


def ambient_jacobian(velocity: Velocity, x: Tensor) -> Tensor:
    size = x.numel()
    return torch.func.jacrev(velocity)(x).reshape(size, size)


def tangent_bases(x: Tensor) -> Tensor:
    """Block diagonal matrix of orthonormal bases of the tangent spaces, from the singular vectors of each row."""
    return torch.block_diag(*[torch.linalg.svd(row.unsqueeze(0)).Vh[1:].mT for row in x])


def tangent_spectrum(velocity: Velocity, x: Tensor) -> numpy.ndarray:
    basis = tangent_bases(x)
    return torch.linalg.eigvals(basis.mT @ ambient_jacobian(velocity, x) @ basis).numpy()


def map_multipliers(step_map: Velocity, x: Tensor) -> numpy.ndarray:
    basis = tangent_bases(x)
    return torch.linalg.eigvals(basis.mT @ ambient_jacobian(step_map, x) @ basis).numpy()


def spectral_distance(first: Tensor | numpy.ndarray, second: Tensor | numpy.ndarray) -> float:
    """Largest distance of paired eigenvalues under the best pairing; infinite if the numbers of eigenvalues differ."""
    from scipy.optimize import linear_sum_assignment

    a, b = numpy.asarray(first).ravel(), numpy.asarray(second).ravel()
    if a.shape != b.shape:
        return float("inf")
    cost = numpy.abs(a[:, None] - b[None, :])
    rows, columns = linear_sum_assignment(cost)
    return float(cost[rows, columns].max())


def pattern(value: Tensor, k: int, signs: Tensor) -> Tensor:
    """Tokens s_i v_k on the k-th eigenvector of value, counted by descending real part; the eigenvalue must be real."""
    eigenvalues, vectors = numpy.linalg.eig(value.numpy())
    order = numpy.argsort(-eigenvalues.real, kind="stable")
    assert abs(eigenvalues[order[k]].imag) == 0
    vector = torch.from_numpy(numpy.ascontiguousarray(vectors[:, order[k]].real))
    return signs.unsqueeze(-1) * vector / vector.norm()


def random_value(dim: int, generator: torch.Generator, *, symmetric: bool) -> Tensor:
    matrix = torch.randn(dim, dim, dtype=torch.float64, generator=generator)
    return (matrix + matrix.mT) / 2 if symmetric else matrix


def real_eigenvectors(value: Tensor) -> list[int]:
    eigenvalues = numpy.linalg.eigvals(value.numpy())
    ordered = eigenvalues[numpy.argsort(-eigenvalues.real, kind="stable")]
    return [k for k, eigenvalue in enumerate(ordered) if eigenvalue.imag == 0]
