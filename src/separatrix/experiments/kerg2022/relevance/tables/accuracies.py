"""Accuracies over delays with intervals: the tables of copy and denoise, and their rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.lab import (
    Cell,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    in_turn,
    interval_row,
    judge,
    with_column,
    with_fields,
)

from ..models import arithmetic, named_backend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACCURACY = "Accuracy on fresh problems, 95 % intervals over problems"
TRAINING = "How the networks were trained, and what their memories kept"
Z = 1.96


class Settings(Params):
    """Networks of one size on one task; lists go model by model."""

    models: tuple[str, ...]
    task: str = "copy"
    table: str = "copy-found"
    train_delays: tuple[int, ...] = (100,)
    delays: tuple[int, ...] = (100, 200, 400, 2000, 5000)  # of evaluation; () for the delay of training alone
    n_items: int = 10
    n_hidden: int = 128
    batch_size: int = 10
    clip: float = 1.0
    n_steps: int = 3200
    tail_steps: int = 800  # at half the rate
    n_test: int = 400
    n_valid: int = 50
    measure_every: int = 100
    backend: str = "torch"  # "numba": compiled loops, an order faster


class Measured(Summary):
    """Curves of training by model and delay."""

    curves: list[dict[str, Any]]
    baseline: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per model, delay of training and seed."""
    common = settings.model_dump(exclude={"seeds", "models", "train_delays", "delays", "backend"})
    common |= named_backend(settings.backend)
    for delay in settings.train_delays:
        for model in settings.models:
            for seed in settings.seeds:
                delays = settings.delays or (delay,)
                yield {**common, "model": model, "delay": delay, "delays": delays, "seed": seed}


def run_memory(cell: Cell) -> Payload:
    """Train one network and let it answer."""
    from ..memory_runs import run_and_evaluate

    with arithmetic(cell):
        return run_and_evaluate(cell)


def wilson(share: float, n: int) -> tuple[float, float]:
    """95 % interval of a share of right answers in n independent problems.

    The symbols of one problem are answered by one network from one memory: problems count, not symbols.
    """
    if not math.isfinite(share):
        return math.nan, math.nan
    centre, scale = share + Z * Z / (2 * n), 1 + Z * Z / n
    half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return (centre - half) / scale, (centre + half) / scale


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Accuracy by model, delay of training and delay of the test; over seeds the problems are taken together."""
    from separatrix.core import plain

    plain_results = [(cell, plain(payload)) for cell, payload in results]
    groups: dict[tuple[str, int], list[tuple[Cell, Payload]]] = {}
    for cell, payload in plain_results:
        groups.setdefault((cell.args["model"], cell.args["delay"]), []).append((cell, payload))
    rows, training, curves = [], [], []
    for (model, trained_at), runs in groups.items():
        payloads = [payload for _, payload in runs]
        for place, delay in enumerate(payloads[0]["delays"]):
            n = sum(payload["n_problems"][place] for payload in payloads)
            mean = sum(payload["accuracy"][place] for payload in payloads) / len(payloads)
            low, high = wilson(mean, n)
            rows.append(
                {
                    "model": model,
                    "trained_at": trained_at,
                    "delay": delay,
                    "mean": mean,
                    "low": low,
                    "high": high,
                    "n": n,
                }
            )
        training.append({"model": model, "trained_at": trained_at, **_training_row(payloads)})
        curves += [{"model": model, "delay": trained_at, **payload["curve"]} for payload in payloads]
    baseline = plain_results[0][1]["baseline"]
    return Measured(curves=curves, baseline=baseline, tables={ACCURACY: rows, TRAINING: training})


def _training_row(payloads: Sequence[Payload]) -> dict[str, Any]:
    from ..memory_runs import updates_until

    first = payloads[0]
    row = {
        "lr": first["lr"],
        "optimiser": first["optimiser"],
        "n_parameters": first["n_parameters"],
        "updates": first["n_done"],
        "until_90": _median([updates_until(payload["curve"], 0.9) for payload in payloads]),
        "diverged": sum(payload["ending"] == "diverged" for payload in payloads),
    }
    for name in ("retention", "right_if_kept", "right_if_lost"):
        values = [payload[name] for payload in payloads if payload.get(name) is not None]
        row[name] = sum(values) / len(values) if values else None
    return row


def _median(values: Sequence[float]) -> float:
    import statistics

    return statistics.median(values)


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
    """``RelRNN .99 at 100, .99 at 200``."""
    return ", ".join(f"{row['model']} {row['mean']:.3f} at {row['delay']}" for row in rows)


def keeps(models: Sequence[str], above: float, *, trained_only: bool = False) -> Callable[[Measured], Judgement]:
    """A rule: the accuracy at every delay of the test, or at those of training alone, lies above a bound."""

    def judge_kept(summary: Measured) -> Judgement:
        found = [row for model in models for row in _own(summary, model)]
        found = [row for row in found if not trained_only or row["delay"] == row["trained_at"]]
        return judge(in_words(found), [_as_row(row, above=above) for row in found])

    return judge_kept


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
        return judge(in_words(words), rows)

    return judge_lost


def ahead(first: str, others: Sequence[str]) -> Callable[[Measured], Judgement]:
    """A rule: at the delays of training one model is above each of the others."""

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
        return judge(in_words(words), rows)

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


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Accuracies against the delay, and curves of training."""
    from separatrix.report.figures.screening import draw_accuracies, draw_learning

    return {
        "accuracy": draw_accuracies(summary.table(ACCURACY)),
        "training": draw_learning(summary.curves, baseline=summary.baseline),
    }
