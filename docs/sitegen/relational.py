"""The page of relational numbers: what the tables of kerg2022 print, beside what published runs came to."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from separatrix.core.wording import measured, number, within_interval
from separatrix.experiments import catalogue
from separatrix.experiments.kerg2022.relational.suite import ACCURACIES
from separatrix.lab.results.publication import Publication, read_publications
from separatrix.sources.kerg2022.relational_numbers import printed_accuracy
from separatrix.tasks import make_task, shortcut_accuracy

from .markup import cell, table

PROJECT = Path(__file__).parent.parent.parent
_COLUMNS = ("network", "n", "last step", "95 % interval", "chosen step", "best on curve", "training", "thumb")
_GAME_COLUMNS = (
    *("rule", "asked on", "network", "document, 10 seeds"),
    *("n", "ours", "95 % interval", "in deviations", "thumb"),
)
PROBLEMS = 4000
"""From so many the accuracy of a rule of thumb is told."""
_PUBLIC_FAMILY = {"public hexos": "hexominoes", "public stripes": "stripes"}
"""The family that a public file shows."""
_HEAD = """# Relational networks in numbers

Accuracies about pictures that training never showed, in per cent, made from the files in `results/`. "Last step" is the
mean over n seeds after the last step, with its 95 % interval (Student's t over seeds); "chosen step" is where fresh
training problems are answered best, a choice that knows no test; "best on curve" is what choosing on the test would
give: no result, but what falls short of it was lost again. Rehearsals at smoke scale are left out: they say nothing.

"In deviations" is ours minus the document's, in units of its standard deviation over seeds. "Thumb" is what the best
rule of thumb answers without any network (some two equal, number of equal pairs, first equals last): accuracy up to
there shows nothing about relations. Boards of our games are generated, and how their wrong cases are mixed is ours.
"""


def relational_page(results: Path = PROJECT / "results") -> str:
    """Games beside the printed tables, then the tasks of single objects, for which the document prints no numbers."""
    experiments = catalogue()
    runs = [
        publication
        for publication in read_publications(results, experiments)
        if publication.scale != "smoke" and ACCURACIES in publication.summary.get("tables", {})
    ]
    lines = [_HEAD, "## Games, beside the printed tables", ""]
    lines += _games([row for run in runs for row in _rows(run) if row["task"].startswith("game_")])
    lines += ["", "## Tasks of single objects", "", "The document shows bars and prints no numbers."]
    for run in runs:
        rows = [row for row in _rows(run) if not row["task"].startswith("game_")]
        if rows:
            lines += ["", f"### {run.title} (`{run.experiment}`, {run.scale})", "", _length(run), ""]
            lines += table(("task", "held out", *_COLUMNS), [_single(row) for row in rows])
    return "\n".join(lines) + "\n"


def _rows(run: Publication) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = run.summary["tables"][ACCURACIES]
    return rows


def _length(run: Publication) -> str:
    steps = run.params.get("n_steps")
    return f"{steps} steps of training (the document's: 5000)."


def _games(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The printed mean and deviation, ours, and by how many printed deviations they differ."""
    made = []
    for row in rows:
        family = row["asked on"]
        printed = printed_accuracy(row["task"].removeprefix("game_"), _PUBLIC_FAMILY.get(family, family), row["model"])
        mean, deviation = printed if printed is not None else (None, None)
        apart = (
            ""
            if mean is None or not deviation
            else measured((row["mean"] - mean) / deviation, None, signed=True, digits=2)
        )
        document = "" if mean is None or deviation is None else measured(100 * mean, 100 * deviation)
        shown = (cell(row["task"].removeprefix("game_")), cell(family), cell(row["model"]), document)
        made.append((*shown, str(row["n"]), *_mean(row), apart, _thumb(row["task"])))
    return table(_GAME_COLUMNS, made) if made else ["No run is published."]


def _single(row: Mapping[str, Any]) -> tuple[str, ...]:
    numbers = (_percent(row[key]) for key in ("at chosen step", "best on curve", "training"))
    held = (cell(row["task"]), cell(str(row["held out"])), cell(row["model"]), str(row["n"]))
    return (*held, *_mean(row), *numbers, _thumb(row["task"]))


@functools.cache
def _thumb(name: str) -> str:
    """The best rule of thumb on a task, and how far it goes: accuracy up to there shows nothing about relations."""
    word, _, direction = name.partition(":")
    options: dict[str, Any] = {"train": direction} if direction else {}
    rule, share = shortcut_accuracy(make_task(word, **options), PROBLEMS).best
    return f"{_percent(share)} ({cell(rule)})"


def _signed(value: float) -> str:
    return measured(value, None, signed=True, digits=2)


def _percent(share: float) -> str:
    return number(100 * share)


def _mean(row: Mapping[str, Any]) -> tuple[str, str]:
    """The mean over seeds and its interval, with the digits that the interval bears; one seed has none."""
    if row["n"] < 2:
        return _percent(row["mean"]), ""
    shares = (100 * float(row[key]) for key in ("mean", "low", "high"))
    mean, _, ends = within_interval(*shares, bounds=(0.0, 100.0)).partition(" [")
    return mean, ends.removesuffix("]").replace(", ", " to ")
