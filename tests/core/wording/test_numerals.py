from __future__ import annotations

import math

import hypothesis
import pytest
from hypothesis import strategies

from separatrix.core.wording import alike, interval_of, measured, number, several, small, uncertainty, within_interval
from separatrix.core.wording.lint import faults_of


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0.604167, 0.116108, "0.60 ± 0.12"),
        (0.604167, 0.0354, "0.604 ± 0.035"),
        (0.604167, 0.0356, "0.60 ± 0.04"),
        (0.604167, 0.0951, "0.60 ± 0.10"),
        (12345.6, 949.0, "12300 ± 900"),
        (-0.0001, 0.02, "0.000 ± 0.020"),
        (1.0, None, "1"),
        (-10.0, 8e-15, "-10"),
        (4.3454910467731494e-11, 5.195786200872325e-13, "(4.35 ± 0.05)e-11"),
        (2.5e8, 3.1e7, "(2.50 ± 0.31)e8"),
    ],
)
def test_a_value_has_the_digits_that_its_uncertainty_bears(value: float, error: float | None, words: str) -> None:
    assert measured(value, error) == words


@hypothesis.example(1.0, 1e-5)  # seven digits, and the uncertainty bears them
@hypothesis.given(
    strategies.floats(-1e5, 1e5, allow_subnormal=False),
    strategies.floats(1e-5, 1e5, allow_subnormal=False),
)
def test_what_is_said_lies_within_the_rounding_of_its_uncertainty(value: float, error: float) -> None:
    said = measured(value, error)
    hypothesis.assume("e" not in said and "±" in said)
    shown, spread = (float(part) for part in said.split(" ± "))
    # the rule keeps at least one digit of an error from 355 on, and two of 100: half of its last place at most
    assert abs(shown - value) <= 0.15 * error
    assert abs(spread - error) <= 0.15 * error
    assert not faults_of(said)


@hypothesis.example(-1.7e308)
@hypothesis.given(strategies.floats(allow_nan=True, allow_infinity=True))
def test_every_number_is_said_without_a_fault(value: float) -> None:
    hypothesis.assume(not math.isfinite(value) or abs(value) <= 1.7e308)  # two digits of a larger one are no float
    for said in (number(value), small(value), uncertainty(abs(value))):
        assert not faults_of(said)
        if math.isfinite(value) and value:
            assert float(said) == pytest.approx(value if said != uncertainty(abs(value)) else float(said), rel=0.06)


def test_an_interval_of_a_share_ends_at_its_bounds() -> None:
    assert within_interval(0.99975, 0.99913, 1.00037, bounds=(0.0, 1.0)) == "0.9998 [0.9991, 1]"
    assert within_interval(0.5, 0.5, 0.5) == "0.5"
    assert within_interval(0.001, -0.05, 0.05, signed=True) == "0.00 [-0.05, +0.05]"


def test_a_record_says_its_own_interval() -> None:
    assert interval_of({"loss": 0.108, "loss_low": 0.0152, "loss_high": 0.201}, "loss") == "0.11 [0.02, 0.20]"
    assert interval_of({"mean": 0.98, "low": None, "high": None}) == "0.98"


def test_counts_agree_with_their_nouns() -> None:
    assert [several(count, "unit") for count in (0, 1, 2)] == ["0 units", "1 unit", "2 units"]
    assert alike(1.0, 2.0, error=0.25) == ["1.00", "2.00"]
