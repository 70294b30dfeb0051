"""A rule is told what was not measured only at the price of its verdict."""

from __future__ import annotations

import collections
import copy
import dataclasses
import decimal
import math
import pickle
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import pydantic
import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.lab import Claim, Judgement, Row, Summary, Verdict, at_least, crossed, groups, judge, spans
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


class Pair(NamedTuple):
    first: float
    second: float


@dataclasses.dataclass
class Bare:
    first: float


class Loose(Summary):
    """What a stranger may keep."""

    kept: Any


@pytest.mark.parametrize(
    "kept",
    [
        numpy.float32(math.nan),
        numpy.array([1.0, math.nan]),
        torch.tensor([[math.nan]]),
        decimal.Decimal("NaN"),
        complex(0.0, math.nan),
        "nan",  # which a published summary turns into the number
        "NaN",
        {math.nan, 1.0},
        {math.nan: 1.0},
        collections.deque([math.nan]),
        Pair(1.0, math.nan),
        Bare(math.nan),
    ],
    ids=lambda kept: f"{type(kept).__name__} {kept}",
)
def test_a_number_that_was_not_measured_is_known_in_whatever_it_comes(kept: Any) -> None:
    def rule(summary: Loose) -> Judgement:
        assert type(summary.kept) is type(kept) or isinstance(kept, dict)
        return says(True)

    assert said(rule, Loose(kept=kept)).verdict is Verdict.UNDECIDED
    nested = Loose(kept={"a": [{"b": kept}], "c": 1.0})
    assert said(lambda summary: says(summary.kept["a"][0]["b"] is not None), nested).verdict is Verdict.UNDECIDED
    assert said(lambda summary: says(summary.kept["c"] == 1.0), nested) == says(True)


def test_a_mapping_that_is_no_dictionary_is_read_like_one() -> None:
    proxy = Loose(kept=types.MappingProxyType({"a": math.nan, "b": 1.0}))
    assert said(lambda summary: says(summary.kept["a"] != 0), proxy).verdict is Verdict.UNDECIDED
    assert said(lambda summary: says(summary.kept["b"] == 1), proxy) == says(True)


@pytest.mark.parametrize("kept", [10**400, decimal.Decimal("1e999"), "nanometre", None, math.inf, b"nan", {1: 2.0}])
def test_what_is_no_nan_stays_as_it_is(kept: Any) -> None:
    assert said(lambda summary: says(summary.kept == kept), Loose(kept=kept)) == says(True)


@pytest.mark.parametrize(
    "rule",
    [
        lambda summary: [row.pop("loss") for row in summary.table("Losses")],
        lambda summary: [row.popitem() for row in summary.table("Losses")],
        lambda summary: [row.setdefault("loss", 0.0) for row in summary.table("Losses")],
        lambda summary: summary.table("Losses") == [{"step": 1.0}] * 3,
        lambda summary: {"step": 1.0} in summary.table("Losses"),
        lambda summary: str(summary.table("Losses")),
        lambda summary: dict(summary),
        lambda summary: summary.model_dump(),
        lambda summary: summary.model_dump_json(),
        lambda summary: summary.to_dict(),
        lambda summary: summary == measured(),
    ],
)
def test_no_way_to_take_a_row_or_a_summary_apart_hides_a_gap(rule: Callable) -> None:
    def asked(summary: Measured) -> Judgement:
        rule(summary)
        return says(True)

    rows = [{"step": float(step), "loss": math.nan} for step in range(3)]
    assert said(asked, measured(tables={"Losses": rows})).verdict is Verdict.UNDECIDED
    if "table" not in rule.__code__.co_names:
        assert said(asked, measured(inner=Inner(slope=math.nan))).verdict is Verdict.UNDECIDED
    assert said(
        lambda summary: says(summary.model_copy(update={"slope": 2.0}).slope == 2.0), with_table("loss")
    ) == says(True)


def _by_match(summary: Measured) -> float:
    match summary:
        case Measured(slope=slope):
            return slope
    raise AssertionError("a summary of another class")


WHOLE: dict[str, Callable[[Measured], Any]] = {
    "vars": lambda summary: vars(summary)["slope"],
    "its own attributes": lambda summary: object.__getattribute__(summary, "slope"),
    "state": lambda summary: summary.__getstate__()["__dict__"]["slope"],
    "pickle": lambda summary: pickle.loads(pickle.dumps(summary)).slope,
    "copy": lambda summary: copy.copy(summary).slope,
    "deep copy": lambda summary: copy.deepcopy(summary).slope,
    "written in a sentence": lambda summary: f"{summary}",
    "repr": repr,
    "pydantic": lambda summary: pydantic.TypeAdapter(Measured).dump_python(summary)["slope"],
    "validated again": lambda summary: Measured.model_validate(vars(summary)).slope,
    "fields in turn": lambda summary: dict(Measured.__iter__(summary))["slope"],
    "match": _by_match,
    "comparison": lambda summary: summary == measured(),
    "reversed comparison": lambda summary: measured() != summary,
}


OF_ANY = ("vars", "its own attributes", "state", "pickle", "copy", "deep copy", "written in a sentence", "repr")


@pytest.mark.parametrize(("way", "inside"), [*((way, False) for way in WHOLE), *((way, True) for way in OF_ANY)])
def test_a_summary_is_not_taken_whole_without_its_gaps(way: str, inside: bool) -> None:
    def rule(summary: Measured) -> Judgement:
        WHOLE[way](summary.inner if inside else summary)  # type: ignore[arg-type]
        return says(True)

    summary = measured(inner=Inner(slope=math.nan)) if inside else measured(slope=math.nan)
    assert said(rule, summary).verdict is Verdict.UNDECIDED
    assert said(rule, measured()).verdict is Verdict.CONFIRMED


def test_what_is_taken_whole_is_complete() -> None:
    def rule(summary: Measured) -> Judgement:
        assert list(vars(summary)) == list(Measured.model_fields)
        assert repr(summary) == repr(measured(slope=math.nan))
        return says(True)

    assert "slope" in said(rule, measured(slope=math.nan)).evidence


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


def test_a_rule_that_stumbles_over_a_group_that_is_not_there_cannot_tell() -> None:
    def rule(summary: Any) -> Judgement:
        return says(next(row for row in summary.table("Losses") if row["family"] == "haar")["loss"] > 0)

    lacking = measured(tables={"Losses": [{"family": "gaussian", "loss": 1.0}]})
    judged = said(rule, lacking, needs=(groups("Losses", "family", "haar"),))
    assert judged.verdict is Verdict.UNDECIDED
    assert judged.evidence.startswith("undecided, because this was not measured: family haar (")
    with pytest.raises(StopIteration):  # a fault of the rule's own
        said(rule, lacking)


@pytest.mark.parametrize("agrees", [True, False])
def test_a_statement_about_a_whole_table_is_not_refuted_by_a_part_of_it(agrees: bool) -> None:
    """What is largest of half a table, or missing in it, is no news of all of it."""
    rows = [{"family": "gaussian", "loss": 1.0}, {"family": "haar", "loss": 2.0}]
    needs = (at_least("Losses", 2),)
    whole = said(lambda _: says(agrees), measured(tables={"Losses": rows}), needs=needs, as_a_whole=("Losses",))
    assert whole == says(agrees)
    part = said(lambda _: says(agrees), measured(tables={"Losses": rows[:1]}), needs=needs, as_a_whole=("Losses",))
    assert part.verdict is Verdict.UNDECIDED
    assert part.evidence == "undecided, because this was not measured: Losses: 1 of 2 rows (the rest)"


def test_a_table_that_is_not_judged_as_a_whole_excuses_no_bad_news() -> None:
    needs = (at_least("Losses", 1), at_least("Others", 1))
    assert said(lambda _: says(False), measured(), needs=needs, as_a_whole=("Losses",)) == says(False)
    assert said(lambda _: says(False), measured(), needs=needs, as_a_whole=("Others",)).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("whole", [True, "Losses", ("Gains",), ["Losses"]])
def test_what_is_judged_as_a_whole_says_what_the_whole_is(whole: Any) -> None:
    with pytest.raises(InvalidInput, match=r"as_a_whole of claim x must be a tuple of tables of which .* \(Losses\)"):
        said(lambda _: says(True), measured(), needs=(at_least("Losses", 2),), as_a_whole=whole)


FULL = [{"family": family, "scale": scale} for family in ("gaussian", "haar") for scale in (0.1, 0.5, 1.0)]


@pytest.mark.parametrize(
    ("needed", "left", "told"),
    [
        (spans("t", "scale", 0.2, 0.9), FULL[:2], "scale from 0.9"),
        (spans("t", "scale", 0.2, 0.9), FULL[1:3], "scale up to 0.2"),
        (spans("t", "scale", 0.2, 0.9, family="haar"), FULL[:4], "scale from 0.9"),
        (spans("t", "scale", 0, 2), FULL, "scale up to 0; scale from 2"),
        (spans("t", "scale", 0.2, 0.9), [{"scale": True}, {"scale": "1"}, {}], "scale up to 0.2; scale from 0.9"),
        (crossed("t", "family", "scale"), FULL[:5], "family haar, scale 1.0"),
        (crossed("t", ("family", "scale")), [*FULL, FULL[0]], "family gaussian, scale 0.5; family gaussian, scale 1.0; "
         "family haar, scale 0.1; 2 more"),
        (crossed("t", "scale", family="haar"), FULL[:3], "any of t"),
        (at_least("t", 6), FULL[:5], "t: 5 of 6 rows"),
        (at_least("t", 3, "scale", family="haar"), FULL[:5], "t, family haar: 2 of 3 different scale"),
        (groups("t", ("family", "scale"), ("haar", 1.0), ("haar", 0.1)), FULL[:5], "family haar, scale 1.0"),
    ],
)  # fmt: skip
def test_what_a_statement_ranges_over_must_be_there(needed: Any, left: list[Any], told: str) -> None:
    """Half the scales, or the rows that came out small, do not confirm what is said of all."""
    judged = said(lambda _: says(True), measured(tables={"t": left}), needs=(needed,))
    assert judged.evidence == f"undecided, because this was not measured: {told} (the rest)"
    whole = [*FULL, {"family": "haar", "scale": 0}, {"family": "haar", "scale": 2}] if left is FULL else FULL
    assert said(lambda _: says(True), measured(tables={"t": whole}), needs=(needed,)) == says(True)
    assert said(lambda _: says(False), measured(tables={"t": left}), needs=(needed,)) == says(False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: crossed("t"),
        lambda: at_least("t", 0),
        lambda: at_least("t", 2.5),  # type: ignore[arg-type]
        lambda: spans("t", "scale", 0.9, 0.2),
        lambda: spans("t", "scale", math.nan, 0.2),
        lambda: groups("t", ("family", "scale"), "haar"),
        lambda: groups("t", ("family", "scale"), ("haar",)),
    ],
)
def test_what_is_needed_is_well_formed(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput, match=r"crossed needs the names|must run upwards|tuples of 2|must be at least 1"):
        make()


def test_groups_are_looked_for_in_fields_too() -> None:
    class Kept(Summary):
        runs: list[dict[str, str]]

    needs = (groups("runs", "model", "nnRNN"),)
    assert said(lambda _: says(True), Kept(runs=[{"model": "nnRNN"}]), needs=needs).verdict is Verdict.CONFIRMED
    judged = said(lambda _: says(True), Kept(runs=[{"model": "LSTM"}]), needs=needs)
    assert judged.evidence == "undecided, because this was not measured: model nnRNN (the rest)"


@pytest.mark.parametrize(
    "needs",
    [groups("Losses", "family", "haar"), ("haar",), "haar", (groups("Losses", "family", "haar"), None)],
)
def test_needs_are_a_tuple_of_groups(needs: Any) -> None:
    with pytest.raises(InvalidInput, match=r"needs of claim x must be a tuple of groups\(\.\.\.\)"):
        said(lambda _: says(True), measured(), needs=needs)


@pytest.mark.parametrize("columns", ["seed", ["seed"], (0,)])
def test_interchangeable_columns_are_a_tuple_of_names(columns: Any) -> None:
    """A word would be taken for the names of its letters, and excuse nothing."""
    with pytest.raises(InvalidInput, match="interchangeable of claim x must be a tuple of names of columns"):
        said(lambda _: says(True), measured(), interchangeable=columns)


@pytest.mark.parametrize("entries", [(), (["gaussian", "haar"],), (None,)])
def test_groups_name_at_least_one_entry_that_a_table_can_hold(entries: tuple[Any, ...]) -> None:
    """Without any, a statement would seem to name groups and ask for none."""
    with pytest.raises(InvalidInput, match="entries of groups"):
        groups("Losses", "family", *entries)


@pytest.mark.parametrize("runs", [{"haar": {"family": "haar"}}, [["haar"]], [{"family": ["haar"]}], 5])
def test_a_field_without_such_rows_lacks_the_group(runs: Any) -> None:
    judged = said(lambda _: says(True), Loose(kept=runs), needs=(groups("kept", "family", "haar"),))
    assert judged.evidence == "undecided, because this was not measured: family haar (the rest)"
