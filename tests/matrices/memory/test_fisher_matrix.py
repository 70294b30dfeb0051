from __future__ import annotations

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.matrices import delay_line, fisher_memory_curve, fisher_memory_matrix


def stable(seed: int, *shape: int) -> torch.Tensor:
    matrix = torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)
    return 0.8 * matrix / torch.linalg.eigvals(matrix).abs().amax(-1)[..., None, None]


def source(seed: int, size: int) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(size, generator=seeded(seed), dtype=torch.float64), dim=0)


def test_it_is_the_curvature_of_the_log_likelihood() -> None:
    recurrent, entry, noise_var = stable(0, 4, 4), source(1, 4), 0.7
    powers = [torch.linalg.matrix_power(recurrent, k) for k in range(200)]
    covariance = noise_var * sum(power @ power.mT for power in powers)
    state = torch.zeros(4, dtype=torch.float64)

    def log_likelihood(signal: torch.Tensor) -> torch.Tensor:
        mean = sum(powers[k] @ entry * signal[k] for k in range(6))
        return torch.distributions.MultivariateNormal(mean, covariance).log_prob(state)

    hessian = torch.autograd.functional.hessian(log_likelihood, torch.zeros(6, dtype=torch.float64))
    found = fisher_memory_matrix(recurrent, entry, 6, noise_var)
    assert torch.allclose(found.matrix, -hessian, atol=1e-12)
    assert torch.allclose(found.curve, fisher_memory_curve(recurrent, entry, 6, noise_var).curve, atol=1e-13)
    assert 0 < float(found.interference) < 1


def test_a_delay_line_has_no_interference_in_any_basis() -> None:
    turn = torch.linalg.qr(torch.randn(6, 6, generator=seeded(2), dtype=torch.float64))[0]
    line, entry = delay_line(6, 1.2), torch.eye(6, dtype=torch.float64)[0]
    for recurrent, start in ((line, entry), (turn @ line @ turn.mT, turn @ entry)):
        assert float(fisher_memory_matrix(recurrent, start, 6).interference) < 1e-12


@pytest.mark.slow
def test_where_double_precision_fails_balls_of_any_width_agree() -> None:
    line, entry = delay_line(60, 1.05, 0.005, 0.2), torch.eye(60, dtype=torch.float64)[0]
    found, more = (fisher_memory_matrix(line, entry, 12, precision=precision) for precision in ("auto", 256))
    assert int(found.bits) > 53
    assert bool(found.trustworthy)
    assert torch.allclose(found.matrix, more.matrix, rtol=1e-11)
    assert torch.allclose(found.matrix, found.matrix.mT, rtol=1e-11)


def test_a_batch_is_its_elements() -> None:
    recurrent = stable(3, 3, 4, 4)
    whole = fisher_memory_matrix(recurrent, source(4, 4), 5)
    assert whole.matrix.shape == (3, 5, 5)
    assert torch.allclose(whole.matrix[1], fisher_memory_matrix(recurrent[1], source(4, 4), 5).matrix, atol=1e-13)


def test_an_unstable_matrix_is_refused() -> None:
    with pytest.raises(InvalidInput, match="stable"):
        fisher_memory_matrix(torch.eye(2), torch.eye(2)[0], 3)
