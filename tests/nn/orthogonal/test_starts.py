from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput, spawn
from separatrix.nn import Cayley, orthogonality_error
from separatrix.nn.orthogonal.starts import (
    STARTS,
    haar_unitary,
    rotation_logarithm,
    rotation_start,
    skew_start,
    unitary_logarithm,
)


def angles(matrix: torch.Tensor) -> torch.Tensor:
    """Of the eigenvalues in the upper half plane, ascending."""
    found = torch.linalg.eigvals(matrix).angle()
    return found[found > 1e-9].sort().values


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_every_start_is_a_rotation(start: str, n: int) -> None:
    matrix = rotation_start(start, n, generator=spawn(0, "starts"))
    assert orthogonality_error(matrix) < 1e-12
    assert float(torch.linalg.det(matrix)) == pytest.approx(1.0)


KOLMOGOROV = 2.2
"""The distance of n uniform numbers from their law exceeds 2.2 / sqrt(n) in one of ten thousand cases."""


def test_henaff_angles_are_uniform() -> None:
    exponent = skew_start("henaff", 4000, generator=spawn(1, "starts"))
    assert exponent is not None
    sizes = exponent.diagonal(1)[::2].sort().values
    expected = (2 * (torch.arange(2000) + 0.5) / 2000 - 1) * math.pi
    assert float((sizes - expected).abs().max()) / (2 * math.pi) < KOLMOGOROV / math.sqrt(2000)
    small = skew_start("henaff", 6, generator=spawn(1, "starts"))
    assert small is not None
    assert torch.allclose(angles(torch.linalg.matrix_exp(small)), small.diagonal(1)[::2].abs().sort().values)


def test_cayley_angles_are_uniform_under_the_cayley_map_and_not_under_exp() -> None:
    exponent = skew_start("cayley", 4000, generator=spawn(2, "starts"))
    assert exponent is not None
    turns = (2 * torch.atan(-exponent.diagonal(1)[::2])).sort().values
    expected = (torch.arange(2000) + 0.5) / 2000 * math.pi / 2
    assert float((turns - expected).abs().max()) / (math.pi / 2) < KOLMOGOROV / math.sqrt(2000)
    small = skew_start("cayley", 8, generator=spawn(2, "starts"))
    assert small is not None
    identity = torch.eye(8, dtype=torch.float64)
    turned = angles(torch.linalg.solve(identity + small, identity - small))
    by_exp = angles(torch.linalg.matrix_exp(small))
    assert float(by_exp.max()) <= 1.0  # tan(pi/4)
    assert torch.allclose(by_exp, torch.tan(turned / 2), atol=1e-9)


def test_a_logarithm_gives_the_rotation_back_also_at_half_turns() -> None:
    turns = torch.diag(torch.tensor([-1.0, 1.0, -1.0, 1.0, 1.0], dtype=torch.float64))
    for matrix in (turns, torch.eye(3, dtype=torch.float64), rotation_start("haar", 7, generator=spawn(3, "starts"))):
        found = rotation_logarithm(matrix)
        assert torch.allclose(found, -found.mT, atol=1e-12)
        assert torch.allclose(torch.linalg.matrix_exp(found), matrix, atol=1e-10)
    with pytest.raises(InvalidInput, match="determinant -1"):
        rotation_logarithm(torch.diag(torch.tensor([-1.0, 1.0])))


def test_unitary_logarithm() -> None:
    matrix = haar_unitary(5, generator=spawn(4, "starts"))
    assert orthogonality_error(matrix) < 1e-12
    found = unitary_logarithm(matrix)
    assert torch.allclose(found, -found.mH, atol=1e-12)
    assert torch.allclose(torch.linalg.matrix_exp(found), matrix, atol=1e-12)


def test_haar_traces_have_the_variance_of_the_group() -> None:
    traces = torch.stack([haar_unitary(3, generator=spawn(seed, "trace")).diagonal().sum() for seed in range(3000)])
    assert float(traces.abs().square().mean()) == pytest.approx(1.0, abs=0.1)  # 5 standard errors


def test_the_cayley_map_has_its_own_start() -> None:
    matrix = Cayley(6, n_negative=0).sample(generator=spawn(5, "starts"))
    assert float(angles(matrix).max()) < math.pi / 2
