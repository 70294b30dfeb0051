from __future__ import annotations

import pytest
import torch

from separatrix.core import InvalidInput, spawn
from separatrix.nn import LieU, UnitaryRecipe


def test_the_recipe_step_by_step() -> None:
    n = 5
    chart = UnitaryRecipe(n)
    phases, vectors = chart.draw(None, generator=spawn(0, "recipe"))
    assert phases.numel() + vectors.numel() == 7 * n
    d1, d2, d3 = (torch.diag(torch.exp(1j * p)) for p in phases)
    fourier = torch.fft.fft(torch.eye(n, dtype=torch.complex128)) / n**0.5
    permutation = torch.eye(n, dtype=torch.complex128)[chart.permutation]

    def reflection(v: torch.Tensor) -> torch.Tensor:
        complex_v = torch.complex(v[0], v[1])
        outer = torch.outer(complex_v, complex_v.conj())
        return torch.eye(n, dtype=torch.complex128) - 2 * outer / complex_v.abs().square().sum()

    expected = d3 @ reflection(vectors[1]) @ fourier.mH @ d2 @ permutation @ reflection(vectors[0]) @ fourier @ d1
    assert torch.allclose(chart(phases, vectors), expected, atol=1e-12)


def test_a_zero_reflection_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a reflection vector is zero"):
        UnitaryRecipe(3)(torch.zeros(3, 3), torch.zeros(2, 2, 3))


def test_all_of_the_unitary_group_is_reached() -> None:
    n = 3
    chart = LieU(n)
    (free,) = chart.draw(None, generator=spawn(1, "lie"))
    jacobian = torch.autograd.functional.jacobian(lambda a: torch.view_as_real(chart(a)).flatten(), free)
    assert int(torch.linalg.matrix_rank(jacobian)) == n * n
