from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput, spawn
from separatrix.nn import Fft, Givens


def rotation(n: int, i: int, j: int, angle: float) -> torch.Tensor:
    matrix = torch.eye(n, dtype=torch.float64)
    matrix[i, i] = matrix[j, j] = math.cos(angle)
    matrix[i, j], matrix[j, i] = -math.sin(angle), math.sin(angle)
    return matrix


def test_layers_turn_the_pairs_of_the_document() -> None:
    chart = Givens(6, capacity=4)
    (free,) = chart.draw(None, generator=spawn(0, "angles"))
    assert len(free) == chart.n_angles == 2 * 3 + 2 * 2
    expected, left = torch.eye(6, dtype=torch.float64), iter(free.tolist())
    for layer in range(4):
        pairs = [(0, 1), (2, 3), (4, 5)] if layer % 2 == 0 else [(1, 2), (3, 4)]
        for i, j in pairs:
            expected = rotation(6, i, j, next(left)) @ expected
    assert torch.allclose(chart(free), expected, atol=1e-12)


def test_fft_layers_pair_at_halving_distances() -> None:
    chart = Fft(8)
    (free,) = chart.draw(None, generator=spawn(1, "angles"))
    assert len(free) == 8 * 3 // 2
    expected, left = torch.eye(8, dtype=torch.float64), iter(free.tolist())
    for distance in (4, 2, 1):
        for i in range(8):
            if i // distance % 2 == 0:
                expected = rotation(8, i, i + distance, next(left)) @ expected
    assert torch.allclose(chart(free), expected, atol=1e-12)


def test_full_capacity_has_the_dimension_of_the_rotations() -> None:
    n = 6
    chart = Givens(n, capacity=n)
    (free,) = chart.draw(None, generator=spawn(2, "angles"))
    jacobian = torch.autograd.functional.jacobian(lambda a: chart(a).flatten(), free)
    assert int(torch.linalg.matrix_rank(jacobian)) == n * (n - 1) // 2 == chart.n_angles


@pytest.mark.parametrize(("n", "capacity"), [(5, 2), (6, 3), (4, 6)])
def test_odd_sizes_and_too_many_layers_are_refused(n: int, capacity: int) -> None:
    with pytest.raises(InvalidInput, match="must be even, and capacity at most n"):
        Givens(n, capacity)


@pytest.mark.parametrize("n", [1, 6])
def test_fft_needs_a_power_of_two(n: int) -> None:
    with pytest.raises(InvalidInput, match="power of two"):
        Fft(n)
