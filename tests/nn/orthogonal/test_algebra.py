from __future__ import annotations

import pytest
import torch

from separatrix.core import ShapeError, spawn
from separatrix.nn.orthogonal.algebra import (
    skew,
    skew_entries,
    skew_gradient,
    skew_hermitian,
    skew_hermitian_entries,
    skew_hermitian_gradient,
)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_skew_matrices(n: int) -> None:
    entries = torch.randn(n * (n - 1) // 2, dtype=torch.float64, generator=spawn(n, "entries")).requires_grad_()
    matrix = skew(entries, n)
    assert torch.equal(matrix, -matrix.mT)
    assert torch.equal(skew_entries(matrix), entries)
    weight = torch.randn(n, n, dtype=torch.float64, generator=spawn(n, "weight"))
    if n > 1:
        (expected,) = torch.autograd.grad((matrix * weight).sum(), entries)
        assert torch.allclose(skew_gradient(weight), expected)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_skew_hermitian_matrices(n: int) -> None:
    entries = torch.randn(n * n, dtype=torch.float64, generator=spawn(n, "entries")).requires_grad_()
    matrix = skew_hermitian(entries, n)
    assert torch.equal(matrix, -matrix.mH)
    assert torch.equal(skew_hermitian_entries(matrix), entries)
    weight = torch.randn(n, n, dtype=torch.complex128, generator=spawn(n, "weight"))
    (expected,) = torch.autograd.grad((matrix.conj() * weight).real.sum(), entries)
    assert torch.allclose(skew_hermitian_gradient(weight), expected)


def test_a_wrong_number_of_entries_is_refused() -> None:
    with pytest.raises(ShapeError, match="a skew matrix of size 4 has 6 entries"):
        skew(torch.ones(5), 4)
