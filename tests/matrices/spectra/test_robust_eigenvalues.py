from __future__ import annotations

import pytest
import torch

from separatrix.core import NotConverged
from separatrix.matrices.spectra import robust_eigenvalues, spectral_distance


def test_eigenvalues_are_those_of_the_library(generator: torch.Generator) -> None:
    matrices = torch.randn(4, 6, 6, dtype=torch.float64, generator=generator)
    assert torch.equal(robust_eigenvalues(matrices), torch.linalg.eigvals(matrices))


def test_a_stalled_iteration_is_retried_in_another_basis(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = torch.randn(6, 6, dtype=torch.float64, generator=generator)
    expected, library, calls = torch.linalg.eigvals(matrix), torch.linalg.eigvals, []

    def stalls_twice(tensor: torch.Tensor) -> torch.Tensor:
        calls.append(tensor)
        if len(calls) < 3:
            raise torch.linalg.LinAlgError("the algorithm failed to converge")
        return library(tensor)

    monkeypatch.setattr(torch.linalg, "eigvals", stalls_twice)
    found = robust_eigenvalues(matrix.requires_grad_())  # else another library is asked first
    assert spectral_distance(found.detach(), expected) < 1e-12
    assert not torch.allclose(calls[0], calls[2])


def test_a_matrix_that_never_converges_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def stalls(_tensor: torch.Tensor) -> torch.Tensor:
        raise torch.linalg.LinAlgError("the algorithm failed to converge")

    monkeypatch.setattr(torch.linalg, "eigvals", stalls)
    with pytest.raises(NotConverged, match="the eigenvalues of a 3 x 3 matrix"):
        robust_eigenvalues(torch.eye(3, requires_grad=True))
