from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.matrices import delay_line, kreiss_constant, power_norms, pseudospectrum


def random_matrices(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.integers(0, 10_000))
def test_pseudospectrum_is_the_smallest_singular_value(size: int, seed: int) -> None:
    matrix = random_matrices(seed, size, size)
    points = torch.view_as_complex(2 * random_matrices(seed + 1, 3, 4, 2))
    shifted = points[..., None, None] * torch.eye(size, dtype=torch.complex128) - matrix
    expected = torch.linalg.svdvals(shifted)[..., -1]
    assert torch.allclose(pseudospectrum(matrix, points), expected, rtol=1e-6)


def test_pseudospectrum_vanishes_at_an_eigenvalue_and_works_on_batches() -> None:
    matrices = torch.stack([torch.diag(torch.tensor([1.0, 3.0])), torch.eye(2)]).double()
    found = pseudospectrum(matrices, torch.tensor([1.0, 2.5]))
    assert found.shape == (2, 2)
    assert found[:, 0].max() < 1e-14
    assert found[:, 1].tolist() == pytest.approx([0.5, 1.5])


def test_kreiss_constant_of_lines_is_known() -> None:
    lines = torch.stack([delay_line(20, 1.05), delay_line(20, 0.6, diagonal=0.5)])
    found = kreiss_constant(lines, n_radii=16, n_angles=60)
    assert found[0].item() == pytest.approx(1.0398, abs=2e-4)
    assert found[1].item() == pytest.approx(2.749, abs=1e-3)
    peak = power_norms(lines, 200).amax(-1)
    assert peak[1].item() == pytest.approx(10.553, abs=1e-3)
    assert bool((found <= peak + 1e-9).all())
    assert bool((peak <= math.e * 20 * found).all())


def test_kreiss_constant_is_one_for_orthogonal_and_infinite_for_unstable_matrices() -> None:
    orthogonal = 0.9 * torch.linalg.qr(random_matrices(0, 5, 5)).Q
    assert kreiss_constant(orthogonal).item() == pytest.approx(1.0, abs=1e-9)
    assert kreiss_constant(1.5 * torch.eye(2, dtype=torch.float64)).item() == math.inf


def test_a_scan_needs_points() -> None:
    with pytest.raises(InvalidInput, match="n_radii must be an integer of at least 2; got 1"):
        kreiss_constant(torch.eye(2), n_radii=1)
