"""Rules for tables of accuracies: who is right, who loses it at longer delays, who is ahead, who learns sooner."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from separatrix.core.wording import interval_of
from separatrix.lab import (
    Claim,
    Judgement,
    Row,
    Summary,
    groups,
    in_turn,
    interval_row,
    judge,
    with_column,
    with_fields,
)

from .accuracies import ACCURACY, TRAINING, Measured

LEARNED = 0.6
"""Accuracy that the best network must reach, or nothing is told of who is ahead."""
ALLOWED_UPDATES = 200_000
"""Updates of the code behind the document, at the most; its text does not say how many there were."""
UNLEARNED = "; a network that did not learn its own delay within fewer updates than were allowed there tells nothing"


def accuracy_row(summary: Summary, model: str, delay: int, trained_at: int) -> Mapping[str, Any] | None:
    """Accuracy of one model at one delay; ``None`` if it was not run."""
    found = [
        row
        for row in summary.table(ACCURACY)
        if (row["model"], row["delay"], row["trained_at"]) == (model, delay, trained_at)
    ]
    return found[0] if found else None


def _own(summary: Summary, model: str) -> list[Mapping[str, Any]]:
    return [row for row in summary.table(ACCURACY) if row["model"] == model]


def _as_row(row: Mapping[str, Any], **side: float) -> Row:
    name = f"accuracy of {row['model']} at {row['delay']}"
    return interval_row(name, row["mean"], (row["low"], row["high"]), **side)


def in_words(rows: Iterable[Mapping[str, Any]]) -> str:
    """``RelRNN 0.99 [0.98, 1] at 100, RelRNN 0.97 [0.95, 0.99] at 200``."""
    return ", ".join(f"{row['model']} {interval_of(row, share=True)} at {row['delay']}" for row in rows)


def keeps(models: Sequence[str], above: float, *, trained_only: bool = False) -> Callable[[Measured], Judgement]:
    """A rule: the accuracy at every delay of the test, or at those of training alone, lies above a bound.

    A network that has not learned its own delay, with fewer updates than the code behind the document allows, tells
    nothing.
    """

    def judge_kept(summary: Measured) -> Judgement:
        found = [row for model in models for row in _own(summary, model)]
        found = [row for row in found if not trained_only or row["delay"] == row["trained_at"]]
        short = _cut_short(summary, above)
        rows = [_as_row(row, above=above) for row in found if (row["model"], row["trained_at"]) not in short]
        rows += [
            Row(f"{model} learned its delay of {delay}", f"not within {updates} updates", "learned", agrees=None)
            for (model, delay), updates in short.items()
            if model in models
        ]
        return judge(in_words(found), rows + _not_run(summary, models) if rows else [])

    return judge_kept


def _cut_short(summary: Summary, above: float) -> dict[tuple[str, int], int]:
    """Updates of the networks that had fewer than were allowed there and are not above a bound at their own delay."""
    short = {}
    for row in summary.table(TRAINING):
        own = accuracy_row(summary, row["model"], row["trained_at"], row["trained_at"])
        has_learned = own is not None and own["mean"] >= above  # not if nobody asked
        if not has_learned and row["updates"] < ALLOWED_UPDATES:
            short[row["model"], row["trained_at"]] = int(row["updates"])
    return short


def fully_trained(models: Sequence[str]) -> Callable[[Measured], Measured]:
    """Part of a counterfeit: these networks had all the updates that were allowed there."""

    def counterfeit(summary: Measured) -> Measured:
        rows = [
            {**row, "updates": ALLOWED_UPDATES} if row["model"] in models else row for row in summary.table(TRAINING)
        ]
        return with_fields(tables={**summary.tables, TRAINING: rows})(summary)

    return counterfeit


def _not_run(summary: Summary, models: Sequence[str]) -> list[Row]:
    """A statement about several networks is not confirmed by some of them."""
    return [Row(f"{model} was run", "no", "yes", agrees=None) for model in models if not _own(summary, model)]


def loses(models: Sequence[str], learned: float, below: float) -> Callable[[Measured], Judgement]:
    """A rule: what learned its own delay (above ``learned``) is below a bound at the longest; else nothing is told."""

    def judge_lost(summary: Measured) -> Judgement:
        rows, words = [], []
        for model in models:
            own = _own(summary, model)
            if not own:
                continue
            first, last = min(own, key=_delay), max(own, key=_delay)
            has_learned = first["mean"] >= learned
            words += [first, last]
            rows.append(
                _as_row(last, below=below)
                if has_learned
                else Row(f"{model} learned its own delay", first["mean"], f"at least {learned}", agrees=None)
            )
        return judge(in_words(words), rows + _not_run(summary, models) if rows else [])

    return judge_lost


def ahead(first: str, others: Sequence[str]) -> Callable[[Measured], Judgement]:
    """A rule: at the delays of training one model is above each of the others, if one of all learned."""

    def judge_ahead(summary: Measured) -> Judgement:
        rows, words = [], []
        for own in _own(summary, first):
            if own["delay"] != own["trained_at"]:
                continue
            words.append(own)
            for model in others:
                other = accuracy_row(summary, model, own["delay"], own["trained_at"])
                if other is not None:
                    words.append(other)
                    rows.append(_gap_row(own, other))
        best = max((row["mean"] for row in words), default=0.0)
        nobody = Row("somebody learned the delay of training", best, f"at least {LEARNED:g}", agrees=None)
        return judge(in_words(words), [nobody] if rows and best < LEARNED else rows)

    return judge_ahead


def _gap_row(own: Mapping[str, Any], other: Mapping[str, Any]) -> Row:
    """Difference of two accuracies with its interval (Newcombe's, from the two intervals)."""
    gap = own["mean"] - other["mean"]
    low = gap - math.hypot(own["mean"] - own["low"], other["high"] - other["mean"])
    high = gap + math.hypot(own["high"] - own["mean"], other["mean"] - other["low"])
    return interval_row(f"{own['model']} minus {other['model']} at {own['delay']}", gap, (low, high), above=0.0)


def sooner(first: str, others: Sequence[str], share: float = 0.5) -> Callable[[Measured], Judgement]:
    """A rule: one model reaches .9 within a share of the updates of each of the others, of which some learned."""

    def judge_sooner(summary: Measured) -> Judgement:
        until = {row["model"]: row["until_90"] for row in summary.table(TRAINING)}
        limit = {row["model"]: row["updates"] for row in summary.table(TRAINING)}
        if first not in until or not set(others) & set(until):
            return judge("", [])
        own, rows = float(until[first]), []
        for model in others:
            if model not in until:
                continue
            other = float(until[model])
            name = f"updates until .9, {first} over {model}"
            ratio = own / (float(limit[model]) if math.isinf(other) else other)
            agrees: bool | None = ratio < share
            if math.isinf(other) and not agrees:  # it might have taken any number of further updates
                agrees = None
            rows.append(Row(name, ratio if math.isfinite(ratio) else "never", f"below {share:g}", agrees=agrees))
        words = ", ".join(
            f"{model} {_count(until[model], limit[model])}" for model in (first, *others) if model in until
        )
        return judge(f"updates until .9: {words}", rows)

    return judge_sooner


def _count(until: Any, limit: int) -> str:
    return f"not within {limit}" if math.isinf(float(until)) else f"{float(until):.0f}"


def with_updates(first: str, own: float, others: float) -> Any:
    """A counterfeit or a genuine summary: other numbers of updates."""
    return in_turn(
        with_column(TRAINING, "until_90", own, lambda row: row["model"] == first),
        with_column(TRAINING, "until_90", others, lambda row: row["model"] != first),
    )


def _delay(row: Mapping[str, Any]) -> int:
    return int(row["delay"])


def shifted(models: Sequence[str], mean: float, *, longest_only: bool = False) -> Callable[[Measured], Measured]:
    """A counterfeit or a genuine summary: accuracies of these models elsewhere, also of those that were not run."""

    def counterfeit(summary: Measured) -> Measured:
        table = summary.table(ACCURACY)
        places = dict.fromkeys((row["trained_at"], row["delay"]) for row in table)
        rows = [dict(row) for row in table if row["model"] not in models]
        for model in models:
            for trained_at, delay in places:
                found = accuracy_row(summary, model, delay, trained_at)
                if found is not None and longest_only and delay == trained_at:
                    rows.append(dict(found))
                    continue
                ends = {"mean": mean, "low": mean - 0.002, "high": min(1.0, mean + 0.002), "n": 1000}
                rows.append({"model": model, "trained_at": trained_at, "delay": delay, **ends})
        return with_fields(tables={**summary.tables, ACCURACY: rows})(summary)

    return counterfeit


DELAYS = (100, 200, 400, 2000, 5000)
ALL_DELAYS = (groups(ACCURACY, "delay", *DELAYS),)
"""What statements about all delays need: to be right at short ones says nothing of long ones."""


def solved(
    claim: str, statement: str, models: tuple[str, ...], above: float, *, trained_only: bool = True, real: float = 0.995
) -> Claim:
    """These models are right at the delay of training, or at all delays."""
    where = "the delay of training" if trained_only else f"delays {', '.join(map(str, DELAYS))}"
    interval = "95 % interval over problems" if trained_only else "95 % interval"
    return Claim(
        id=claim,
        statement=statement,
        measures=f"share of right symbols at {where}",
        test=f"{interval} above {f'{above:g}'.lstrip('0')}{'' if trained_only else ' at every delay'}{UNLEARNED}",
        judge=keeps(models, above, trained_only=trained_only),
        counterfeit=in_turn(shifted(models, 0.5), fully_trained(models)),
        genuine=shifted(models, real),
        needs=(
            groups(ACCURACY, "model", *models),
            groups(TRAINING, "model", *models),
            *(() if trained_only else ALL_DELAYS),
        ),
        as_a_whole=(TRAINING,),  # without how a network was trained nothing is known of whether it learned
        scale="laptop",
    )


def learned_sooner(
    claim: str, statement: str, model: str, others: Sequence[str], place: str, updates: tuple[float, float]
) -> Claim:
    """A model needs fewer updates than half those of each of the others; ``updates`` of the model that would not."""
    few, many = min(updates), max(updates)
    return Claim(
        id=claim,
        statement=statement,
        measures=f"updates until .9 on problems kept aside, {model} over each of {_listed(others)}",
        test="below one half; a model that never got there counts with all its updates, and tells nothing beyond",
        judge=sooner(model, others),
        counterfeit=with_updates(model, many, 1000.0),
        genuine=with_updates(model, few, many),
        place=place,
        scale="laptop",
    )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
