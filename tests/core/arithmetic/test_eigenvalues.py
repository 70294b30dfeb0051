from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor

from separatrix.core import NotConverged
from separatrix.core.arithmetic.eigenvalues import eig, eigvals

STALLS = torch.tensor(
    [
        [-2e-192, 1.3e-180, 4.4e-15, 1.5e-109],
        [-1.5e-194, 3.5e-90, 110.0, -7.1e198],
        [3.5e-189, -5.8e-168, 7.2e-189, -4.1e74],
        [4.7e60, 1.4e-90, 5.1e-177, 3.6e-86],
    ],
    dtype=torch.float64,
)
"""On which the QR iteration of the library gives up, and ``torch.linalg.eig`` spoils the memory of the process."""


def test_one_matrix_that_stalls_or_is_not_finite_stops_none_of_its_batch(generator: torch.Generator) -> None:
    fine = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    infinite = fine.clone()
    infinite[1, 2] = math.inf
    batch = torch.stack([fine, STALLS, infinite, fine.mT])
    values = eigvals(batch)
    vectors = eig(batch)[1]
    assert torch.equal(values[0], torch.linalg.eigvals(fine))
    assert float(values[1].imag.max()) == pytest.approx(3.142e54, rel=1e-2)  # in other bases it is lost in 1e198
    assert bool(values[2].isnan().all())
    assert bool(vectors[2].isnan().all())
    assert bool(torch.isfinite(vectors[[0, 1, 3]]).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_what_is_not_finite_is_not_handed_on(dtype: torch.dtype) -> None:
    """In single precision the library below ends the process."""
    for value in (math.nan, math.inf, -math.inf):
        assert bool(eigvals(torch.full((2, 3, 3), value, dtype=dtype)).isnan().all())
        assert bool(eig(torch.full((3, 3), value, dtype=dtype))[0].isnan().all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128])
def test_other_bases_have_the_same_eigenvalues_and_vectors(
    dtype: torch.dtype, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrices = torch.randn(3, 5, 5, dtype=dtype, generator=generator)
    torch_eigvals, torch_eig = torch.linalg.eigvals, torch.linalg.eig

    def stalling(function: Callable[[Tensor], Any], everywhere: bool) -> Callable[[Tensor], Any]:
        def called(given: Tensor) -> Any:
            if everywhere or any(torch.equal(one, own) for one in given.reshape(-1, 5, 5) for own in matrices):
                raise torch.linalg.LinAlgError("The algorithm failed to converge.")
            return function(given)

        return called

    for everywhere in (False, True):  # NumPy is asked unless derivatives are wanted
        monkeypatch.setattr(torch.linalg, "eigvals", stalling(torch_eigvals, everywhere))
        monkeypatch.setattr(torch.linalg, "eig", stalling(torch_eig, everywhere))
        wanted = matrices.clone().requires_grad_(not everywhere)
        values, vectors = (part.detach() for part in eig(wanted))
        again = eigvals(wanted).detach()
        assert values.dtype == again.dtype == torch.promote_types(dtype, torch.complex64)
        wide = matrices.to(values.dtype)
        scale = 1e-4 if dtype == torch.float32 else 1e-12
        assert float((wide @ vectors - vectors * values[:, None]).abs().max()) < scale
        for found in (values, again):
            gap = (found[:, :, None] - torch_eigvals(matrices)[:, None]).abs().amin(1)
            assert float(gap.max()) < scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("sign", [1, -1])
def test_matrices_of_extreme_size_have_the_values_of_ordinary_ones(
    dtype: torch.dtype, sign: int, generator: torch.Generator
) -> None:
    matrices = torch.randn(2, 3, 3, dtype=dtype, generator=generator)
    factor = 2.0 ** (sign * (100 if dtype == torch.float32 else 1000))
    for found in (eigvals(matrices * factor), eig(matrices * factor)[0]):
        torch.testing.assert_close(found / factor, torch.linalg.eigvals(matrices), rtol=1e-5, atol=0)
    assert eigvals(torch.zeros(2, 0, 0, dtype=dtype)).shape == (2, 0)


def test_where_no_library_finds_them_a_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise torch.linalg.LinAlgError("x")

    def fails_too(_: object) -> None:
        raise numpy.linalg.LinAlgError("x")

    for name in ("eigvals", "eig"):
        monkeypatch.setattr(torch.linalg, name, fails)
        monkeypatch.setattr(numpy.linalg, name, fails_too)
    for function in (eigvals, eig):
        with pytest.raises(NotConverged, match=r"4 x 4 matrix .largest entry \S+. were not found in 6 bases"):
            function(STALLS)


def test_they_have_derivatives_and_can_be_mapped(generator: torch.Generator) -> None:
    matrices = torch.randn(3, 4, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m: eigvals(m).abs().sum(-1), matrices)
    mapped = torch.func.vmap(eigvals)(matrices.detach())
    assert torch.equal(mapped, eigvals(matrices.detach()))
