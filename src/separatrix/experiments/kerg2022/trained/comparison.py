"""Comparisons of models on tasks: a rate is chosen on validation data, scores are told on test data, with intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pydantic

from separatrix.core.errors import InvalidInput
from separatrix.core.wording import interval_of, within_interval
from separatrix.core.wording.names import model_name
from separatrix.lab import Cell, Judgement, Params, Payload, Row, Summary, interval_row, judge, with_interval

from .models import MODELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCORES = "Scores on test data at the rate chosen on validation data, 95 % intervals over seeds"
GAPS = "nnRNN minus another model, seed by seed, 95 % interval"
NO_SCORE = 0.0
"""What a run counts as that gave no share of right answers."""


class Settings(Params):
    """Copy and permuted pixels; a size or number of steps of 0 is that of the document."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    tasks: tuple[Literal["copy", "pixels"], ...] = ("copy", "pixels")
    models: tuple[str, ...] = MODELS
    match: Literal["units", "parameters"] = "units"
    copy_rates: tuple[float, ...] = (1.0,)  # times the printed rates; the best on validation data is taken
    pixels_rates: tuple[float, ...] = (1.0,)
    own_rates: dict[str, dict[str, tuple[float, ...]]] = pydantic.Field(default_factory=dict)  # by task, by model
    copy_orth_start: Literal["henaff", "haar"] = "henaff"  # of RNN-orth; printed: random orth, which did not learn
    table: str = ""  # another table of hyperparameters than the task's own, such as copy-release
    delay: int = 200
    copy_hidden: int = 0
    copy_steps: int = 1500
    copy_batch: int = 10
    pixels_data: Literal["digits", "mnist-pooled", "mnist"] = "mnist"
    pixels_hidden: int = 0
    pixels_batch: int = 100
    n_epochs: int = 70
    n_train: int = 50_000
    clip: float = 10.0
    measure_every: int = 50  # steps of copy


class Measured(Summary):
    """Curves of the chosen runs, and sizes by model."""

    curves: list[dict[str, Any]]
    baseline: float
    pixels: str


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per task, model, rate and seed."""
    for task in settings.tasks:
        for model in settings.models:
            common_rates = settings.copy_rates if task == "copy" else settings.pixels_rates
            for factor in settings.own_rates.get(task, {}).get(model, common_rates):
                for seed in settings.seeds:
                    common = {"task": task, "model": model, "lr_factor": factor, "seed": seed}
                    yield {**common, "match": settings.match, "clip": settings.clip, **_of_task(settings, task)}


def _of_task(settings: Settings, task: str) -> dict[str, Any]:
    if task == "copy":
        return {
            "table": settings.table or "copy",
            "n_hidden": settings.copy_hidden,
            "delay": settings.delay,
            "n_steps": settings.copy_steps,
            "batch_size": settings.copy_batch,
            "measure_every": settings.measure_every,
            "orth_start": settings.copy_orth_start,
        }
    return {
        "table": settings.table or "psmnist",
        "n_hidden": settings.pixels_hidden,
        "data": settings.pixels_data,
        "n_train": settings.n_train,
        "n_epochs": settings.n_epochs,
        "n_steps": 0,
        "batch_size": settings.pixels_batch,
        "measure_every": 0,
    }


def run_comparison(cell: Cell) -> Payload:
    """Train one model; what a comparison needs of it."""
    from .sequence_runs import run_cell

    return run_cell(cell).payload


def chosen_runs(results: Sequence[tuple[Cell, Payload]]) -> dict[tuple[str, str], list[tuple[Cell, Payload]]]:
    """By task and model, the runs at the rate whose median validation value is least."""
    groups: dict[tuple[str, str], dict[float, list[tuple[Cell, Payload]]]] = {}
    for cell, payload in results:
        key = (cell.args["task"], cell.args["model"])
        groups.setdefault(key, {}).setdefault(cell.args["lr_factor"], []).append((cell, payload))
    return {key: min(by_rate.values(), key=_median_valid) for key, by_rate in groups.items()}


def at_edge(results: Sequence[tuple[Cell, Payload]], runs: Sequence[tuple[Cell, Payload]]) -> bool:
    """Whether the rate of the chosen runs is the least or the greatest of those searched for their model and task."""
    args = runs[0][0].args
    tried = {
        cell.args["lr_factor"]
        for cell, _ in results
        if (cell.args["task"], cell.args["model"]) == (args["task"], args["model"])
    }
    return args["lr_factor"] in (min(tried), max(tried))


def _median_valid(runs: Sequence[tuple[Cell, Payload]]) -> float:
    return statistics.median(finite(payload["valid"], math.inf) for _, payload in runs)


def finite(value: Any, otherwise: float) -> float:
    """The number, or what stands for one that is missing or not finite."""
    number = math.nan if value is None else float(value)
    return number if math.isfinite(number) else otherwise


def score_row(
    task: str, model: str, runs: Sequence[tuple[Cell, Payload]], column: str = "score", otherwise: float = NO_SCORE
) -> dict[str, Any]:
    """Statistics of one model over seeds; a run without a number counts as ``otherwise``."""
    from separatrix.training import spread

    found = spread([finite(payload[column], otherwise) for _, payload in runs])
    first = runs[0]
    return {
        "task": task,
        "model": model,
        "lr": first[1]["lr"],
        "lr_factor": first[0].args["lr_factor"],
        "n_hidden": first[1]["n_hidden"],
        "n_parameters": first[1]["n_parameters"],
        "mean": found.mean,
        "low": found.low if found.n > 1 else -math.inf,
        "high": found.high if found.n > 1 else math.inf,
        "median": found.median,
        "diverged": sum(payload["ending"] == "diverged" for _, payload in runs),
        "values": [payload[column] for _, payload in runs],
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Scores, gaps to nnRNN and curves of the chosen runs."""
    from separatrix.core import plain

    results = [(cell, plain(payload)) for cell, payload in results]
    chosen = chosen_runs(results)
    scores, curves, baseline = [], [], math.nan
    for (task, model), runs in chosen.items():
        row = {**score_row(task, model, runs), "rate_at_edge": at_edge(results, runs)}
        if task == "copy":
            row |= _over_baseline(runs)
            baseline = runs[0][1]["baseline"]
        scores.append({key: value for key, value in row.items() if key != "values"})
        curves += [{"task": task, "model": model, **payload["curve"]} for _, payload in runs]
    pixels = [cell.args["data"] for cell, _ in results if cell.args["task"] == "pixels"]
    return Measured(
        curves=curves,
        baseline=baseline,
        pixels=pixels[0] if pixels else "",
        tables={SCORES: scores, GAPS: gaps(chosen)},
    )


def _over_baseline(runs: Sequence[tuple[Cell, Payload]]) -> dict[str, float]:
    """Loss over the loss without memory."""
    from separatrix.training import spread

    found = spread([finite(p["test_loss"], math.inf) / p["baseline"] for _, p in runs])
    infinite = found.n == 1
    low, high = (-math.inf, math.inf) if infinite else (found.low, found.high)
    return {"loss_over_baseline": found.mean, "loss_low": low, "loss_high": high}


def gaps(chosen: Mapping[tuple[str, str], Sequence[tuple[Cell, Payload]]], column: str = "score") -> list[dict]:
    """Paired differences of nnRNN and every other model."""
    from separatrix.training import paired_difference

    rows = []
    for (task, model), runs in chosen.items():
        if model == "nnRNN" or (task, "nnRNN") not in chosen:
            continue
        own = {cell.seed: payload[column] for cell, payload in chosen[task, "nnRNN"]}
        pairs = [(own[c.seed], p[column]) for c, p in runs if c.seed in own]
        found = paired_difference([finite(a, NO_SCORE) for a, _ in pairs], [finite(b, NO_SCORE) for _, b in pairs])
        rows.append({"task": task, "model": model, "gap": found.mean, "low": found.low, "high": found.high})
    return rows


def _row_of(summary: Summary, title: str, task: str, model: str) -> Mapping[str, Any]:
    found = [row for row in summary.table(title) if row["task"] == task and row["model"] == model]
    if not found:
        raise InvalidInput(f"{model} was not run on {task}; the claim needs it.")
    return found[0]


def _have(summary: Summary, task: str, models: Sequence[str]) -> bool:
    return set(models) <= {row["model"] for row in summary.table(SCORES) if row["task"] == task}


def score_above(task: str, models: Sequence[str], bound: float) -> Callable[[Measured], Judgement]:
    """A rule: the interval of each model's score lies above a bound."""

    def judge_scores(summary: Measured) -> Judgement:
        if not _have(summary, task, models):
            return judge("", [])
        found = [_row_of(summary, SCORES, task, model) for model in models]
        rows = [
            interval_row(f"score of {row['model']}", row["mean"], (row["low"], row["high"]), above=bound)
            for row in found
        ]
        return judge(", ".join(f"{model_name(row['model'])} {interval_of(row, share=True)}" for row in found), rows)

    return judge_scores


LEARNED = 0.6
"""Score that the best network must reach: where nobody learned a task, networks are alike for no reason of theirs."""


def _nobody_learned(summary: Measured, task: str) -> list[Row]:
    """The row that cannot tell, where no network learned a task."""
    best = max((row["mean"] for row in summary.table(SCORES) if row["task"] == task), default=0.0)
    if best >= LEARNED:
        return []
    return [Row(f"somebody learned {task}", best, f"a score of at least {LEARNED:g}", agrees=None)]


def loss_near_baseline(models: Sequence[str], bound: float) -> Callable[[Measured], Judgement]:
    """A rule: after training each model's loss on copy is still above a share of the loss without memory."""

    def judge_failures(summary: Measured) -> Judgement:
        if not _have(summary, "copy", models):
            return judge("", [])
        found = [_row_of(summary, SCORES, "copy", model) for model in models]
        rows: list[Row] = [
            interval_row(
                f"loss over baseline, {row['model']}",
                row["loss_over_baseline"],
                (row["loss_low"], row["loss_high"]),
                above=bound,
            )
            for row in found
        ]
        words = ", ".join(
            f"{model_name(row['model'])} "
            f"{within_interval(row['loss_over_baseline'], row['loss_low'], row['loss_high'])} of the baseline"
            for row in found
        )
        return judge(words, _nobody_learned(summary, "copy") or rows)

    return judge_failures


def gap_above(task: str, models: Sequence[str], bound: float) -> Callable[[Measured], Judgement]:
    """A rule: the interval of the difference of nnRNN and each model lies above a bound."""

    def judge_gaps(summary: Measured) -> Judgement:
        if not _have(summary, task, ["nnRNN", *models]):
            return judge("", [])
        found = [_row_of(summary, GAPS, task, model) for model in models]
        rows = [
            interval_row(f"nnRNN minus {row['model']}", row["gap"], (row["low"], row["high"]), above=bound)
            for row in found
        ]
        return judge(
            ", ".join(
                f"nnRNN minus {model_name(row['model'])} {interval_of(row, 'gap', signed=True)}" for row in found
            ),
            _nobody_learned(summary, task) or rows,
        )

    return judge_gaps


def moved(title: str, task: str, models: Sequence[str], low: float, high: float, prefix: str = "") -> Any:
    """A counterfeit or a genuine summary: the intervals of these rows moved elsewhere."""
    return with_interval(title, low, high, {"task": task, "model": tuple(models)}, prefix=prefix)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Curves of both tasks."""
    from separatrix.report.figures.recurrent.training import draw_model_curves

    figures = {}
    copy = [curve for curve in summary.curves if curve["task"] == "copy"]
    if copy:
        figures["copy"] = draw_model_curves(
            copy, label="cross entropy on validation problems", logarithmic=True, baseline=summary.baseline
        )
    pixels = [curve for curve in summary.curves if curve["task"] == "pixels"]
    if pixels:
        figures["pixels"] = draw_model_curves(pixels, label=f"validation accuracy, permuted {summary.pixels}")
    return figures
