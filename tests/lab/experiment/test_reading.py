"""A rule is told what was not measured only at the price of its verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from separatrix.lab import Claim, Judgement, Row, Summary, Verdict, groups, judge
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


def said(rule: Callable, summary: Summary, **more: Any) -> Judgement:
    words = dict.fromkeys(("id", "statement", "measures", "test"), "x")
    claim = Claim(**words, judge=rule, counterfeit=lambda summary: summary, **more)
    return judge_what_was_measured(claim, summary)


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

    judged = said(asked, summary)
    assert judged.verdict is Verdict.UNDECIDED
    assert "not measured" in judged.evidence
    assert "the rest" in judged.evidence
    assert said(asked, measured()).verdict is not Verdict.UNDECIDED


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
    assert said(asked, lacking) == says(True)


def test_what_was_not_measured_is_named_by_its_place() -> None:
    judged = said(by_order, with_table("step"))
    assert judged.evidence == "undecided, because this was not measured: Losses, 2, step (the rest)"
    slope = said(lambda summary: says(summary.slope > 0), measured(slope=math.nan))
    assert "not measured: slope (" in slope.evidence


def test_many_gaps_are_counted_and_not_listed() -> None:
    rows = [{"step": math.nan, "loss": 1.0}] * 12
    judged = said(by_order, measured(tables={"Losses": rows}))
    assert "Losses, 3, step; 9 more (" in judged.evidence


def test_the_rule_sees_a_summary_of_its_own_class() -> None:
    def rule(summary: Measured) -> Judgement:
        assert isinstance(summary, Measured)
        assert summary.ends == (0.0, 1.0)
        return says(math.isnan(summary.slope))

    assert said(rule, measured(slope=math.nan)).verdict is Verdict.UNDECIDED


def test_a_rule_that_fails_on_what_was_not_measured_is_undecided_and_no_other() -> None:
    def rule(summary: Measured) -> Judgement:
        return says(int(summary.slope) == 1)

    assert said(rule, measured(slope=math.nan)).verdict is Verdict.UNDECIDED
    with pytest.raises(OverflowError):
        said(rule, measured(slope=math.inf))
    with pytest.raises(OverflowError):  # the NaN is not what it stumbled over
        said(rule, measured(slope=math.inf, ends=(math.nan, 1.0)))


@pytest.mark.parametrize(("agrees", "verdict"), [(True, Verdict.UNDECIDED), (False, Verdict.REFUTED)])
def test_a_group_that_the_statement_names_must_be_there_to_confirm_it(agrees: bool, verdict: Verdict) -> None:
    """What is left may refute a statement about all of them."""
    rows = [{"family": "gaussian", "loss": 1.0}, {"family": "haar", "loss": 2.0}]
    needs = (groups("Losses", "family", "gaussian", "haar"),)
    assert said(lambda _: says(True), measured(tables={"Losses": rows}), needs=needs) == says(True)
    for lacking in (measured(tables={"Losses": rows[:1]}), measured(tables={})):
        judged = said(lambda _: says(agrees), lacking, needs=needs)
        assert judged.verdict is verdict
        assert ("not measured: " in judged.evidence) is agrees


def test_groups_are_looked_for_in_fields_too() -> None:
    class Kept(Summary):
        runs: list[dict[str, str]]

    needs = (groups("runs", "model", "nnRNN"),)
    assert said(lambda _: says(True), Kept(runs=[{"model": "nnRNN"}]), needs=needs).verdict is Verdict.CONFIRMED
    judged = said(lambda _: says(True), Kept(runs=[{"model": "LSTM"}]), needs=needs)
    assert judged.evidence == "undecided, because this was not measured: model nnRNN (the rest)"
