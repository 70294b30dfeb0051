"""What ``kerg2-lemmas`` measures, one function per statement: number of instances and generator to numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from separatrix.lab import Payload

from ...worst_case import highest, lowest

if TYPE_CHECKING:
    from torch import Tensor

SIZE = 6
STEP = 1e-5
"""Of central differences, whose error is of its square."""


def randn(generator: Any, *shape: int, is_complex: bool = False) -> Tensor:
    """Gaussian entries in double precision."""
    import torch

    dtype = torch.complex128 if is_complex else torch.float64
    return torch.randn(*shape, generator=generator, dtype=dtype)


def central_differences(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    """Gradient of a number by central differences, entry by entry."""
    import torch

    slopes = torch.empty_like(at)
    for place in range(at.numel()):
        step = torch.zeros(at.numel(), dtype=at.dtype)
        step[place] = STEP
        up, down = function(at + step.reshape(at.shape)), function(at - step.reshape(at.shape))
        slopes.view(-1)[place] = (up - down) / (2 * STEP)
    return slopes


def _loss(value: Tensor) -> Tensor:
    return (value.cos() + 0.3 * value.pow(3)).sum() + value[0] * value[-1]


def chain_rule(n_instances: int, generator: Any) -> Payload:
    """Lemma 2.1.1."""
    import torch

    worst = 0.0
    for _ in range(n_instances):
        weight, at = randn(generator, 4, SIZE), randn(generator, SIZE)

        def inner(w: Tensor, weight: Tensor = weight) -> Tensor:
            return torch.tanh(weight @ w) + (w[:4] * w[2:]).sin()

        jacobian = torch.func.jacfwd(inner)(at)
        by_value = torch.func.grad(_loss)(inner(at))
        slopes = central_differences(lambda w, inner=inner: _loss(inner(w)), at)  # type: ignore[misc]
        worst = highest(worst, float((jacobian.mT @ by_value - slopes).abs().max()))
    return {"error": worst}


def affine_gradients(n_instances: int, generator: Any) -> Payload:
    """Lemma 2.1.2."""
    import torch

    worst = {"error, matrix": 0.0, "error, offset": 0.0}
    for _ in range(n_instances):
        matrix, offset, at = randn(generator, 4, SIZE), randn(generator, 4), randn(generator, SIZE)
        by_value = torch.func.grad(_loss)(matrix @ at + offset)
        slopes = central_differences(lambda a, b=offset, w=at: _loss(a @ w + b), matrix)  # type: ignore[misc]
        error = float((torch.outer(by_value, at) - slopes).abs().max())
        worst["error, matrix"] = highest(worst["error, matrix"], error)
        slopes = central_differences(lambda b, a=matrix, w=at: _loss(a @ w + b), offset)  # type: ignore[misc]
        worst["error, offset"] = highest(worst["error, offset"], float((by_value - slopes).abs().max()))
    return worst


def _commutator(matrix: Tensor) -> Tensor:
    import torch

    return torch.linalg.matrix_norm(matrix.mH @ matrix - matrix @ matrix.mH)


def draw_normal(generator: Any, *, real: bool = False) -> Tensor:
    """A random normal matrix: random eigenvalues in a random orthonormal basis (rotation blocks for a real one)."""
    import torch

    basis = torch.linalg.qr(randn(generator, SIZE, SIZE, is_complex=not real))[0]
    if not real:
        return basis @ torch.diag(randn(generator, SIZE, is_complex=True)) @ basis.mH
    blocks = randn(generator, SIZE // 2, 2)
    turns = torch.stack([torch.stack([blocks[:, 0], -blocks[:, 1]], -1), torch.stack([blocks[:, 1], blocks[:, 0]], -1)])
    return basis @ torch.block_diag(*turns.transpose(0, 1).unbind(0)) @ basis.mT


def normal_schur_form(n_instances: int, generator: Any) -> Payload:
    """Lemma 2.3.1."""
    from separatrix import matrices

    worst, disagreements = 0.0, 0
    for index in range(2 * n_instances):
        matrix = draw_normal(generator) if index % 2 else randn(generator, SIZE, SIZE, is_complex=True)
        form = matrices.complex_schur_form(matrix)
        own, of_form = float(_commutator(matrix)), float(_commutator(form))
        size = float(matrix.abs().square().sum())
        worst = highest(worst, abs(own - of_form) / size)
        disagreements += (own < 1e-10 * size) is not (of_form < 1e-10 * size)
    return {"difference of commutators": worst, "disagreements": disagreements}


def normal_triangular(n_instances: int, generator: Any) -> Payload:
    """Lemma 2.3.2: Henrici's bound says how far from zero the commutator of a triangular matrix must stay."""
    import torch

    bound = ((SIZE**3 - SIZE) / 12) ** -0.5
    least = descended = torch.inf
    for _ in range(n_instances):
        drawn = randn(generator, SIZE, SIZE, is_complex=True).triu()
        off = torch.linalg.matrix_norm(drawn.triu(1)) ** 2
        least = lowest(least, float(_commutator(drawn) / (bound * off)))
        descended = lowest(descended, _least_commutator(drawn) / bound)
    diagonal = randn(generator, SIZE, is_complex=True)
    return {
        "least commutator over its bound": least,
        "least after descent": descended,
        "commutator of diagonal ones": float(_commutator(torch.diag(diagonal))),
    }


def _least_commutator(start: Tensor, n_steps: int = 60) -> float:
    """Commutator of a triangular matrix with a part off the diagonal of norm one, made small by descent."""
    import torch

    free = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([free], lr=0.05)
    value = torch.inf
    for _ in range(n_steps):
        upper = free.triu(1)
        matrix = torch.diag(torch.diagonal(free)) + upper / torch.linalg.matrix_norm(upper)
        loss = _commutator(matrix)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        value = min(value, float(loss.detach()))
    return value


def orthonormal_eigenbasis(n_instances: int, generator: Any) -> Payload:
    """Corollary 2.3.3."""
    import torch

    def deviation(matrix: Tensor) -> float:
        vectors = torch.linalg.eig(matrix)[1]
        return float((vectors.mH @ vectors - torch.eye(SIZE)).abs().max())

    normal = [deviation(draw_normal(generator)) for _ in range(n_instances)]
    others = [deviation(randn(generator, SIZE, SIZE, is_complex=True)) for _ in range(n_instances)]
    return {"deviation, normal": max(normal), "least deviation, others": min(others)}


def conjugate_pairs(n_instances: int, generator: Any) -> Payload:
    """Lemma 2.3.4, by roots of the characteristic polynomial, which know nothing of the matrix being real."""
    import numpy
    import torch

    from separatrix import matrices

    worst = 0.0
    for _ in range(n_instances):
        matrix = randn(generator, SIZE, SIZE)
        roots = torch.as_tensor(numpy.roots(numpy.poly(matrix.numpy()).astype(complex)))
        values = torch.linalg.eigvals(matrix)
        worst = highest(worst, float(matrices.spectral_distance(roots.conj(), values)))
    return {"distance": worst}


def henrici_departure(n_instances: int, generator: Any) -> Payload:
    """Section 2.3.1."""
    import torch

    from separatrix import matrices

    difference, normal, least = 0.0, 0.0, torch.inf
    for _ in range(n_instances):
        other = randn(generator, SIZE, SIZE)
        by_eigenvalues = (other.square().sum() - torch.linalg.eigvals(other).abs().square().sum()).sqrt()
        departure = float(matrices.henrici(other))
        difference = highest(difference, abs(float(by_eigenvalues) - departure))
        least = lowest(least, departure)
        normal = highest(normal, float(matrices.henrici(draw_normal(generator, real=True))))
    return {
        "difference of the two forms": difference,
        "departure, normal": normal,
        "least departure, others": least,
    }


def real_schur_blocks(n_instances: int, generator: Any) -> Payload:
    """Section 2.3.2: the skew kappa of every 2x2 block, zero for a rotation block."""
    from separatrix import matrices

    def skew(matrix: Tensor) -> tuple[float, float]:
        parts = matrices.schur_parts(matrix)
        back = parts.basis @ (parts.rotations + parts.feedforward) @ parts.basis.mT
        return float(parts.kappa.abs().max()), float((back - matrix).abs().max())

    found = [skew(randn(generator, SIZE, SIZE)) for _ in range(n_instances)]
    normal = [skew(draw_normal(generator, real=True)) for _ in range(n_instances)]
    return {
        "largest skew of a block": max(k for k, _ in found),
        "largest skew, normal matrices": max(k for k, _ in normal),
        "residual": max(error for _, error in found + normal),
    }


def fisher_information(n_instances: int, generator: Any) -> Payload:
    """Section 2.5, for the mean and the logarithm of the spread of a normal law, by Gauss-Hermite quadrature."""
    import numpy
    import torch

    nodes, weights = (torch.as_tensor(part) for part in numpy.polynomial.hermite_e.hermegauss(40))
    weights = weights / weights.sum()
    worst = {"difference": 0.0, "mean score": 0.0}
    for _ in range(n_instances):
        parameters = randn(generator, 2)
        draws = parameters[0] + parameters[1].exp() * nodes

        def log_density(p: Tensor, x: Tensor) -> Tensor:
            return -p[1] - 0.5 * ((x - p[0]) / p[1].exp()) ** 2

        scores = torch.func.vmap(torch.func.grad(log_density), (None, 0))(parameters, draws)
        curvature = torch.func.vmap(torch.func.hessian(log_density), (None, 0))(parameters, draws)
        variance = torch.einsum("n,ni,nj->ij", weights, scores, scores)
        scale = float(variance.abs().max())
        gap = (variance + torch.einsum("n,nij->ij", weights, curvature)).abs().max()
        worst["difference"] = highest(worst["difference"], float(gap) / scale)
        worst["mean score"] = highest(worst["mean score"], float((weights @ scores).abs().max()) / scale)
    return worst
