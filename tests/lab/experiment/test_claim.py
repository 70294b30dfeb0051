from __future__ import annotations

import decimal
import math
from typing import Any

import numpy
import pytest
import torch

from separatrix.core.errors import InvalidInput, UnknownOption
from separatrix.lab import (
    Claim,
    Judgement,
    Row,
    Truth,
    Verdict,
    condition,
    instead,
    interval_row,
    judge,
    misprint,
)
from separatrix.lab.experiment.claim import require_earned

GOOD, BAD, OPEN = Row("x", 1.0, 1.0), Row("x", 1.0, 2.0, 0.5), Row("x", math.nan, 1.0)


def test_a_row_agrees_within_its_tolerance_only() -> None:
    assert Row("x", 1.5, 1.0, 0.5).agrees
    assert not Row("x", 1.51, 1.0, 0.5).agrees
    assert Row("x", math.inf, 1.0, 0.5).agrees is False
    assert Row("x", math.nan, 1.0, 0.5).agrees is None  # what is not a number decides nothing


def test_a_row_of_words_must_say_whether_it_agrees() -> None:
    with pytest.raises(InvalidInput, match="agrees"):
        Row("order", "a < b", "a < b")


@pytest.mark.parametrize(
    ("rows", "truth", "verdict", "says"),
    [
        ([GOOD], None, Verdict.CONFIRMED, ""),
        ([GOOD], misprint("right", [GOOD]), Verdict.CONFIRMED, ""),
        ([GOOD, OPEN], None, Verdict.UNDECIDED, ""),
        ([GOOD, OPEN, BAD], None, Verdict.REFUTED, ""),
        ([BAD], misprint("right", [GOOD]), Verdict.MISPRINT, "right"),
        ([GOOD, BAD], condition("if so", [GOOD]), Verdict.CONDITIONAL, "if so"),
        ([BAD], instead("other", [GOOD]), Verdict.REFUTED, "other"),
        ([BAD], misprint("right", [GOOD, BAD]), Verdict.REFUTED, ""),
        ([BAD], condition("if so", [OPEN]), Verdict.REFUTED, ""),
        ([BAD], condition("if so", []), Verdict.REFUTED, ""),
        ([], misprint("right", [GOOD]), Verdict.NOT_RUN, ""),
    ],
)
def test_the_verdict_follows_from_the_rows(rows: list, truth: Truth | None, verdict: Verdict, says: str) -> None:
    found = judge("measured", rows, truth)
    assert (found.verdict, found.truth) == (verdict, says)


def test_the_rows_say_whether_they_concern_the_statement_or_what_is_true() -> None:
    found = judge("measured", [BAD], misprint("right", [GOOD]))
    assert [row.concerns for row in found.rows] == ["the statement", "what is true"]


@pytest.mark.parametrize(
    ("interval", "above", "below"),
    [((0.1, 0.3), True, False), ((-0.3, -0.1), False, True), ((-0.1, 0.3), None, None), ((0.0, 0.3), None, None)],
)
def test_an_interval_tells_good_and_bad_news_by_one_rule(
    interval: tuple[float, float], above: bool | None, below: bool | None
) -> None:
    assert interval_row("gap", 0.0, interval, above=0.0).agrees is above
    assert interval_row("gap", 0.0, interval, below=0.0).agrees is below


def test_an_interval_row_states_one_side() -> None:
    with pytest.raises(InvalidInput, match="exactly one of above and below"):
        interval_row("gap", 0.0, (0.0, 1.0))
    with pytest.raises(InvalidInput, match="must run upwards"):
        interval_row("gap", 0.0, (1.0, 0.0), above=0.0)


NAN = Row("slope", math.nan, 1.0, 0.5)


@pytest.mark.parametrize(
    ("rows", "truth", "verdict"),
    [
        ([GOOD, NAN], None, Verdict.UNDECIDED),
        ([GOOD, NAN, BAD], None, Verdict.REFUTED),  # what disagrees does so whatever else failed
        ([BAD], misprint("right", [NAN]), Verdict.REFUTED),  # what was not measured softens nothing
        ([GOOD, Row("slope", math.nan, "falls", agrees=False)], None, Verdict.UNDECIDED),
        ([GOOD, Row("slope", math.nan, "falls", agrees=True)], None, Verdict.UNDECIDED),
        ([GOOD, Row("slope", 1.0, math.nan, 0.5)], None, Verdict.UNDECIDED),
        ([GOOD, Row("slope", math.inf, 1.0, 0.5)], None, Verdict.REFUTED),  # infinity is a measurement
    ],
)
def test_what_is_not_a_number_decides_nothing(rows: list, truth: Truth | None, verdict: Verdict) -> None:
    judged = judge("slope nan", rows, truth)
    assert judged.verdict is verdict
    if verdict is Verdict.UNDECIDED:
        assert judged.evidence == "undecided, because this is not a number: slope (slope nan)"


def claim(**changes: str) -> Claim:
    given = {"id": "a", "statement": "s", "measures": "m", "test": "t", **changes}
    rule = lambda summary: Judgement(Verdict.CONFIRMED, "")  # noqa: E731
    return Claim(judge=rule, counterfeit=len, **given)  # type: ignore[arg-type]


def test_a_claim_takes_over_document_and_place_unless_it_names_its_own() -> None:
    plain, ours = claim(), claim(document="separatrix", place="Remark 2")
    assert [plain.within("kerg2022", "Fig. 1").document, plain.within("kerg2022", "Fig. 1").place] == [
        "kerg2022",
        "Fig. 1",
    ]
    assert ours.within("kerg2022", "Fig. 1") == ours


def test_a_misspelt_field_of_a_claim_gets_the_nearest() -> None:
    with pytest.raises(UnknownOption, match=r"unknown option of Claim 'statment'. Did you mean 'statement'"):
        claim(statment="s")


@pytest.mark.parametrize("answer", [torch.tensor(False), numpy.False_, numpy.array(False)])
def test_a_no_of_another_library_is_a_no(answer: Any) -> None:
    """A tensor is in no set of truth values: the false statement was confirmed."""
    assert judge("e", [Row("q", 1.0, 2.0, "by eye", answer)]).verdict is Verdict.REFUTED


@pytest.mark.parametrize("answer", ["no", 0, 0.0, math.nan, [False], torch.tensor([True, False])])
def test_only_a_truth_value_is_an_answer(answer: Any) -> None:
    with pytest.raises((InvalidInput, RuntimeError)):
        Row("q", 1.0, 2.0, "by eye", answer)


@pytest.mark.parametrize("nothing", [torch.tensor(math.nan), numpy.float32(math.nan)])
def test_nan_of_another_library_decides_nothing(nothing: Any) -> None:
    assert judge("e", [Row("q", nothing, 2.0, "by eye", True)]).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("tolerance", [math.inf, math.nan, -1.0])
def test_a_tolerance_that_lets_all_or_nothing_pass_is_refused(tolerance: float) -> None:
    with pytest.raises(InvalidInput, match="tolerance of row 'q' must be finite"):
        Row("q", 5.0, 1.0, tolerance)


def test_an_interval_without_an_end_cannot_tell() -> None:
    assert interval_row("q", 1.0, (1.0, math.nan), above=0.0).agrees is None


@pytest.mark.parametrize("nothing", [None, "", " ", "nan", "NaN", " -nan", "None", "null", "n/a"])
def test_what_was_not_measured_decides_nothing_whatever_is_given(nothing: Any) -> None:
    for given in (True, False):
        assert Row("q", nothing, 1.0, "w", given).agrees is None
        assert Row("q", 1.0, nothing, "w", given).agrees is None
    assert judge("e", [Row("q", nothing, "yes", "w", True)]).verdict is Verdict.UNDECIDED
    assert Row("q", "nancy", "yes", "w", True).agrees is True


@pytest.mark.parametrize("verdict", [Verdict.CONFIRMED, Verdict.UNDECIDED, Verdict.NOT_RUN])
def test_what_is_true_instead_cannot_confirm_what_is_false(verdict: Verdict) -> None:
    with pytest.raises(InvalidInput, match="cannot make it"):
        Truth(verdict, "x", (Row("q", 1.0, 1.0),))


@pytest.mark.parametrize(
    ("verdict", "rows", "words"),
    [
        (Verdict.CONFIRMED, (Row("q", 5.0, 1.0, 0.1),), "disagree"),
        (Verdict.CONFIRMED, (), "cannot tell, or are not there"),
        (Verdict.MISPRINT, (Row("q", 1.0, 1.0),), "agree"),
        (Verdict.REFUTED, (Row("q", 1.0, 1.0),), "agree"),
    ],
)
def test_a_verdict_made_by_hand_must_be_borne_by_its_rows(verdict: Verdict, rows: tuple[Row, ...], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        require_earned(Judgement(verdict, "e", rows))
    assert require_earned(Judgement(Verdict.UNDECIDED, "e", rows)).evidence == "e"


@pytest.mark.parametrize(("tolerance", "spread"), [(3.0, 0.7), (0.2, 3.0), (1e9, 2e8), (0.1, math.nan)])
def test_what_is_too_imprecise_to_tell_from_nothing_confirms_nothing(tolerance: float, spread: float) -> None:
    assert Row("variance", 2.05, 2.0, tolerance, spread=spread).agrees is None
    assert Row("variance", 2.05, 2.0, 0.1, spread=0.03).agrees is True


def test_want_of_precision_excuses_no_disagreement() -> None:
    assert Row("variance", 9.0, 2.0, 3.0, spread=1.0).agrees is False
    assert Row("difference", 0.1, 0.0, 0.5, spread=0.2).agrees is True  # nothing is expected, and stated with its room


@pytest.mark.parametrize("spread", [math.nan, math.inf])
@pytest.mark.parametrize(("expected", "agrees"), [(0.0, None), (1.0, None), ("below 2", True)])
def test_an_unknown_or_endless_spread_agrees_with_nothing(spread: float, expected: Any, agrees: bool | None) -> None:
    """Also where zero or a word is expected, beside which no spread is large."""
    given = {"agrees": agrees} if agrees is not None else {}
    assert Row("slope", 0.0 if expected == 0 else 1.0, expected, 0.1, spread=spread, **given).agrees is None
    assert Row("slope", 1.0, expected, spread, agrees=True).agrees is None


def test_a_spread_decides_nothing_against_what_it_covers() -> None:
    """Bad news by the same rule: half above what is expected is no disagreement for a spread of a hundred."""
    assert Row("slope", 1.5, 1.0, 0.1, spread=100.0).agrees is None
    assert Row("slope", 1.5, 1.0, 0.1, spread=0.2).agrees is False
    assert Row("slope", 500.0, 1.0, 0.1, spread=2.0).agrees is False


def test_a_spread_is_not_negative() -> None:
    with pytest.raises(InvalidInput, match="spread of row 'slope'"):
        Row("slope", 1.0, 1.0, 0.1, spread=-1.0)


@pytest.mark.parametrize("kind", [numpy.float32, numpy.float64, numpy.int64, torch.tensor, decimal.Decimal])
def test_numbers_of_other_libraries_are_numbers(kind: Any) -> None:
    assert Row("slope", kind(3), 3.0, 0.1).agrees is True
    assert Row("slope", 3.0, kind(3), 0.1, spread=kind(5)).agrees is None
    assert Row("slope", 3.0, kind(3), kind(5), agrees=True, spread=0.1).agrees is None
    assert isinstance(Row("slope", kind(3), 3.0, 0.1).measured, int | float)


@pytest.mark.parametrize("interval", [(None, 1.0), (1.0, None), ("a", "b"), (1.0, 2.0, 3.0), (1.0,), 1.0, None])
def test_an_interval_has_two_numbers(interval: Any) -> None:
    with pytest.raises(InvalidInput, match="interval of row 'gap'"):
        interval_row("gap", 1.0, interval, above=0.0)
