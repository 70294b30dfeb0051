from __future__ import annotations

import math

import pytest

from separatrix.core.errors import InvalidInput, UnknownOption
from separatrix.lab import Claim, Judgement, Row, Verdict, judge

GOOD, BAD = Row("x", 1.0, 1.0), Row("x", 1.0, 2.0, 0.5)


def test_a_row_agrees_within_its_tolerance_only() -> None:
    assert Row("x", 1.5, 1.0, 0.5).agrees
    assert not Row("x", 1.51, 1.0, 0.5).agrees
    assert not Row("x", math.nan, 1.0, 0.5).agrees


def test_a_row_of_words_must_say_whether_it_agrees() -> None:
    with pytest.raises(InvalidInput, match="agrees"):
        Row("order", "a < b", "a < b")


@pytest.mark.parametrize(
    ("rows", "printed", "counterexamples", "verdict"),
    [
        ([GOOD], [], [], Verdict.CONFIRMED),
        ([GOOD, BAD], [], [], Verdict.REFUTED),
        ([GOOD], [BAD], [], Verdict.CORRECTED),
        ([GOOD], [GOOD], [BAD], Verdict.REFINED),
        ([GOOD], [BAD], [BAD], Verdict.CORRECTED),
        ([BAD], [GOOD], [GOOD], Verdict.REFUTED),
        ([], [GOOD], [], Verdict.NOT_RUN),
    ],
)
def test_the_verdict_follows_from_the_rows(rows: list, printed: list, counterexamples: list, verdict: Verdict) -> None:
    assert judge("measured", rows, printed=printed, counterexamples=counterexamples).verdict is verdict


NAN = Row("slope", math.nan, 1.0, 0.5)


@pytest.mark.parametrize(
    ("rows", "printed", "counterexamples", "verdict"),
    [
        ([GOOD, NAN], [], [], Verdict.UNDECIDED),
        ([GOOD, NAN, BAD], [], [], Verdict.REFUTED),  # what disagrees does so whatever else failed
        ([GOOD], [NAN], [], Verdict.UNDECIDED),
        ([GOOD], [NAN, BAD], [], Verdict.CORRECTED),
        ([GOOD], [], [NAN], Verdict.UNDECIDED),
        ([GOOD, Row("slope", math.nan, "falls", agrees=False)], [], [], Verdict.UNDECIDED),
        ([GOOD, Row("slope", math.nan, "falls", agrees=True)], [], [], Verdict.UNDECIDED),
        ([GOOD, Row("slope", 1.0, math.nan, 0.5)], [], [], Verdict.UNDECIDED),
        ([GOOD, Row("slope", math.inf, 1.0, 0.5)], [], [], Verdict.REFUTED),  # infinity is a measurement
    ],
)
def test_what_is_not_a_number_decides_nothing(
    rows: list, printed: list, counterexamples: list, verdict: Verdict
) -> None:
    judged = judge("slope nan", rows, printed=printed, counterexamples=counterexamples)
    assert judged.verdict is verdict
    if verdict is Verdict.UNDECIDED:
        assert judged.evidence == "undecided, because this is not a number: slope (slope nan)"
    assert judged.rows == (*rows, *printed, *counterexamples)


def claim(**changes: str) -> Claim:
    given = {"id": "a", "statement": "s", "measures": "m", "test": "t", **changes}
    return Claim(judge=lambda summary: Judgement(Verdict.CONFIRMED, ""), **given)  # type: ignore[arg-type]


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
