"""What ``kerg2-lemmas`` measures, one function per statement: number of instances and generator to numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from separatrix.lab import Payload

if TYPE_CHECKING:
    from torch import Tensor

SIZE = 6
STEP = 1e-5
"""Of central differences, whose error is of its square."""


def _randn(generator: Any, *shape: int, is_complex: bool = False) -> Tensor:
    import torch

    dtype = torch.complex128 if is_complex else torch.float64
    return torch.randn(*shape, generator=generator, dtype=dtype)


def _slopes(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
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
        weight, at = _randn(generator, 4, SIZE), _randn(generator, SIZE)

        def inner(w: Tensor, weight: Tensor = weight) -> Tensor:
            return torch.tanh(weight @ w) + (w[:4] * w[2:]).sin()

        jacobian = torch.func.jacfwd(inner)(at)
        by_value = torch.func.grad(_loss)(inner(at))
        slopes = _slopes(lambda w, inner=inner: _loss(inner(w)), at)  # type: ignore[misc]
        worst = max(worst, float((jacobian.mT @ by_value - slopes).abs().max()))
    return {"error": worst}


def affine_gradients(n_instances: int, generator: Any) -> Payload:
    """Lemma 2.1.2."""
    import torch

    worst = {"error, matrix": 0.0, "error, offset": 0.0}
    for _ in range(n_instances):
        matrix, offset, at = _randn(generator, 4, SIZE), _randn(generator, 4), _randn(generator, SIZE)
        by_value = torch.func.grad(_loss)(matrix @ at + offset)
        slopes = _slopes(lambda a, b=offset, w=at: _loss(a @ w + b), matrix)  # type: ignore[misc]
        error = float((torch.outer(by_value, at) - slopes).abs().max())
        worst["error, matrix"] = max(worst["error, matrix"], error)
        slopes = _slopes(lambda b, a=matrix, w=at: _loss(a @ w + b), offset)  # type: ignore[misc]
        worst["error, offset"] = max(worst["error, offset"], float((by_value - slopes).abs().max()))
    return worst


def _commutator(matrix: Tensor) -> Tensor:
    import torch

    return torch.linalg.matrix_norm(matrix.mH @ matrix - matrix @ matrix.mH)


def _normal(generator: Any, *, real: bool = False) -> Tensor:
    """A random normal matrix: random eigenvalues in a random orthonormal basis (rotation blocks for a real one)."""
    import torch

    basis = torch.linalg.qr(_randn(generator, SIZE, SIZE, is_complex=not real))[0]
    if not real:
        return basis @ torch.diag(_randn(generator, SIZE, is_complex=True)) @ basis.mH
    blocks = _randn(generator, SIZE // 2, 2)
    turns = torch.stack([torch.stack([blocks[:, 0], -blocks[:, 1]], -1), torch.stack([blocks[:, 1], blocks[:, 0]], -1)])
    return basis @ torch.block_diag(*turns.transpose(0, 1).unbind(0)) @ basis.mT


def normal_schur_form(n_instances: int, generator: Any) -> Payload:
    """Lemma 2.3.1."""
    from separatrix import matrices

    worst, disagreements = 0.0, 0
    for index in range(2 * n_instances):
        matrix = _normal(generator) if index % 2 else _randn(generator, SIZE, SIZE, is_complex=True)
        form = matrices.complex_schur_form(matrix)
        own, of_form = float(_commutator(matrix)), float(_commutator(form))
        size = float(matrix.abs().square().sum())
        worst = max(worst, abs(own - of_form) / size)
        disagreements += (own < 1e-10 * size) is not (of_form < 1e-10 * size)
    return {"difference of commutators": worst, "disagreements": disagreements}


def normal_triangular(n_instances: int, generator: Any) -> Payload:
    """Lemma 2.3.2: Henrici's bound says how far from zero the commutator of a triangular matrix must stay."""
    import torch

    bound = ((SIZE**3 - SIZE) / 12) ** -0.5
    least = descended = torch.inf
    for _ in range(n_instances):
        drawn = _randn(generator, SIZE, SIZE, is_complex=True).triu()
        off = torch.linalg.matrix_norm(drawn.triu(1)) ** 2
        least = min(least, float(_commutator(drawn) / (bound * off)))
        descended = min(descended, _least_commutator(drawn) / bound)
    diagonal = _randn(generator, SIZE, is_complex=True)
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

    normal = [deviation(_normal(generator)) for _ in range(n_instances)]
    others = [deviation(_randn(generator, SIZE, SIZE, is_complex=True)) for _ in range(n_instances)]
    return {"deviation, normal": max(normal), "least deviation, others": min(others)}


def conjugate_pairs(n_instances: int, generator: Any) -> Payload:
    """Lemma 2.3.4, by roots of the characteristic polynomial, which know nothing of the matrix being real."""
    import numpy
    import torch

    from separatrix import matrices

    worst = 0.0
    for _ in range(n_instances):
        matrix = _randn(generator, SIZE, SIZE)
        roots = torch.as_tensor(numpy.roots(numpy.poly(matrix.numpy()).astype(complex)))
        values = torch.linalg.eigvals(matrix)
        worst = max(worst, float(matrices.spectral_distance(roots.conj(), values)))
    return {"distance": worst}


def henrici_departure(n_instances: int, generator: Any) -> Payload:
    """Section 2.3.1."""
    import torch

    from separatrix import matrices

    difference, normal, least = 0.0, 0.0, torch.inf
    for _ in range(n_instances):
        other = _randn(generator, SIZE, SIZE)
        by_eigenvalues = (other.square().sum() - torch.linalg.eigvals(other).abs().square().sum()).sqrt()
        departure = float(matrices.henrici(other))
        difference = max(difference, abs(float(by_eigenvalues) - departure))
        least = min(least, departure)
        normal = max(normal, float(matrices.henrici(_normal(generator, real=True))))
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

    found = [skew(_randn(generator, SIZE, SIZE)) for _ in range(n_instances)]
    normal = [skew(_normal(generator, real=True)) for _ in range(n_instances)]
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
        parameters = _randn(generator, 2)
        draws = parameters[0] + parameters[1].exp() * nodes

        def log_density(p: Tensor, x: Tensor) -> Tensor:
            return -p[1] - 0.5 * ((x - p[0]) / p[1].exp()) ** 2

        scores = torch.func.vmap(torch.func.grad(log_density), (None, 0))(parameters, draws)
        curvature = torch.func.vmap(torch.func.hessian(log_density), (None, 0))(parameters, draws)
        variance = torch.einsum("n,ni,nj->ij", weights, scores, scores)
        scale = float(variance.abs().max())
        gap = (variance + torch.einsum("n,nij->ij", weights, curvature)).abs().max()
        worst["difference"] = max(worst["difference"], float(gap) / scale)
        worst["mean score"] = max(worst["mean score"], float((weights @ scores).abs().max()) / scale)
    return worst


def _stable(generator: Any) -> Tensor:
    import torch

    matrix = _randn(generator, SIZE, SIZE)
    return 0.85 * matrix / torch.linalg.eigvals(matrix).abs().max()


def _source(generator: Any, size: int = SIZE) -> Tensor:
    import torch

    return torch.nn.functional.normalize(_randn(generator, size), dim=0)


def memory_matrix(n_instances: int, generator: Any) -> Payload:
    """Section 2.6: the curvature of the log-likelihood, with the covariance from scipy's solver."""
    import scipy.linalg
    import torch

    from separatrix import matrices

    lags, noise_var = 5, 0.7
    error = dependence = 0.0
    for _ in range(n_instances):
        recurrent, source = _stable(generator), _source(generator)
        noise = noise_var * torch.eye(SIZE, dtype=torch.float64)
        covariance = torch.as_tensor(scipy.linalg.solve_discrete_lyapunov(recurrent.numpy(), noise.numpy()))
        signals = torch.stack([torch.linalg.matrix_power(recurrent, k) @ source for k in range(lags)], -1)

        def log_likelihood(
            history: Tensor, state: Tensor, signals: Tensor = signals, covariance: Tensor = covariance
        ) -> Tensor:
            off = state - signals @ history
            return -0.5 * off @ torch.linalg.solve(covariance, off)

        curvatures = [
            -torch.func.hessian(log_likelihood)(_randn(generator, lags), _randn(generator, SIZE)) for _ in range(2)
        ]
        found = matrices.fisher_memory_matrix(recurrent, source, lags, noise_var).matrix
        error = max(error, float((found - curvatures[0]).abs().max()))
        dependence = max(dependence, float((curvatures[0] - curvatures[1]).abs().max()))
    return {"error": error, "dependence on the history": dependence}


def normal_networks(n_instances: int, generator: Any) -> Payload:
    """Section 2.6."""
    import torch

    from separatrix import matrices

    deviation = trace = 0.0
    noise_var = 0.7
    for _ in range(n_instances):
        normal = _normal(generator, real=True)
        normal = 0.9 * normal / torch.linalg.matrix_norm(normal, 2)
        spatial = matrices.fisher_memory_curve(normal, _source(generator), 1, noise_var).spatial_fisher
        deviation = max(deviation, float((noise_var * spatial - torch.eye(SIZE)).abs().max()))
        spatial = matrices.fisher_memory_curve(_stable(generator), _source(generator), 1, noise_var).spatial_fisher
        trace = max(trace, abs(float(torch.trace(spatial)) * noise_var / SIZE - 1))
    return {"deviation from the identity": deviation, "trace error": trace}


def memory_ceiling(n_instances: int, generator: Any) -> Payload:
    """Section 2.6: how near the total comes to N/eps."""
    import torch

    from separatrix import matrices, theory

    shares, least = [], torch.inf
    for _ in range(n_instances):
        spatial = matrices.fisher_memory_curve(_stable(generator), _source(generator), 1).spatial_fisher
        values = torch.linalg.eigvalsh((spatial + spatial.mT) / 2)
        shares.append(float(values[-1]) / SIZE)  # the best source of this network
        least = min(least, float(values[0]))
    strongest = theory.delay_line_total(torch.tensor(1e6, dtype=torch.float64), SIZE)
    share = float(strongest) / theory.memory_ceiling(SIZE)
    return {
        "largest share, random": max(shares),
        "least share, strongest line": share,
        "gap of the strongest line": 1 - share,
        "least eigenvalue of the spatial matrix": least,
    }


def feedback_line(n_instances: int, generator: Any) -> Payload:
    """Section 2.6, at random forward weights: stability, amplification, totals at two lengths."""
    import torch

    from separatrix import matrices

    found: dict[str, list[float]] = {}

    def note(**values: float) -> None:
        for name, value in values.items():
            found.setdefault(name.replace("_", " "), []).append(value)

    def gain(line: Tensor) -> tuple[float, int]:
        state, norms = torch.eye(len(line), dtype=line.dtype)[0], []
        for _ in range(4 * len(line)):
            state = line @ state
            norms.append(float(state.norm()))
        return max(norms), norms.index(max(norms)) + 1

    def radius(sub: float, sup: float) -> float:
        """By the symmetric matrix that a diagonal change of basis makes of the line: eigenvalues of the line itself
        are lost in rounding."""
        weight = (sub * sup) ** 0.5
        return float(torch.linalg.eigvalsh(matrices.feedback_line(200, weight, weight)).abs().max())

    for share in torch.rand(n_instances, generator=generator, dtype=torch.float64).tolist():
        sub = 0.93 + 0.06 * share
        low, high = 1 - sub, 1 / (4 * sub)
        note(radius_inside=radius(sub, low + 0.9 * (high - low)), least_radius_beyond=radius(sub, 1.05 * high))
        largest, when = gain(matrices.feedback_line(60, sub, low + 0.9 * (high - low)))
        note(least_gain_inside=largest, least_delay_of_the_peak_over_the_length=when / 60)
        note(gain_below=gain(matrices.feedback_line(60, sub, 0.9 * low))[0])
    totals = [
        float(
            matrices.fisher_memory_curve(
                matrices.feedback_line(size, 0.95**0.5, 0.05**0.5), torch.eye(size, dtype=torch.float64)[0], 1
            ).total
        )
        for size in (20, 40)
    ]
    note(least_total_per_added_unit=(totals[1] - totals[0]) / 20)
    return {name: (min if name.startswith("least") else max)(values) for name, values in found.items()}


def _random_line(generator: Any) -> tuple[Tensor, Tensor]:
    """A delay line with random positive weights, and its source."""
    import torch

    weights = 0.5 + torch.rand(SIZE - 1, generator=generator, dtype=torch.float64)
    return torch.diag(weights, -1), torch.eye(SIZE, dtype=torch.float64)[0]


def _turned(line: Tensor, source: Tensor, generator: Any) -> tuple[Tensor, Tensor]:
    import torch

    basis = torch.linalg.qr(_randn(generator, SIZE, SIZE))[0]
    return basis @ line @ basis.mT, basis @ source


def equality_of_the_bound(n_instances: int, generator: Any) -> Payload:
    """Section 2.6: the largest gap between memory and the bound its own amplification sets."""
    import torch

    from separatrix import matrices, theory

    def gap(recurrent: Tensor, source: Tensor) -> float:
        curve = matrices.fisher_memory_curve(recurrent, source, SIZE).curve
        signal = torch.stack([torch.linalg.matrix_power(recurrent, k) @ source for k in range(SIZE)])
        return float((1 - curve / theory.amplification_bound(signal.square().sum(-1))).max())

    lines, turned, others = [], [], []
    for _ in range(n_instances):
        line, source = _random_line(generator)
        lines.append(gap(line, source))
        turned.append(gap(*_turned(line, source, generator)))
        others.append(gap(_stable(generator), _source(generator)))
    return {
        "gap of lines": max(map(abs, lines)),
        "gap of turned lines": max(map(abs, turned)),
        "least gap of others": min(others),
    }


def interference(n_instances: int, generator: Any) -> Payload:
    """Section 2.6."""
    from separatrix import matrices

    lines, turned, others = [], [], []
    for _ in range(n_instances):
        line, source = _random_line(generator)
        lines.append(float(matrices.fisher_memory_matrix(line, source, SIZE).interference))
        turned.append(float(matrices.fisher_memory_matrix(*_turned(line, source, generator), SIZE).interference))
        others.append(float(matrices.fisher_memory_matrix(_stable(generator), _source(generator), SIZE).interference))
    return {
        "share, lines": max(lines),
        "share, turned lines": max(turned),
        "least share, random networks": min(others),
    }
