from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.optimize import brentq

from helpers import checks, seeded
from separatrix.core import OutsideTheory
from separatrix.diagnose.balance.exact_moves import rotate_pair, unit_factors

positive = st.floats(1e-3, 1e3)
balances = st.floats(-100, 100)


@checks(unit_factors, by="root finding by Brent's method")
@given(a=positive, b=positive, balance=balances, degree=st.sampled_from([1.0, 2.0, 3.0]))
@settings(max_examples=60, deadline=None)
def test_unit_factors_solve_the_balance_equation(a: float, b: float, balance: float, degree: float) -> None:
    alpha = float(unit_factors(torch.tensor([a]).double(), torch.tensor([b]).double(), balance, degree)[0])

    def gap(log_alpha: float) -> float:
        return degree * b * 10 ** (2 * degree * log_alpha) - a * 10 ** (-2 * log_alpha) - balance

    assert alpha == pytest.approx(10 ** brentq(gap, -12, 12, xtol=1e-14, rtol=1e-14), rel=1e-6)


def test_units_without_weight_get_no_factor() -> None:
    factors = unit_factors(torch.tensor([0.0, 1.0, 1.0]).double(), torch.tensor([1.0, 0.0, 1.0]).double(), 0.5)
    assert factors.isnan().tolist() == [True, True, False]


@given(
    sizes=st.tuples(*[st.integers(1, 6)] * 3),
    balance=st.sampled_from([0.0, 1e-8, -1e-8, 0.5, -0.5, 30.0, -30.0]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=80, deadline=None)
def test_rotated_pairs_keep_their_product_and_get_their_balance(
    sizes: tuple[int, int, int], balance: float, seed: int
) -> None:
    n_in, n_hidden, n_out = sizes
    generator = seeded(seed)
    first = torch.randn(n_hidden, n_in, generator=generator, dtype=torch.float64)
    second = torch.randn(n_hidden, n_out, generator=generator, dtype=torch.float64)
    if (balance > 0 and n_hidden > n_out) or (balance < 0 and n_hidden > n_in):
        with pytest.raises(OutsideTheory, match="n_hidden <= n_"):
            rotate_pair(first, second, balance)
        return
    new1, new2 = rotate_pair(first, second, balance)
    scale = max(1.0, abs(balance))
    assert torch.allclose(new2.mT @ new1, second.mT @ first, atol=1e-12 * scale)
    assert torch.allclose(new2 @ new2.mT - new1 @ new1.mT, balance * torch.eye(n_hidden).double(), atol=1e-12 * scale)


def test_a_balanced_pair_is_not_moved(generator: torch.Generator) -> None:
    first, second = torch.randn(2, 4, 6, generator=generator, dtype=torch.float64)
    once = rotate_pair(first, second, 0.4)
    twice = rotate_pair(*once, 0.4)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(once, twice, strict=True))
