from __future__ import annotations

import pytest
import torch

from separatrix.core import InvalidInput, spawn
from separatrix.nn import Householder


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 4), (6, 2), (5, 5)])
def test_the_triangular_form_is_the_product_of_reflections(n: int, m: int) -> None:
    chart = Householder(n, m).to(torch.float64)
    (free,) = chart.draw(None, generator=spawn(0, "vectors"))
    assert len(free) == sum(n - k for k in range(m))
    expected, place = torch.eye(n, dtype=torch.float64), 0
    for k in range(m):
        u = torch.zeros(n, dtype=torch.float64)
        u[k:] = free[place : place + n - k]
        place += n - k
        expected = expected @ (torch.eye(n, dtype=torch.float64) - 2 * torch.outer(u, u) / u.dot(u))
    assert torch.allclose(chart(free), expected, atol=1e-12)
    assert float(torch.linalg.det(expected)) == pytest.approx((-1) ** m)


def test_both_components_are_reached_by_signs() -> None:
    chart = Householder(4).to(torch.float64)
    for sign in (1.0, -1.0):
        matrix = torch.eye(4, dtype=torch.float64)
        matrix[0, 0] = sign
        free = chart.right_inverse(matrix)
        assert torch.allclose(chart(free), matrix, atol=1e-12)


def test_a_zero_vector_is_refused() -> None:
    with pytest.raises(InvalidInput, match="vector 0 of the reflections is zero"):
        Householder(3)(torch.tensor([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]))


def test_too_few_reflections_say_how_many_are_needed() -> None:
    with pytest.raises(InvalidInput, match="n_reflections=5 reaches every one"):
        Householder(5, 1).right_inverse(torch.eye(5).roll(1, 0))
