"""Rules of the suite: levels, gaps seed by seed, falls with held-out shapes; each with its counterfeit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from separatrix.core.wording import number, within_interval
from separatrix.lab import (
    Claim,
    Judgement,
    Row,
    at_least,
    condition,
    crossed,
    in_turn,
    interval_row,
    judge,
    with_column,
    with_fields,
)
from separatrix.tasks.relational.titles import task_title

from .suite import UNSEEN_SHAPES, Measured

Where = Callable[[Mapping[str, Any]], bool]
Keyed = dict[int, float]
ALL_RUNS = (
    crossed("runs", ("task", "asked", "holdout"), "model", "seed"),
    at_least("runs", 3, "seed"),
)
"""Every network with every question and seed, whatever it came out as: an interval over some of the seeds, or over
those with good results, tells nothing of all. An interval over two is none."""
LEARNED = 0.6
"""Mean accuracy that the best network must reach on a task: where nobody learned it, networks are alike and all are bad
for no reason of theirs."""
Asked = tuple[str, str, int]
"""A task, the pictures it was asked on, and the number of held-out shapes."""


def _of(summary: Measured, asked: Asked, model: str) -> Keyed:
    """Accuracies by seed."""
    return {
        row["seed"]: row["accuracy"]
        for row in summary.runs
        if (row["task"], row["asked"], row["holdout"]) == asked and row["model"] == model
    }


def _questions(summary: Measured, tasks: Sequence[str], every: bool) -> list[Asked]:
    """What the networks of a run were asked: every task with every family of pictures and number of held-out shapes.

    A game is asked on several families, and a statement about it must hold on each. Of held-out shapes the greatest
    number alone is meant, unless every one is.
    """
    found = []
    for task in _present(summary, tasks, "task"):
        own = dict.fromkeys((row["asked"], row["holdout"]) for row in summary.runs if row["task"] == task)
        held = sorted({holdout for _, holdout in own}, key=lambda m: (m < 0, m))
        chosen = held if every else held[-1:]
        found += [(task, pictures, holdout) for pictures, holdout in own if holdout in chosen] or [(task, "", 0)]
    return found


def _named(asked: Asked, summary: Measured) -> str:
    """A question in words: the pictures where a task has several kinds, held-out shapes where there are several."""
    task, pictures, holdout = asked
    own = [row for row in summary.runs if row["task"] == task]
    words = task_title(task)
    if len({row["asked"] for row in own}) > 1:
        words += f" ({pictures})"
    if len({row["holdout"] for row in own}) > 1:
        words += f" without {'as many shapes as possible' if holdout < 0 else f'{holdout} shapes'}"
    return words


def _not_learned(summary: Measured, tasks: Sequence[str]) -> dict[str, Row]:
    """By task that no network of the run learned, on whatever pictures: the row that cannot tell."""
    found = {}
    for task in tasks:
        groups: dict[tuple[Any, ...], list[float]] = {}
        for row in summary.runs:
            if row["task"] == task:
                groups.setdefault((row["asked"], row["holdout"], row["model"]), []).append(row["accuracy"])
        best = max((sum(values) / len(values) for values in groups.values()), default=0.0)
        if best < LEARNED:
            found[task] = Row(f"somebody learned {task_title(task)}", best, f"at least {LEARNED:g}", agrees=None)
    return found


def _present(summary: Measured, names: Sequence[str], column: str) -> list[str]:
    """All names; in a partial run those that were run."""
    run = {row[column] for row in summary.runs}
    return [name for name in names if name in run] if summary.partial else list(names)


def _interval(values: Sequence[float]) -> tuple[float, tuple[float, float]]:
    from separatrix.training import spread

    found = spread(values)
    return found.mean, (found.low, found.high)


def level_claim(
    *,
    id: str,
    statement: str,
    models: Sequence[str],
    tasks: Sequence[str],
    above: float | None = None,
    below: float | None = None,
    every: bool = False,
    holds_for: Sequence[str] = (),
    where_it_holds: str = "",
    control: tuple[str, float] | None = None,
    **more: Any,
) -> Claim:
    """The interval of the mean accuracy of every model on every task lies on one side of a bound.

    Where that is false, but true of the models ``holds_for``, it holds under a condition: ``where_it_holds``. A
    ``control`` is a network and the mean accuracy it must reach on every task; below that training was too short for
    anybody, and nothing is told. That networks are bad is told without a control, too, of tasks alone that some network
    of the run learned.
    """
    bound = above if above is not None else below
    assert bound is not None

    def judge_levels(summary: Measured) -> Judgement:
        rows: list[Row] = []
        kept: list[Row] = []
        short: list[Row] = []
        words = []
        unlearned = _not_learned(summary, _present(summary, tasks, "task")) if below is not None else {}
        for asked in _questions(summary, tasks, every):
            for model in _present(summary, models, "model"):
                values = list(_of(summary, asked, model).values())
                if not values:
                    return judge("", [])
                mean, interval = _interval(values)
                named = f"{model} on {_named(asked, summary)}"
                row = unlearned.get(asked[0]) or interval_row(named, mean, interval, above=above, below=below)
                rows.append(row)
                kept += [row] if model in holds_for else []
                words.append(f"{named} {within_interval(mean, *interval, bounds=(0.0, 1.0))}")
            if control is not None:
                reached, _ = _interval(list(_of(summary, asked, control[0]).values()) or [0.0])
                words.append(f"{control[0]} on {_named(asked, summary)} {number(reached)}")
                if reached < control[1]:
                    short.append(Row(f"{control[0]} learned", reached, f"at least {control[1]:g}", agrees=None))
        return judge(", ".join(words), short or rows, condition(where_it_holds, kept) if kept else None)

    good, bad = (bound + (1 - bound) / 2, bound / 2) if above is not None else (bound / 2, bound + (1 - bound) / 2)
    where = _rows(models, tasks)
    others = [] if above is not None else [_others_learned(models, tasks)]
    learned = [with_column("runs", "accuracy", 0.99, _rows(control[:1], tasks))] if control is not None else []
    side = f"above {above:g}" if above is not None else f"below {below:g}"
    told = f"; below {control[1]:g} of {control[0]} nothing is told" if control is not None else ""
    if below is not None:
        told += f"; of a task that no network answers to {LEARNED:g} nothing is told"
    return Claim(
        id=id,
        statement=statement,
        measures="share of right answers about unseen pictures after the last step, mean over seeds",
        test=f"95 % interval over seeds {side}, each model and task{told}",
        judge=judge_levels,
        counterfeit=in_turn(*learned, with_column("runs", "accuracy", bad, where)),
        genuine=in_turn(*others, *learned, with_column("runs", "accuracy", good, where)),
        **{"scale": "laptop", "needs": ALL_RUNS, "as_a_whole": ("runs",), **more},
    )


def _others_learned(models: Sequence[str], tasks: Sequence[str]) -> Callable[[Measured], Measured]:
    """Part of a genuine summary: some network that the claim is not about answers every problem, run or not."""

    def counterfeit(summary: Measured) -> Measured:
        rows = [{**row, "accuracy": 0.99, "model": "another"} for row in summary.runs if _rows(models, tasks)(row)]
        return with_fields(runs=[*summary.runs, *rows])(summary)

    return counterfeit


def gap_claim(
    *,
    id: str,
    statement: str,
    first: Sequence[str],
    second: Sequence[str],
    tasks: Sequence[str],
    above: float | None = None,
    within: float | None = None,
    together: bool = False,
    every: bool = False,
    **more: Any,
) -> Claim:
    """Seed by seed, the mean of the first models minus that of the second lies above a bound, or near 0.

    With ``together`` the mean over tasks is judged, otherwise each task. Nothing is told, good or bad, of a task that
    no network of the run learned.
    """

    def judge_gaps(summary: Measured) -> Judgement:
        rows: list[Row] = []
        words = []
        per_task = []
        unlearned = _not_learned(summary, _present(summary, tasks, "task"))
        for asked in _questions(summary, tasks, every):
            gaps = _gaps(summary, asked, first, second)
            if not gaps:
                return judge("", [])
            per_task.append((_named(asked, summary), gaps, unlearned.get(asked[0])))
        if together and per_task:
            shared = set.intersection(*(set(gaps) for _, gaps, _ in per_task))
            mean = {seed: sum(gaps[seed] for _, gaps, _ in per_task) / len(per_task) for seed in shared}
            per_task = [("all tasks", mean, next(iter(unlearned.values()), None))]
        for task, gaps, nobody in per_task:
            mean_gap, interval = _interval(list(gaps.values()))
            rows += [nobody] if nobody is not None else _sided(task, mean_gap, interval, above, within)
            words.append(f"{task} {within_interval(mean_gap, *interval, signed=True)}")
        return judge(f"{' and '.join(first)} minus {' and '.join(second)}: {', '.join(words)}", rows)

    high, low = (
        with_column("runs", "accuracy", 0.93, _rows(first, tasks)),
        with_column("runs", "accuracy", 0.31, _rows(second, tasks)),
    )
    swapped = in_turn(
        with_column("runs", "accuracy", 0.31, _rows(first, tasks)),
        with_column("runs", "accuracy", 0.93, _rows(second, tasks)),
    )
    level = with_column("runs", "accuracy", 0.97, _rows([*first, *second], tasks))
    test = f"95 % interval above {above:g}" if above is not None else f"95 % interval within {within:g} of 0"
    return Claim(
        id=id,
        statement=statement,
        measures="difference of mean accuracies about unseen pictures, seed by seed",
        test=test
        + (", mean over tasks" if together else ", each task")
        + f"; of a task that no network answers to {LEARNED:g} nothing is told",
        judge=judge_gaps,
        counterfeit=swapped,
        genuine=in_turn(high, low) if above is not None else level,
        **{"scale": "laptop", "needs": ALL_RUNS, "as_a_whole": ("runs",), **more},
    )


def _sided(
    task: str, mean: float, interval: tuple[float, float], above: float | None, within: float | None
) -> Iterable[Row]:
    if above is not None:
        yield interval_row(f"difference on {task}", mean, interval, above=above)
    if within is not None:
        yield interval_row(f"difference on {task}", mean, interval, above=-within)
        yield interval_row(f"difference on {task}", mean, interval, below=within)


def _gaps(summary: Measured, asked: Asked, first: Sequence[str], second: Sequence[str]) -> Keyed:
    sides = []
    for models in (first, second):
        columns = [_of(summary, asked, model) for model in _present(summary, models, "model")]
        if not columns or not all(columns):
            return {}
        shared = set.intersection(*(set(column) for column in columns))
        sides.append({seed: sum(column[seed] for column in columns) / len(columns) for seed in shared})
    return {seed: sides[0][seed] - sides[1][seed] for seed in sides[0] if seed in sides[1]}


def fall_claim(
    *,
    id: str,
    statement: str,
    models: Sequence[str],
    tasks: Sequence[str],
    least: float = 0.05,
    learned: float | None = None,
    **more: Any,
) -> Claim:
    """Accuracy without held-out shapes minus that of the extreme case is above a bound, each model and task.

    With ``learned``, networks whose mean without held-out shapes is lower have nothing to lose and tell nothing.
    """

    def judge_falls(summary: Measured) -> Judgement:
        rows: list[Row] = []
        short: list[Row] = []
        words = []
        for task in _present(summary, tasks, "task"):
            for model in _present(summary, models, "model"):
                inside, outside = (_of(summary, (task, UNSEEN_SHAPES, m), model) for m in (0, -1))
                shared = [seed for seed in inside if seed in outside]
                if not shared:
                    return judge("", [])
                mean, interval = _interval([inside[seed] - outside[seed] for seed in shared])
                rows.append(interval_row(f"fall of {model} on {task_title(task)}", mean, interval, above=least))
                before = sum(inside[seed] for seed in shared) / len(shared)
                words.append(f"{model} on {task_title(task)} {within_interval(mean, *interval)} from {number(before)}")
                if learned is not None and before < learned:
                    short.append(
                        Row(f"{model} learned {task_title(task)}", before, f"at least {learned:g}", agrees=None)
                    )
        return judge(", ".join(words), short or rows)

    def at(extreme: bool) -> Where:
        inner = _rows(models, tasks)
        return lambda row: inner(row) and row["extreme"] is extreme

    up, down = 0.97, 0.55
    return Claim(
        id=id,
        statement=statement,
        measures="accuracy with all shapes in training minus that with the fewest, seed by seed",
        test=f"95 % interval above {least:g}, each model and task"
        + (f"; a network below {learned:g} with all shapes tells nothing" if learned is not None else ""),
        judge=judge_falls,
        counterfeit=in_turn(
            with_column("runs", "accuracy", down if learned is None else learned, at(False)),
            with_column("runs", "accuracy", up, at(True)),
        ),
        genuine=in_turn(
            with_column("runs", "accuracy", up, at(False)), with_column("runs", "accuracy", down, at(True))
        ),
        **{"scale": "laptop", "needs": ALL_RUNS, "as_a_whole": ("runs",), **more},
    )


def _rows(models: Sequence[str], tasks: Sequence[str]) -> Where:
    return lambda row: row["model"] in models and row["task"] in tasks
