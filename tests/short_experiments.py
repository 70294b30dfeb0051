"""Experiments of a few milliseconds, in a module of their own because worker processes import it by name."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from separatrix.core.random import spawn_numpy
from separatrix.lab.campaign import RunReport, run_experiments
from separatrix.lab.engines.base import AbstractEngine, Finished
from separatrix.lab.engines.progress import RunProgress
from separatrix.lab.experiment.cell import Cell
from separatrix.lab.experiment.claim import Claim, Judgement, Row, judge
from separatrix.lab.experiment.counterfeit import with_fields
from separatrix.lab.experiment.definition import Experiment, Params, load
from separatrix.lab.experiment.provenance import provenance
from separatrix.lab.experiment.record import Record
from separatrix.lab.experiment.summary import Summary
from separatrix.lab.store.records import Store


class Settings(Params):
    n_cells: int = 4
    pause: float = 0.0
    fail_at: int = -1
    die_at: int = -1
    marks: str = ""
    """A file that gets one line per computation, to count them."""
    gate: str = ""
    """A file for which all cells but the first two wait, so that a test may look at a run that cannot end yet."""
    expected: float = 0.5


class Measured(Summary):
    mean: float
    n: int


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    common = settings.model_dump(include={"pause", "fail_at", "die_at", "marks"})
    if settings.gate:
        common["gate"] = settings.gate
    for seed in settings.seeds:
        for number in range(settings.n_cells):
            yield {"seed": seed, "number": number, **common}


def run(cell: Cell) -> dict[str, Any]:
    if cell.args["marks"]:
        with open(cell.args["marks"], "a") as file:
            file.write(f"{cell.args['number']}\n")
    number = cell.args["number"]
    if number == cell.args["fail_at"] and not Path(cell.args["marks"] + ".mended").exists():
        raise ValueError("the cell was told to fail")
    if number == cell.args["die_at"]:
        os._exit(9)
    while number >= 2 and "gate" in cell.args and not Path(cell.args["gate"]).exists():
        time.sleep(0.02)
    time.sleep(cell.args["pause"])
    # A product wide enough for a threaded BLAS to split it: the bits would tell another number of threads.
    draws = spawn_numpy(cell.seed, "short", number).standard_normal((200, 200))
    return {"mean": float(draws.mean()), "number": number, "product": (draws @ draws.T)[:3, :3]}


def summarise(payloads: Sequence[tuple[Cell, dict[str, Any]]]) -> Measured:
    means = [payload["mean"] for _, payload in payloads]
    rows = [{"number": payload["number"], "mean": payload["mean"]} for _, payload in payloads]
    return Measured(mean=float(numpy.mean(means)), n=len(means), tables={"means": rows})


def judge_near_zero(summary: Measured) -> Judgement:
    return judge(f"mean {summary.mean:.4f}", [Row("mean", summary.mean, 0.0, 0.05)])


def judge_far_from_zero(summary: Measured) -> Judgement:
    return judge(f"mean {summary.mean:.4f}", [Row("mean", summary.mean, 1.0, 0.05)])


def claim(name: str, statement: str, rule: Any, **changes: Any) -> Claim:
    given = {"document": "separatrix", "place": "tests", "measures": "mean", "test": "0.05", **changes}
    return Claim(id=name, statement=statement, judge=rule, counterfeit=with_fields(mean=0.5), **given)


CLAIMS = (
    claim("short-zero", "the mean is 0", judge_near_zero),
    claim("short-one", "the mean is 1", judge_far_from_zero),
    claim("short-paper", "the mean is 0", judge_near_zero, scale="paper"),
)


def make(name: str, **changes: Any) -> Experiment:
    given: dict[str, Any] = {
        "title": "means of noise",
        "document": "altafini2025",
        "place": "Fig. 1",
        "version": 1,
        "scales": {
            "smoke": Settings(),
            "laptop": Settings(n_cells=6),
            "paper": Settings(n_cells=8),
        },
        "expand": expand,
        "run": run,
        "summarise": summarise,
        "summary": Measured,
        "claims": CLAIMS,
    }
    return Experiment(name=name, **{**given, **changes})


def judge_in_a_word(summary: Measured) -> Judgement:
    return "confirmed"  # type: ignore[return-value]


def judge_badly(summary: Measured) -> Judgement:
    raise KeyError("no such\ncolumn")


def summarise_badly(payloads: Sequence[tuple[Cell, dict[str, Any]]]) -> Measured:
    return Measured(mean=payloads[0][1]["nothing"], n=1)


def return_an_object(cell: Cell) -> dict[str, Any]:
    return {"thing": object()}


def return_a_number(cell: Cell) -> dict[str, Any]:
    return 3  # type: ignore[return-value]


def return_nan(cell: Cell) -> dict[str, Any]:
    return {"mean": float("nan"), "number": cell.args["number"]}


def summarise_with_words(payloads: Sequence[tuple[Cell, dict[str, Any]]]) -> Measured:
    return Measured(mean="much", n=1)  # type: ignore[arg-type]


SHORT = make("short", data=("mnist", "ptb"))
MISJUDGED = make(
    "misjudged",
    claims=(
        claim("misjudged-word", "the mean is 0", judge_in_a_word),
        claim("misjudged-zero", "the mean is 0", judge_near_zero),
        claim("misjudged-badly", "the mean is 0", judge_badly),
    ),
)
BUGGY = make("buggy", summarise=summarise_badly)
UNWRITABLE = make("unwritable", run=return_an_object)
NUMBER = make("number", run=return_a_number)
NAN = make("nan", run=return_nan)
WORDS = make("words", summarise=summarise_with_words)
EMPTY = make("empty", expand=lambda settings: [])


class InlineEngine(AbstractEngine):
    """Computes cells in this process, for tests of what happens around an engine."""

    def __init__(self) -> None:
        self.computed: list[str] = []

    def run(self, cells: Sequence[Cell], store: Store, data: Mapping[str, str]) -> Iterator[Finished]:
        for cell in cells:
            experiment = load(cell.entry)
            self.computed.append(cell.key)
            try:
                payload = experiment.run(cell)
            except ValueError as error:
                yield Finished(cell.key, f"ValueError: {error}")
                continue
            store.write(Record(cell, payload, provenance(experiment, cell, 0.5, data)))
            yield Finished(cell.key)


def run_inline(
    store: Store, *requests: tuple[Experiment, Params, str], engine: InlineEngine | None = None
) -> list[RunReport]:
    with RunProgress(quiet=True) as progress:
        return run_experiments(requests, store, engine or InlineEngine(), progress)
