from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from helpers import checks
from separatrix.core import InvalidInput
from separatrix.theory import unit_triangular_power


def exact_power(size: int, entry: Fraction, power: int) -> list[list[Fraction]]:
    matrix = [[Fraction(i == j) + entry * (j > i) for j in range(size)] for i in range(size)]
    result = [[Fraction(i == j) for j in range(size)] for i in range(size)]
    for _ in range(power):
        result = [
            [sum((row[k] * matrix[k][j] for k in range(size)), Fraction(0)) for j in range(size)] for row in result
        ]
    return result


@checks(unit_triangular_power, by="products of matrices of fractions")
@pytest.mark.parametrize("entry", [Fraction(1, 2), Fraction(-3, 4), Fraction(2)])
@pytest.mark.parametrize("power", [0, 1, 2, 9])
def test_powers_are_those_of_the_matrix(entry: Fraction, power: int) -> None:
    size = 6
    exact = exact_power(size, entry, power)
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    found = unit_triangular_power(torch.tensor(float(entry), dtype=torch.float64), columns - rows, torch.tensor(power))
    expected = torch.tensor([[float(value) for value in row] for row in exact], dtype=torch.float64)
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("power", "offset", "entry", "value"), [(10, 3, 0.5, 42.5), (100, 5, 0.1, 3499.5652)])
def test_known_values(power: int, offset: int, entry: float, value: float) -> None:
    found = unit_triangular_power(torch.tensor(entry, dtype=torch.float64), torch.tensor(offset), torch.tensor(power))
    assert float(found) == pytest.approx(value, abs=1e-4)


def test_growth_has_the_degree_of_the_distance_from_the_diagonal() -> None:
    entry, offset = torch.tensor(0.02, dtype=torch.float64), torch.tensor(7)
    far = unit_triangular_power(entry, offset, torch.tensor([10**7, 2 * 10**7]))
    assert float(torch.log2(far[1] / far[0])) == pytest.approx(7, abs=1e-3)


def test_a_negative_power_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 0"):
        unit_triangular_power(torch.tensor(1.0), torch.tensor(1), torch.tensor(-1))
