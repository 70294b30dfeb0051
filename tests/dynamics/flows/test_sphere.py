from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies

from helpers import seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.dynamics import check_tokens, chordal_distances, random_tokens, tangent_basis


@settings(max_examples=30, deadline=None)
@given(strategies.integers(2, 9), strategies.integers(0, 2**31))
def test_tangent_basis_is_orthonormal_and_orthogonal_to_the_token(dim: int, seed: int) -> None:
    x = random_tokens(4, dim, generator=seeded(seed))
    x[0] = 0
    x[0, 0] = -1  # where the reflection would be singular with the other sign
    basis = tangent_basis(x)
    full = torch.cat([x.unsqueeze(-1), basis], dim=-1)
    torch.testing.assert_close(full.mT @ full, torch.eye(dim).double().expand(4, dim, dim), rtol=0, atol=1e-14)


def test_small_distances_keep_their_digits() -> None:
    x = torch.tensor([[1.0, 0.0], [1.0, 1e-12]], dtype=torch.float64)
    assert float(chordal_distances(x)[0, 1]) == pytest.approx(1e-12, rel=1e-9)


def test_random_tokens_leave_the_global_generator_alone(generator: torch.Generator) -> None:
    before = torch.random.get_rng_state()
    random_tokens(3, 4, generator=generator)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        (torch.ones(3), ShapeError, r"shape \(..., n, d\) with n >= 1 and d >= 2; got \(3,\)"),
        (torch.ones(0, 3), ShapeError, r"got \(0, 3\)"),
        (torch.ones(2, 1), ShapeError, r"d >= 2"),
        (torch.tensor([[1.0, 0.0], [0.0, 0.0]]), InvalidInput, r"non-zero vectors; token 1 has length zero"),
        (torch.tensor([[1.0, torch.nan]]), InvalidInput, r"must be finite; entry \(0, 1\) is nan"),
        (torch.tensor([[1.0, 0.0], [0.0, 1.13]]), InvalidInput, r"from 1 is 0.13 \(token 1\). Pass normalise=True"),
    ],
)
def test_states_off_the_sphere_are_refused(tokens: torch.Tensor, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_tokens(tokens)


def test_normalising_is_offered() -> None:
    torch.testing.assert_close(
        check_tokens([[3.0, 4.0]], normalised=True), torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    )
