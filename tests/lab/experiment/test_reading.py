"""A rule is told what was not measured only at the price of its verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from separatrix.lab import Judgement, Row, Summary, Verdict, judge
from separatrix.lab.experiment.frozen_model import FrozenModel
from separatrix.lab.experiment.reading import judge_what_was_measured


class Inner(FrozenModel):
    slope: float


class Measured(Summary):
    slope: float
    ends: tuple[float, float]
    inner: Inner
    parts: dict[str, dict[str, float]]


def measured(**changes: Any) -> Measured:
    rows = [{"step": 3.0, "loss": 1.0, "unread": 1.0}, {"step": 1.0, "loss": 3.0}, {"step": 2.0, "loss": 2.0}]
    usual = {"slope": 1.0, "ends": (0.0, 1.0), "inner": Inner(slope=1.0), "parts": {"lemma": {"error": 0.0, "n": 1.0}}}
    return Measured(**{**usual, "tables": {"Losses": rows}, **changes})


def with_table(column: str, place: int = 1) -> Measured:
    rows = measured().tables["Losses"]
    changed = [{**row, column: math.nan} if index == place else row for index, row in enumerate(rows)]
    return measured(tables={"Losses": changed})


def says(agrees: bool) -> Judgement:
    return judge("the rest", [Row("loss", 1.0, "falls", agrees=agrees)])


def by_order(summary: Measured) -> Judgement:
    losses = [row["loss"] for row in sorted(summary.table("Losses"), key=lambda row: row["step"])]
    return says(losses[0] > losses[-1])


@pytest.mark.parametrize("agrees", [True, False])
@pytest.mark.parametrize(
    ("rule", "summary"),
    [
        (by_order, with_table("step")),
        (lambda summary: max(row["step"] for row in summary.table("Losses")), with_table("step")),
        (lambda summary: [{**row} for row in summary.table("Losses")], with_table("loss")),
        (lambda summary: [dict(row) for row in summary.table("Losses")], with_table("loss")),
        (lambda summary: [row | {} for row in summary.table("Losses")], with_table("loss")),
        (lambda summary: [list(row.values()) for row in summary.table("Losses")], with_table("loss")),
        (lambda summary: [list(row.items()) for row in summary.table("Losses")], with_table("loss")),
        (lambda summary: [row.get("unread") for row in summary.table("Losses")], with_table("unread", 0)),
        (lambda summary: summary.slope, measured(slope=math.nan)),
        (lambda summary: numpy.array(summary.ends), measured(ends=(0.0, math.nan))),
        (lambda summary: summary.inner.slope, measured(inner=Inner(slope=math.nan))),
        (lambda summary: summary.parts["lemma"]["error"], measured(parts={"lemma": {"error": math.nan, "n": 1.0}})),
    ],
)
def test_a_rule_that_was_given_nan_decides_nothing(rule: Callable, summary: Measured, agrees: bool) -> None:
    def asked(summary: Measured) -> Judgement:
        rule(summary)
        return says(agrees)

    judged = judge_what_was_measured(asked, summary)
    assert judged.verdict is Verdict.UNDECIDED
    assert "not measured" in judged.evidence
    assert "the rest" in judged.evidence
    assert judge_what_was_measured(asked, measured()).verdict is not Verdict.UNDECIDED


@pytest.mark.parametrize(
    "rule",
    [
        lambda summary: [row["loss"] for row in summary.table("Losses")],
        lambda summary: ["unread" in row for row in summary.table("Losses")],
        lambda summary: summary.parts["lemma"]["error"],
        lambda summary: summary.inner.slope,
    ],
)
def test_what_a_rule_does_not_read_does_not_concern_it(rule: Callable) -> None:
    def asked(summary: Measured) -> Judgement:
        rule(summary)
        return says(True)

    lacking = with_table("unread", 0).model_copy(
        update={"slope": math.nan, "ends": (math.nan, 1.0), "parts": {"lemma": {"error": 0.0, "n": math.nan}}}
    )
    assert judge_what_was_measured(asked, lacking) == says(True)


def test_what_was_not_measured_is_named_by_its_place() -> None:
    judged = judge_what_was_measured(by_order, with_table("step"))
    assert judged.evidence == "undecided, because this was not measured: Losses, 2, step (the rest)"
    slope = judge_what_was_measured(lambda summary: says(summary.slope > 0), measured(slope=math.nan))
    assert "not measured: slope (" in slope.evidence


def test_many_gaps_are_counted_and_not_listed() -> None:
    rows = [{"step": math.nan, "loss": 1.0}] * 12
    judged = judge_what_was_measured(by_order, measured(tables={"Losses": rows}))
    assert "Losses, 3, step; 9 more (" in judged.evidence


def test_the_rule_sees_a_summary_of_its_own_class() -> None:
    def rule(summary: Measured) -> Judgement:
        assert isinstance(summary, Measured)
        assert summary.ends == (0.0, 1.0)
        return says(math.isnan(summary.slope))

    assert judge_what_was_measured(rule, measured(slope=math.nan)).verdict is Verdict.UNDECIDED


def test_a_rule_that_fails_on_what_was_not_measured_is_undecided_and_no_other() -> None:
    def rule(summary: Measured) -> Judgement:
        return says(int(summary.slope) == 1)

    assert judge_what_was_measured(rule, measured(slope=math.nan)).verdict is Verdict.UNDECIDED
    with pytest.raises(OverflowError):
        judge_what_was_measured(rule, measured(slope=math.inf))
    with pytest.raises(OverflowError):  # the NaN is not what it stumbled over
        judge_what_was_measured(rule, measured(slope=math.inf, ends=(math.nan, 1.0)))
