"""What ``kerg2-lemmas`` measures of section 2.6: the memory of linear networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix.lab import Payload

from ...worst_case import highest, lowest
from .lemma_measures import SIZE, draw_normal, randn

if TYPE_CHECKING:
    from torch import Tensor


def _stable(generator: Any) -> Tensor:
    import torch

    matrix = randn(generator, SIZE, SIZE)
    return 0.85 * matrix / torch.linalg.eigvals(matrix).abs().max()


def _source(generator: Any, size: int = SIZE) -> Tensor:
    import torch

    return torch.nn.functional.normalize(randn(generator, size), dim=0)


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
            -torch.func.hessian(log_likelihood)(randn(generator, lags), randn(generator, SIZE)) for _ in range(2)
        ]
        found = matrices.fisher_memory_matrix(recurrent, source, lags, noise_var).matrix
        error = highest(error, float((found - curvatures[0]).abs().max()))
        dependence = highest(dependence, float((curvatures[0] - curvatures[1]).abs().max()))
    return {"error": error, "dependence on the history": dependence}


def normal_networks(n_instances: int, generator: Any) -> Payload:
    """Section 2.6."""
    import torch

    from separatrix import matrices

    deviation = trace = 0.0
    noise_var = 0.7
    for _ in range(n_instances):
        normal = draw_normal(generator, real=True)
        normal = 0.9 * normal / torch.linalg.matrix_norm(normal, 2)
        spatial = matrices.fisher_memory_curve(normal, _source(generator), 1, noise_var).spatial_fisher
        deviation = highest(deviation, float((noise_var * spatial - torch.eye(SIZE)).abs().max()))
        spatial = matrices.fisher_memory_curve(_stable(generator), _source(generator), 1, noise_var).spatial_fisher
        trace = highest(trace, abs(float(torch.trace(spatial)) * noise_var / SIZE - 1))
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
        least = lowest(least, float(values[0]))
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
    return {name: (lowest if name.startswith("least") else highest)(*values) for name, values in found.items()}


def _random_line(generator: Any) -> tuple[Tensor, Tensor]:
    """A delay line with random positive weights, and its source."""
    import torch

    weights = 0.5 + torch.rand(SIZE - 1, generator=generator, dtype=torch.float64)
    return torch.diag(weights, -1), torch.eye(SIZE, dtype=torch.float64)[0]


def _turned(line: Tensor, source: Tensor, generator: Any) -> tuple[Tensor, Tensor]:
    import torch

    basis = torch.linalg.qr(randn(generator, SIZE, SIZE))[0]
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
