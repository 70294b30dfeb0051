from __future__ import annotations

import pytest
from hypothesis import given, strategies
from scipy.stats import binomtest

from separatrix.core import InvalidInput
from separatrix.dynamics import equal_proportions_p, unseen_mass, wilson_interval


@given(strategies.integers(1, 300), strategies.data())
def test_wilson_interval_equals_scipy(total: int, data: strategies.DataObject) -> None:
    count = data.draw(strategies.integers(0, total))
    theirs = binomtest(count, total).proportion_ci(method="wilson")
    assert wilson_interval(count, total) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@given(strategies.integers(0, 40), strategies.integers(0, 40))
def test_comparison_of_two_labels_equals_the_exact_binomial_test(a: int, b: int) -> None:
    expected = binomtest(a, a + b).pvalue if a + b else 1.0
    assert equal_proportions_p(a, b) == pytest.approx(expected, abs=1e-9)


def test_unseen_mass_counts_labels_seen_once() -> None:
    assert unseen_mass([5, 1, 3, 1]) == pytest.approx(0.2)
    assert unseen_mass([]) == 1.0


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="got 3 of 2"):
        wilson_interval(3, 2)
