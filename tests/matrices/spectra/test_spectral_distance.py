from __future__ import annotations

import itertools

import pytest
import torch

from separatrix.core import ShapeError
from separatrix.matrices import spectral_distance


def test_order_does_not_matter_and_one_displaced_eigenvalue_is_the_distance(generator: torch.Generator) -> None:
    spectrum = torch.randn(12, dtype=torch.complex128, generator=generator)
    moved = spectrum.clone()
    moved[3] += 1e-4j
    assert spectral_distance(spectrum, moved.flip(0)) == pytest.approx(1e-4, rel=1e-9)


def test_pairing_has_the_least_total_distance(generator: torch.Generator) -> None:
    first = torch.randn(5, dtype=torch.complex128, generator=generator)
    second = torch.randn(5, dtype=torch.complex128, generator=generator)
    best = min(itertools.permutations(range(5)), key=lambda p: float((first - second[list(p)]).abs().sum()))
    assert spectral_distance(first, second) == pytest.approx(float((first - second[list(best)]).abs().max()))


def test_spectra_of_different_size_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"equally many eigenvalues; got \(2,\) and \(3,\)"):
        spectral_distance(torch.zeros(2), torch.zeros(3))
