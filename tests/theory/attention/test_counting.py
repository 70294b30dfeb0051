from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

import reference_attention as ref
from helpers import checks, elements_computed, seeded
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.theory.attention import bipartite_spectrum, count_stable, count_stable_causal
from separatrix.theory.attention.binomial_tails import binomial_sum, log_binomial_fraction, log_inside, log_outside

VALUE = torch.diag(torch.tensor([3.0, 1.0, -4.0], dtype=torch.float64))
COUPLING = torch.diag(torch.tensor([0.9, 0.2, -1.1], dtype=torch.float64))
VALUE_4 = [[3.0, 1, 0, 0], [1, -1, 1, 0], [0, 1, 1, -2], [0, 0, -2, -4]]
COUPLING_4 = torch.tensor([[1.0, 0, 2, -1], [0, 1, 1, 0], [-1, 0, 1, 1], [2, 1, 0, -1]], dtype=torch.float64)


def brute_force(coupling: torch.Tensor, value: torch.Tensor, n_tokens: int) -> list[int]:
    """Dense autodiff Jacobian at every one of the d 2^n points."""
    flow = ref.velocity_of(ref.softmax_attention(coupling), value)
    counts = []
    for k in range(value.shape[0]):
        if k not in ref.real_eigenvectors(value):
            counts.append(0)
            continue
        patterns = (torch.tensor(s, dtype=torch.float64) for s in itertools.product([1.0, -1.0], repeat=n_tokens))
        counts.append(sum(ref.tangent_spectrum(flow, ref.pattern(value, k, s)).real.max() < -1e-9 for s in patterns))
    return [int(count) for count in counts]


@checks(count_stable, by="dense autodiff Jacobian at all d 2^n points")
@pytest.mark.parametrize("symmetric", [True, False])
def test_counts_are_those_of_brute_force(symmetric: bool) -> None:
    generator = seeded(11)
    totals = 0
    for index in range(3):
        value = ref.random_value(3, generator, symmetric=symmetric)
        coupling = 2 * torch.randn(3, 3, dtype=torch.float64, generator=generator)
        result = count_stable(coupling, value, 4 + index % 2)
        assert result.per_eigenvector == brute_force(coupling, value, 4 + index % 2)
        totals += sum(result.per_eigenvector)
    assert totals > 0


def test_acceptance_integers() -> None:
    assert count_stable(COUPLING, VALUE, 10).per_eigenvector == [1004, 0, 672]
    assert count_stable(COUPLING, VALUE, 9).per_eigenvector == [494, 0, 252]
    hundred = count_stable(COUPLING, VALUE, 100)
    assert hundred.per_eigenvector[2] == 1265381593893094343173016682006
    assert hundred.windows == [[(20, 80)], [], [(35, 65)]]
    for scale, expected in ((0.5, [2, 0, 0, 0]), (1.0, [914, 0, 0, 0]), (2.0, [1024, 0, 0, 912])):
        assert count_stable(COUPLING_4, VALUE_4, 10, beta=scale).per_eigenvector == expected


def test_the_work_grows_as_the_root_of_the_number_of_tokens() -> None:
    few = elements_computed(lambda: count_stable(COUPLING, VALUE, 10**5))
    many = elements_computed(lambda: count_stable(COUPLING, VALUE, 10**9))
    assert few < 10**5  # every split would cost at least this much
    assert many < 2 * 10**2 * few  # ten thousand times the tokens; pieces double, hence the factor 2


def test_a_million_and_a_billion_tokens_answer() -> None:
    million = count_stable(COUPLING, VALUE, 10**6)
    assert million.per_eigenvector is None
    assert million.total is None
    assert million.windows == [[(199851, 800149)], [], [(340976, 659024)]]
    fractions = [(each - 10**6) * math.log10(2) for each in million.log2_unstable_each]
    assert fractions[0] == pytest.approx(-83800.9, abs=0.05)
    assert fractions[2] == pytest.approx(-22354.3, abs=0.05)
    billion = count_stable(COUPLING, VALUE, 10**9)
    assert billion.log2_count == pytest.approx(10**9 + 1, abs=1e-5)
    assert billion.log2_unstable == pytest.approx(10**9, abs=1e-5)


def test_logarithms_continue_the_exact_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = count_stable(0.8 * COUPLING, VALUE, 2000)
    monkeypatch.setattr("separatrix.theory.attention.counting.EXACT_UP_TO", 10)
    logs = count_stable(0.8 * COUPLING, VALUE, 2000)
    assert logs.per_eigenvector is None
    for k in range(3):
        assert logs.log2_stable[k] == pytest.approx(exact.log2_stable[k], abs=1e-10)
        assert logs.log2_unstable_each[k] == pytest.approx(exact.log2_unstable_each[k], abs=1e-10)
    assert logs.log2_count == pytest.approx(exact.log2_count, abs=1e-10)
    assert logs.log2_unstable == pytest.approx(exact.log2_unstable, abs=1e-10)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 7), scale=st.sampled_from([0.5, 2.0]), symmetric=st.booleans())
@settings(max_examples=15, deadline=None)
def test_enumerating_sign_patterns_gives_the_same_integers(seed: int, n: int, scale: float, symmetric: bool) -> None:
    generator = seeded(seed)
    value = ref.random_value(3, generator, symmetric=symmetric)
    coupling = scale * torch.randn(3, 3, dtype=torch.float64, generator=generator)
    fast = count_stable(coupling, value, n)
    slow = count_stable(coupling, value, n, exhaustive=True)
    assert slow.method == "exhaustive"
    assert fast.per_eigenvector == slow.per_eigenvector
    assert fast.windows == slow.windows


def test_a_value_matrix_that_is_not_symmetric_is_counted_by_spectra() -> None:
    value = torch.tensor([[2.0, 1.0, 0.0], [-0.5, 0.5, 0.2], [0.0, 0.1, -1.0]], dtype=torch.float64)
    coupling = torch.eye(3, dtype=torch.float64)
    result = count_stable(coupling, value, 30)
    assert result.method == "spectra"
    stable = [n1 for n1 in range(31) if bipartite_spectrum(coupling, value, 0, n1, 30 - n1).stable]
    assert result.per_eigenvector[0] == sum(math.comb(30, n1) for n1 in stable)
    many = count_stable(coupling, value, 20_000)
    assert many.log2_stable[0] == pytest.approx(20_000, abs=1e-9)
    assert -math.inf < many.log2_unstable_each[0] < 19_000
    with pytest.raises(OutsideTheory, match="n_tokens must be at most 10000000 where value is not symmetric"):
        count_stable(coupling, value, 10**9)


def test_a_value_matrix_without_positive_eigenvalue_is_counted_with_a_warning() -> None:
    result = count_stable(torch.eye(2), torch.diag(torch.tensor([-1.0, -2.0])), 6)
    assert result.warning is not None
    assert "not positive" in result.warning
    assert (
        result.per_eigenvector
        == count_stable(torch.eye(2), torch.diag(torch.tensor([-1.0, -2.0])), 6, exhaustive=True).per_eigenvector
    )


@given(n=st.integers(1, 300), data=st.data())
@settings(max_examples=60, deadline=None)
def test_binomial_sums_are_exact_and_their_logarithms_agree(n: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, n))
    high = data.draw(st.integers(low, n))
    direct = sum(math.comb(n, i) for i in range(low, high + 1))
    assert binomial_sum(n, low, high) == direct
    assert log_inside(n, [(low, high)]) == pytest.approx(math.log(direct) - n * math.log(2), abs=1e-11)
    rest = 2**n - direct
    outside = log_outside(n, [(low, high)])
    assert outside == (-math.inf if rest == 0 else pytest.approx(math.log(rest) - n * math.log(2), abs=1e-11))


def test_log_binomials_keep_their_digits_where_log_gamma_does_not() -> None:
    n, i = 10**9, 499_990_000
    exact = -2 * (n / 2 - i) ** 2 / n - 0.5 * math.log(math.pi * n / 2)  # next terms of the expansion are below 1e-8
    value = float(log_binomial_fraction(n, torch.tensor(float(i), dtype=torch.float64)))
    assert value == pytest.approx(exact, abs=2e-8)


def test_bad_input_of_counting_is_named() -> None:
    with pytest.raises(InvalidInput, match="n_tokens must be an integer of at least 1; got 0"):
        count_stable(COUPLING, VALUE, 0)
    with pytest.raises(InvalidInput, match="at most 12; got 13"):
        count_stable(COUPLING, VALUE, 13, exhaustive=True)
    with pytest.raises(InvalidInput, match=r"one pair of matrices; got a batch \(2,\). Use stable_windows"):
        count_stable(torch.zeros(2, 3, 3), VALUE, 5)


def test_a_consensus_that_rotates_is_named_beside_the_zero() -> None:
    rotating = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]], dtype=torch.float64)
    period = 2 * math.pi / 2
    for found in (count_stable(torch.eye(3), rotating, 4), count_stable_causal(torch.eye(3), rotating, 4)):
        assert found.total == 0
        assert found.warning is not None
        assert f"tokens that agree rotate with period {period:.4g}, and this cycle is stable" in found.warning
    away = count_stable(torch.eye(3), rotating - 2 * torch.eye(3, dtype=torch.float64), 4).warning
    assert away is not None
    assert "this cycle is not stable" in away


def test_a_consensus_on_a_repeated_eigenvalue_is_named_marginal() -> None:
    found = count_stable(torch.eye(3), torch.eye(3), 4)
    assert found.total == 0
    assert found.warning is not None
    assert "marginal" in found.warning
    assert count_stable(torch.eye(2), torch.diag(torch.tensor([2.0, 1.0])), 4).warning is None
