from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

from helpers import checks, seeded
from separatrix.core import InvalidInput, ShapeError, as_float64
from separatrix.matrices import (
    aligned_balanced_pair,
    balance_matrix,
    balanced_factors,
    balanced_pair,
    balanced_pair_,
    balanced_singular_values,
    fit_balance,
    random_rotation,
    require_pair,
)

SIZES = st.integers(1, 6)


def legal(balance: float, n_in: int, n_hidden: int, n_out: int) -> bool:
    return not (balance > 0 and n_hidden > n_out) and not (balance < 0 and n_hidden > n_in)


@settings(max_examples=60, deadline=None)
@given(SIZES, SIZES, SIZES, st.sampled_from([0.0, 1e-8, -1e-8, 2.0, -2.0, 1e3, -1e3]))
def test_every_legal_size_gets_exactly_the_balance_asked_for(
    n_in: int, n_hidden: int, n_out: int, balance: float
) -> None:
    generator = seeded(n_in + 10 * n_hidden + 100 * n_out)
    if not legal(balance, n_in, n_hidden, n_out):
        with pytest.raises(InvalidInput, match="row_space=True"):
            balanced_pair(balance, n_in, n_hidden, n_out, generator=generator)
        return
    w1, w2 = balanced_pair(balance, n_in, n_hidden, n_out, generator=generator)
    size = max(1.0, abs(balance), float(w1.square().sum()))
    gap = balance_matrix(w1, w2) - balance * torch.eye(n_hidden, dtype=torch.float64)
    assert gap.abs().max() <= 1e-13 * size  # rounding of sums of squares


def test_a_given_product_is_kept_with_any_balance(generator: torch.Generator) -> None:
    product = torch.randn(5, 3, dtype=torch.float64, generator=generator)
    for balance in (0.0, 4.0, 1e3):
        w1, w2 = balanced_pair(balance, 3, 4, 5, product=product, generator=generator)
        assert (w2 @ w1 - product).abs().max() < 1e-12


def test_a_batch_of_balances_gives_one_pair_each(generator: torch.Generator) -> None:
    balance = torch.tensor([[-2.0, 0.0, 3.0]], dtype=torch.float64)
    w1, w2 = balanced_pair(balance, 4, 3, 4, generator=generator)
    assert w1.shape == (1, 3, 3, 4)
    torch.testing.assert_close(fit_balance(w1, w2).balance, balance, atol=1e-12, rtol=0)


def test_row_space_balances_what_it_can_and_leaves_the_rest_empty(generator: torch.Generator) -> None:
    w1, w2 = balanced_pair(2.0, 4, 9, 4, row_space=True, generator=generator)
    fit = fit_balance(w1, w2)
    assert float(fit.balance) == pytest.approx(2.0, abs=1e-12)
    assert float(fit.residual) < 1e-14
    eigenvalues = torch.linalg.eigvalsh(balance_matrix(w1, w2))
    expected = torch.tensor([0.0] * 5 + [2.0] * 4, dtype=torch.float64)
    torch.testing.assert_close(eigenvalues, expected, atol=1e-12, rtol=0)


def test_messages_name_the_violated_inequality(generator: torch.Generator) -> None:
    with pytest.raises(
        InvalidInput, match="positive balance needs n_hidden <= n_out; got balance 1, n_hidden = 4 and n_out = 3"
    ):
        balanced_pair(1.0, 5, 4, 3, generator=generator)
    with pytest.raises(
        InvalidInput, match="negative balance needs n_hidden <= n_in; got balance -2, n_hidden = 4 and n_in = 3"
    ):
        balanced_pair(-2.0, 3, 4, 5, generator=generator)
    with pytest.raises(InvalidInput, match="product has rank 3, and a network with n_hidden = 2"):
        balanced_pair(0.0, 3, 2, 3, product=torch.eye(3), generator=generator)
    with pytest.raises(ShapeError, match=r"product must have shape \(..., 3, 3\)"):
        balanced_pair(0.0, 3, 3, 3, product=torch.ones(2, 3), generator=generator)
    with pytest.raises(InvalidInput, match="scale must be a positive number"):
        balanced_pair(0.0, 3, 3, 3, scale=0.0, generator=generator)
    with pytest.raises(InvalidInput, match="n_hidden must be an integer"):
        balanced_pair(0.0, 3, 0, 3, generator=generator)
    with pytest.raises(InvalidInput, match="balance must be finite"):
        balanced_pair(float("nan"), 3, 3, 3, generator=generator)


def test_aligned_pair_shares_the_singular_vectors_of_the_task_and_keeps_the_scale(generator: torch.Generator) -> None:
    task = torch.randn(4, 3, dtype=torch.float64, generator=generator)
    u, _, vh = torch.linalg.svd(task, full_matrices=False)
    sizes = []
    for scale in (1.0, 0.1):
        w1, w2 = aligned_balanced_pair(1.5, task, 3, scale=scale, generator=seeded(1))
        turned = u.mT @ w2 @ w1 @ vh.mT
        strengths = turned.diagonal()
        assert (turned - torch.diag(strengths)).abs().max() < 1e-12
        assert fit_balance(w1, w2).residual < 1e-14
        sizes.append(strengths)
    torch.testing.assert_close(sizes[1], 0.01 * sizes[0])


def test_factors_with_the_identity_basis_are_deterministic() -> None:
    w1, w2 = balanced_factors(torch.diag(torch.tensor([2.0, 1.0])), 3.0, 2)
    torch.testing.assert_close((w2 @ w2.mT).diagonal(), torch.tensor([4.0, 3.3027756377319946], dtype=torch.float64))
    torch.testing.assert_close((w1.mT @ w1).diagonal(), torch.tensor([1.0, 0.3027756377319946], dtype=torch.float64))


def test_completed_directions_without_a_generator_are_orthonormal() -> None:
    w1, w2 = balanced_factors(torch.ones(5, 2, dtype=torch.float64), 2.0, 4)
    assert (balance_matrix(w1, w2) - 2 * torch.eye(4)).abs().max() < 1e-12


def test_layers_are_filled_in_place_in_their_own_dtype(generator: torch.Generator) -> None:
    first, second = nn.Linear(3, 4), nn.Linear(4, 5)
    state = torch.get_rng_state()
    balanced_pair_(first, second, 2.0, generator=generator)
    assert torch.equal(torch.get_rng_state(), state)
    assert first.weight.dtype == torch.float32
    gap = second.weight.mT @ second.weight - first.weight @ first.weight.mT - 2 * torch.eye(4)
    assert gap.abs().max() < 1e-4  # float32 rounding of squares of order 10
    assert not first.bias.any()
    assert not second.bias.any()
    with pytest.raises(ShapeError, match="first must feed second"):
        balanced_pair_(first, nn.Linear(3, 2), 0.0, generator=generator)


def test_rotations_are_orthogonal_and_unbiased(generator: torch.Generator) -> None:
    rotations = random_rotation((4000,), 3, generator=generator)
    assert (rotations @ rotations.mT - torch.eye(3)).abs().max() < 1e-13
    assert rotations.mean(0).abs().max() < 5 * (1 / 3 / 4000) ** 0.5  # entries have variance 1/3


def test_the_same_seed_gives_the_same_bits() -> None:
    pairs = [balanced_pair(1.0, 3, 3, 4, generator=seeded(7)) for _ in range(2)]
    assert torch.equal(pairs[0][0], pairs[1][0])
    assert torch.equal(pairs[0][1], pairs[1][1])


def test_python_numbers_keep_all_their_digits() -> None:
    assert float(as_float64(0.1, "x")) == 0.1
    assert float(as_float64([[0.1]], "x")[0, 0]) == 0.1
    with pytest.raises(InvalidInput, match="x must be an array of numbers"):
        as_float64("word", "x")


def test_mean_and_spread_describe_unbalanced_weights(generator: torch.Generator) -> None:
    w1 = torch.randn(6, 4, dtype=torch.float64, generator=generator)
    w2 = torch.randn(5, 6, dtype=torch.float64, generator=generator)
    fit = fit_balance(w1, w2)
    eigenvalues = torch.linalg.eigvalsh(balance_matrix(w1, w2))
    torch.testing.assert_close(fit.mean, eigenvalues.mean())
    torch.testing.assert_close(fit.spread, eigenvalues.var(correction=0).sqrt())
    assert fit.residual > 0.01
    with pytest.raises(ShapeError, match="same hidden size"):
        require_pair(w1, w1)


@checks(balanced_singular_values, by="the two equations that define them")
@pytest.mark.parametrize("balance", [0.0, 0.7, -0.7, 1e4, -1e4])
def test_balanced_singular_values_multiply_to_the_product(balance: float) -> None:
    s = torch.tensor([0.0, 1e-9, 0.3, 2.0, 50.0], dtype=torch.float64)
    s1, s2 = balanced_singular_values(s, torch.tensor(balance, dtype=torch.float64))
    assert torch.allclose(s1 * s2, s, rtol=1e-14, atol=0)
    gap = (s2 - s1) * (s2 + s1) - balance
    assert float(gap.abs().max()) <= 1e-12 * max(1.0, abs(balance))
