"""Accuracies over delays with intervals: the tables of copy and denoise, and their rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.lab import Cell, Claim, Experiment, Params, Payload, Summary

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


class Compiled(Settings):
    """The same by compiled loops, several times faster (extra ``fast``); ``"torch"`` for those of torch."""

    backend: str = "numba"


class Measured(Summary):
    """Curves of training by model and delay."""

    curves: list[dict[str, Any]]
    baseline: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per model, delay of training and seed."""
    common = settings.model_dump(exclude={"seeds", "models", "train_delays", "delays", "backend"})
    common |= named_backend(settings)
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


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Accuracies against the delay, and curves of training."""
    from separatrix.report.figures.recurrent.screening import draw_accuracies, draw_learning

    return {
        "accuracy": draw_accuracies(summary.table(ACCURACY)),
        "training": draw_learning(summary.curves, baseline=summary.baseline),
    }


def memory_experiment(
    run: Callable[[Cell], Payload],
    name: str,
    title: str,
    place: str,
    scales: Mapping[str, Settings],
    claims: tuple[Claim, ...],
) -> Experiment:
    """A table of accuracies; ``run`` stands in the file of the experiment, by which cells find it."""
    return Experiment(
        name=name,
        title=title,
        document="kerg2022",
        place=place,
        version=1,
        scales=dict(scales),  # type: ignore[arg-type]
        expand=expand,
        run=run,
        summarise=summarise,
        claims=claims,
        draw=draw,
    )
