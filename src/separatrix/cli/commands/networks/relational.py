"""``separatrix relational``: problems as pictures, and what the accuracies of a stored run are owed to."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.core.errors import InvalidInput

from ...lookup import find_experiment, reading
from ...options import AnyScale, AsJson, Name, StoreFolder
from ...printing import print_json, print_records, print_table, tell

if TYPE_CHECKING:
    from separatrix.tasks import RelationalTask
    from separatrix.tasks.relational.task import Part

app = typer.Typer(help="Relational tasks: see their problems, and explain the accuracies of a run.")

COLLAPSE = 0.05
"""How far accuracy must fall below its greatest value to be called a collapse; as ``examine_relational`` has it."""


@app.command()
def sample(
    name: Annotated[str, typer.Argument(metavar="TASK", help="A relational task, identity_rules for instance.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Draw to this PDF, SVG or PNG.")],
    n: Annotated[int, typer.Option("--rows", help="Problems of each part.")] = 6,
    holdout: Annotated[
        int | None, typer.Option(help="Shapes held out; default: the extreme.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of held-out shapes and problems.")] = 0,
    test: Annotated[str | None, typer.Option(help="Family of the test of a game.", show_default=False)] = None,
    train: Annotated[str | None, typer.Option(help="Direction of restricted permutations.", show_default=False)] = None,
) -> None:
    """Draw problems of a task, of training and of the test, as pictures."""
    from separatrix import report, tasks

    if n < 1:
        raise InvalidInput(f"--rows must be at least 1; got {n}.")
    options: dict[str, Any] = {key: value for key, value in (("test", test), ("train", train)) if value is not None}
    task = tasks.make_task(name, holdout=holdout, seed=seed, **options)
    path = report.save(_sheet(task, n, seed), output)
    tell(f"{task.name}: {n} problems of each part, {path}")


def _sheet(task: RelationalTask, n: int, seed: int) -> Any:
    from separatrix.core.random import spawn
    from separatrix.report.figures.relational.problem_sheet import draw_problem_sheet
    from separatrix.tasks import GameTask

    parts = {}
    both: tuple[tuple[Part, str], ...] = (("train", "training"), ("test", "test"))
    for part, title in both:
        drawn = task.problems(part, n, generator=spawn(seed, "sample sheet", part))
        if isinstance(task, GameTask):  # as boards, not as rows of cells
            images = (task.canvas(drawn.index).float() / 255).movedim(-1, 1).unsqueeze(1)
            title = f"{title}: {task.family(part)}"
        else:
            images = task.pictures(drawn.index.flatten()).unflatten(0, tuple(drawn.index.shape))
        labels = drawn.label.tolist()
        parts[title] = {
            "images": images.numpy(),
            "labels": labels,
            "patterns": [drawn.names[place] for place in drawn.pattern.tolist()],
            "groups": None if isinstance(task, GameTask) else task.groups,
            "marked": [task.marked(label) for label in labels],
        }
    shown = [len(task.ids(part)) for part, _ in both]
    return draw_problem_sheet(parts, f"{task.name}: {shown[0]} pictures in training, {shown[1]} in the test")


@app.command(name="list")
def list_tasks(as_json: AsJson = False) -> None:
    """List the tasks: positions, answers, distinct pictures of both parts."""
    from separatrix import tasks

    rows = []
    for name in tasks.TASK_NAMES:
        options: dict[str, Any] = {"train": "preserving"} if name == "dist_n_restricted" else {}
        task = tasks.make_task(name, **options)
        rows.append({"task": name, "positions": task.seq_len, "answers": task.n_answers, "pictures": task.n_pictures})
    if as_json:
        print_json(rows)
    else:
        print_table(("task", "positions", "answers", "pictures"), [tuple(row.values()) for row in rows])


@app.command()
def explain(
    name: Name,
    scale: AnyScale = None,
    store: StoreFolder = None,
    oracle_steps: Annotated[
        int, typer.Option(help="Updates of a decoder that is told what is equal; 0 to leave it out.")
    ] = 300,
    as_json: AsJson = False,
) -> None:
    """Explain the accuracies of a stored run: chance, rules of thumb, a decoder that knows, collapses, patterns."""
    from separatrix.lab.campaign import best_report

    if oracle_steps < 0:
        raise InvalidInput(f"--oracle-steps must be at least 0; got {oracle_steps}.")
    experiment = find_experiment(name)
    with reading(store) as opened:
        report = best_report(experiment, opened, scale) if opened is not None else None
    if report is None or report.summary is None:
        raise InvalidInput(f"{name} has no complete run in the store: separatrix run {name} --scale {scale or 'smoke'}")
    runs, curves = (getattr(report.summary, field, None) for field in ("runs", "curves"))
    if not runs or not curves or "gradient_ratio" not in runs[0]:
        raise InvalidInput(f"{name} is no experiment that trains relational networks; there is nothing to explain.")
    keys = dict.fromkeys((row["task"], row["holdout"], row["model"]) for row in runs)
    n_shapes = getattr(report.params, "n_shapes", None)
    known = {asked: _known(*asked, n_shapes, oracle_steps) for asked in dict.fromkeys(key[:2] for key in keys)}
    rows = [_explained(key, runs, curves, known[key[:2]]) for key in keys]
    if as_json:
        print_json(rows)
        return
    tell(f"{name} ({report.scale}): what its accuracies on unseen pictures can be owed to")
    print_records([{name: value for name, value in row.items() if name != "by_pattern"} for row in rows])
    for row in rows:
        worst = sorted(row["by_pattern"].items(), key=lambda item: item[1])[:3]
        if worst and worst[0][1] < 0.9:
            tell(f"{row['task']}, {row['model']}: least by pattern {', '.join(f'{k} {v:.3f}' for k, v in worst)}")


def _known(name: str, holdout: int, n_shapes: int | None, oracle_steps: int) -> dict[str, Any]:
    """What a task gives away without a network: chance, rules of thumb, a decoder that knows what is equal."""
    from separatrix import training
    from separatrix.tasks import shortcut_accuracy

    task = _asked(name, holdout, n_shapes)
    short = shortcut_accuracy(task, 2000)
    told = training.oracle_answers(task, n_steps=oracle_steps, n_test=1000).accuracy if oracle_steps else None
    return {
        "chance": round(1 / task.n_answers, 3),
        "rule of thumb": f"{short.best[0]} {short.best[1]:.3f}",
        "told what is equal": None if told is None else f"{told:.3f} after {oracle_steps} steps",
    }


def _asked(name: str, holdout: int, n_shapes: int | None) -> Any:
    """The task of a run, with as many shapes held out as there; games have none to hold out."""
    from separatrix import tasks

    word, _, direction = name.partition(":")
    options: dict[str, Any] = {"train": direction} if direction else {}
    if not word.startswith("game_"):
        options["holdout"] = None if holdout < 0 else holdout
        if n_shapes is not None:
            options["n_shapes"] = n_shapes
    return tasks.make_task(word, **options)


def _explained(key: tuple[str, int, str], runs: Any, curves: Any, known: dict[str, Any]) -> dict[str, Any]:
    own = [
        row
        for row in runs
        if (row["task"], row["holdout"], row["model"]) == key and row["asked"] in ("unseen shapes", "hexominoes")
    ]
    fallen = sum(row["greatest"] - row["accuracy"] > COLLAPSE and row["train"] >= 0.99 for row in own)
    ratios = [row["gradient_ratio"] for row in own if row["gradient_ratio"] is not None]
    patterns = [c["patterns"] for c in curves if (c["task"], c["holdout"], c["model"]) == key]
    names = patterns[0] if patterns else {}
    return {
        "task": key[0],
        "held out": "as many as possible" if key[1] < 0 else key[1],
        "model": key[2],
        "n": len(own),
        "accuracy": round(statistics.fmean(row["accuracy"] for row in own), 4),
        "training": round(statistics.fmean(row["train"] for row in own), 4),
        **known,
        "collapses": fallen,
        "gradient ratio": None if not ratios else float(f"{statistics.fmean(ratios):.2g}"),
        "by_pattern": {k: sum(p[k] for p in patterns if k in p) / sum(k in p for p in patterns) for k in names},
    }
