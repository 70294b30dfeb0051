"""Networks trained on relational tasks and asked about pictures they never saw: cells, rows, a table, a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import Cell, Claim, Experiment, Params, Payload, Summary, scratch_folder
from separatrix.lab.experiment.scales import Scale

from .arms import build

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from separatrix.tasks import RelationalTask

ACCURACIES = "Accuracy on unseen pictures, 95 % intervals over seeds"
UNSEEN_SHAPES = "unseen shapes"
EXTREME = -1
"""Stands for the largest number of held-out shapes that the source uses."""

PUBLIC_BOARDS = {
    "between": ("between", None),
    **{f"column_{word}": ("3task_col_patts", place) for place, word in enumerate(("aba", "aab", "abb"))},
}
"""By rule, the public files of held-out boards, and the number of the task in them where they hold several."""


class Settings(Params):
    """Tasks, networks and lengths of training; a batch size of 0 is that of the source."""

    seeds: tuple[int, ...] = tuple(range(10))
    tasks: tuple[str, ...] = ()
    holdouts: tuple[int, ...] = (EXTREME,)
    models: tuple[str, ...] = ()
    n_steps: int = 5000
    game_steps: int = 2500
    batch_size: int = 0
    n_test: int = 10_000
    n_curve: int = 1000
    n_measured: int = 20
    n_shapes: int = 100
    protocol: str = "stream"
    partial: bool = False  # whether tasks and models are a part of what the claims name
    public: bool = False  # whether games are asked on the public files too


class Measured(Summary):
    """A row per run, and its curve."""

    partial: bool
    """Whether only a part of the tasks and networks was run, as announced: rules then look at what is there."""
    runs: list[dict[str, Any]]
    curves: list[dict[str, Any]]


def training_of(settings: Settings) -> dict[str, Any]:
    """What every cell of a run is told about its training."""
    return settings.model_dump(
        include={"n_steps", "batch_size", "n_test", "n_curve", "n_measured", "n_shapes", "protocol", "partial"}
    )


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per task, number of held-out shapes, model and seed."""
    kept = training_of(settings)
    for task in settings.tasks:
        is_game = task.startswith("game_")
        for holdout in (EXTREME,) if is_game else settings.holdouts:
            for model in settings.models:
                for seed in settings.seeds:
                    own = {"n_steps": settings.game_steps, "public": settings.public} if is_game else {}
                    yield {"task": task, "holdout": holdout, "model": model, "seed": seed, **kept, **own}


def make(cell: Cell) -> RelationalTask:
    """The task of a cell; the seed chooses the held-out shapes."""
    from separatrix import tasks

    args = cell.args
    if args["task"].startswith("game_"):
        return tasks.make_task(args["task"])
    name, _, direction = args["task"].partition(":")
    options = {"train": direction} if direction else {}
    held = None if args["holdout"] == EXTREME else args["holdout"]
    return tasks.make_task(name, holdout=held, seed=cell.seed, n_shapes=args["n_shapes"], **options)


def run_suite(cell: Cell) -> Payload:
    """Train one network on one task; accuracies by what they were asked on."""
    from separatrix import training

    args, task = cell.args, make(cell)
    settings = training.RelationalSettings(
        n_steps=args["n_steps"],
        batch_size=args["batch_size"] or None,
        n_test=args["n_test"],
        n_curve=args["n_curve"],
        protocol=args["protocol"],
        measure_every=max(1, args["n_steps"] // args["n_measured"]),
    )
    network = build(args["model"], task, spawn(cell.seed, "kerg5", "weights", args["model"]))
    folder = scratch_folder(cell)
    path = None if folder is None else folder / "checkpoint.pt"
    run = training.train_relational(network, task, settings, seed=cell.seed, checkpoint=path)
    told = {key: value for key, value in run.to_dict().items() if key not in ("seconds", "last")}
    return {**told, "accuracy": run.last.accuracy, "by_pattern": run.last.by_pattern, "others": _others(cell, network)}


def _others(cell: Cell, network: Any) -> dict[str, float]:
    """Accuracies of a game on other families than hexominoes."""
    from separatrix import tasks, training

    rule = cell.args["task"].removeprefix("game_")
    if rule == cell.args["task"]:
        return {}
    found: dict[str, float] = {}
    n = cell.args["n_test"]
    for family in tasks.GAME_TESTS[rule]:
        if family != "hexominoes":
            found[family] = training.evaluate_relational(network, tasks.GameTask(rule, family), n).accuracy
    if rule in PUBLIC_BOARDS and cell.args.get("public"):
        name, number = PUBLIC_BOARDS[rule]
        for part in ("hexos", "stripes"):
            problems = tasks.public_game(f"{name}_{part}").problems(number)
            found[f"public {part}"] = training.evaluate_relational(network, problems).accuracy
    return found


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """A row per run and per family it was asked on; the table has a row per network."""
    from separatrix.core import plain

    runs: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    for cell, given in results:
        payload = plain(given)
        row = {
            "task": cell.args["task"],
            "asked": "hexominoes" if cell.args["task"].startswith("game_") else UNSEEN_SHAPES,
            "holdout": cell.args["holdout"],
            "extreme": cell.args["holdout"] == EXTREME,
            "model": cell.args["model"],
            "seed": cell.seed,
            "accuracy": payload["accuracy"],
            "chosen": payload["chosen"],
            "greatest": payload["greatest"],
            "train": payload["train_accuracy"],
            "gradient_ratio": payload["gradient_ratio"],
            "encoder_movement": payload["encoder_movement"],
            "n_parameters": payload["n_parameters"],
            "ending": payload["ending"],
        }
        runs.append(row)
        runs += [{**row, "asked": asked, "accuracy": value} for asked, value in payload["others"].items()]
        kept = {key: row[key] for key in ("task", "holdout", "model", "seed")}
        curves.append(
            {**kept, "steps": payload["steps"], "values": payload["curve"], "patterns": payload["by_pattern"]}
        )
    partial = all(cell.args["partial"] for cell, _ in results)
    return Measured(partial=partial, runs=runs, curves=curves, tables={ACCURACIES: _table(runs)})


def _table(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from separatrix.training import spread

    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in runs:
        groups.setdefault((row["task"], row["asked"], row["holdout"], row["model"]), []).append(row)
    rows = []
    for (task, asked, holdout, model), group in groups.items():
        found = spread([row["accuracy"] for row in group])
        many = found.n > 1
        ratios = [row["gradient_ratio"] for row in group if row["gradient_ratio"] is not None]
        rows.append(
            {
                "task": task,
                "asked on": asked,
                "held out": "extreme" if holdout == EXTREME else holdout,
                "model": model,
                "n": found.n,
                "mean": found.mean,
                "low": found.low if many else -math.inf,
                "high": found.high if many else math.inf,
                "std": found.std if many else None,
                "least": found.least,
                "greatest": found.greatest,
                "at chosen step": sum(row["chosen"] for row in group) / found.n,
                "best on curve": sum(row["greatest"] for row in group) / found.n,
                "training": sum(row["train"] for row in group) / found.n,
                "gradient ratio": sum(ratios) / len(ratios) if ratios else None,
                "parameters": group[0]["n_parameters"],
                "diverged": sum(row["ending"] == "diverged" for row in group),
            }
        )
    return rows


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Bars with intervals, and accuracy against held-out shapes where a task was run with several numbers of them."""
    from separatrix.report.figures.relational.accuracies import draw_accuracies, draw_holdouts, draw_unseen_curves

    figures = {"accuracies": draw_accuracies(summary.table(ACCURACIES))}
    asked = {(row["task"], row["holdout"]) for row in summary.runs}
    if len(asked) > len({task for task, _ in asked}):
        figures["held-out shapes"] = draw_holdouts(summary.table(ACCURACIES))
    figures["during training"] = draw_unseen_curves(summary.curves)
    return figures


def suite_experiment(
    home: str,
    *,
    name: str,
    title: str,
    place: str,
    scales: Mapping[Scale, Params],
    claims: tuple[Claim, ...],
    expand: Callable[[Any], Iterable[Mapping[str, Any]]] = expand,
    data: tuple[str, ...] = (),
) -> Experiment:
    """An experiment of the thesis that trains networks of the suite; ``home`` is the module that binds it."""
    return Experiment(
        name=name,
        title=title,
        document="kerg2022",
        place=place,
        version=1,
        home=home,
        scales=scales,
        expand=expand,
        run=run_suite,
        summarise=summarise,
        claims=claims,
        draw=draw,
        data=data,
    )
