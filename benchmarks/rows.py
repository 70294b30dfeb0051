"""The one form in which every benchmark reports: a job, a peer, and ours over theirs.

A script of this folder that takes part in ``./run bench`` has a function ``rows(quick)`` that returns a list of
``Row`` and ends with ``main(rows, __file__, __doc__)``. ``README.md`` beside this file says what the fields mean.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib.metadata
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One comparison. Ratios are ours over theirs in CPU time: below one we are faster."""

    job: str
    peer: str
    ratio: float | None
    """Median over the rounds; None where the peer is not installed (``note`` says so)."""
    least: float | None = None
    most: float | None = None
    goal: float | None = None
    """The ratio may be at most this; None where nothing is asked."""
    rounds: int = 1
    note: str = ""
    """What was measured beside time: errors of both, what is special."""
    readme: bool = False
    """Whether the README shows it."""
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Whatever else is worth keeping, for JSON."""

    @property
    def holds(self) -> bool | None:
        """Whether the goal is met; None where there is none, or nothing was measured."""
        return None if self.goal is None or self.ratio is None else self.ratio <= self.goal


def missing(job: str, peer: str, goal: float | None = None, *, readme: bool = False, what: str | None = None) -> Row:
    """The row of a peer, or of something else (``what``), that is not installed."""
    note = f"{what or peer} is not installed"
    return Row(job=job, peer=peer, ratio=None, goal=goal, rounds=0, note=note, readme=readme)


def cpu_seconds(task: Callable[[], object]) -> float:
    """Processor time of one call, all threads."""
    begun = time.process_time()
    task()
    return time.process_time() - begun


def interleaved(tasks: dict[str, Callable[[], object]], rounds: int, *, least: float = 0.0) -> dict[str, list[float]]:
    """CPU seconds of every task in every round; a round runs all of them, in alternating order, after one to warm up.

    Args:
        tasks: the contestants.
        rounds: how often.
        least: tasks shorter than this are repeated within a round until they have taken as long; mean of those.
    """
    counts = {}
    for name, task in tasks.items():
        task()
        counts[name] = max(1, math.ceil(least / max(cpu_seconds(task), 1e-7)))
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(rounds):
        for name in list(tasks)[:: 1 if number % 2 else -1]:
            begun = time.process_time()
            for _ in range(counts[name]):
                tasks[name]()
            seconds[name].append((time.process_time() - begun) / counts[name])
    return seconds


def compared(job: str, peer: str, ours: Sequence[float], theirs: Sequence[float], **rest: Any) -> Row:
    """The row of two lists of seconds of the same rounds."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    facts = {"seconds": statistics.median(ours), "peer_seconds": statistics.median(theirs), **rest.pop("facts", {})}
    return Row(
        job=job, peer=peer, ratio=statistics.median(ratios), least=min(ratios), most=max(ratios),
        rounds=len(ratios), facts=facts, **rest,
    )  # fmt: skip


def mean_row(job: str, peer: str, parts: Iterable[Row], **rest: Any) -> Row:
    """The geometric mean of several rows; its spread is that of their medians."""
    ratios = [row.ratio for row in parts if row.ratio is not None]
    if not ratios:
        return missing(job, peer, rest.get("goal"), readme=rest.get("readme", False))
    middle = math.exp(statistics.fmean(map(math.log, ratios)))
    return Row(job=job, peer=peer, ratio=middle, least=min(ratios), most=max(ratios), rounds=len(ratios), **rest)


def worst_row(job: str, peer: str, parts: Iterable[Row], **rest: Any) -> Row:
    """The row of the largest ratio among several, under another name; its own job goes into the note."""
    measured = [row for row in parts if row.ratio is not None]
    if not measured:
        return missing(job, peer, rest.get("goal"), readme=rest.get("readme", False))
    largest = max(measured, key=lambda row: row.ratio or 0.0)
    note = f"worst of {len(measured)}: {largest.job}" + (f"; {largest.note}" if largest.note else "")
    return dataclasses.replace(largest, job=job, peer=peer, note=note, facts={}, **rest)


def environment() -> dict[str, Any]:
    """Versions of whatever is installed of ourselves and the peers, the day, and the processor with its kernels."""
    from separatrix.lab import machine  # what a benchmark imports itself decides which libraries are asked

    names = (
        "torch", "numpy", "scipy", "numba", "torchdeq", "torchdiffeq", "torchode", "diffrax", "jax", "geotorch",
    )  # fmt: skip
    versions = {}
    for name in names:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "python": platform.python_version(), "machine": platform.machine(), "processor": _processor(),
        "kernels": machine().get("kernels"), "day": datetime.date.today().isoformat(),
        "versions": versions, "threads": 1,
    }  # fmt: skip


def _processor() -> str:
    """What Linux calls it; elsewhere what Python can tell."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as plain dictionaries, with ``holds``."""
    return [{**dataclasses.asdict(row), "holds": row.holds} for row in rows]


def from_json(row: dict[str, Any]) -> Row:
    """A row that was written by ``as_json``."""
    return Row(**{name: value for name, value in row.items() if name != "holds"})


def line(row: Row) -> str:
    """One line of the table on the terminal."""
    spread = f"{_short(row.least)}-{_short(row.most)}" if row.least is not None else ""
    verdict = {True: "holds", False: "MISSED", None: ""}[row.holds]
    return (
        f"{row.job:<58.58} {row.peer:<22.22} {_short(row.ratio):>6} {spread:>13} {_short(row.goal):>5} {verdict:<6} "
        f"{row.note}"
    ).rstrip()


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}" if value < 0.095 else f"{value:.2f}"


HEAD = f"{'job':<58} {'peer':<22} {'ratio':>6} {'spread':>13} {'goal':>5} {'':<6} note"


def written(rows: Callable[[bool], list[Row]], quick: bool, target: Path | None) -> list[Row]:
    """Run a script's function and write what it found, if somewhere."""
    begun = time.process_time()
    found = rows(quick)
    if target is not None:
        content = {
            "environment": environment(), "cpu_seconds": time.process_time() - begun, "rows": as_json(found),
        }  # fmt: skip
        target.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return found


def main(rows: Callable[[bool], list[Row]], script: str, doc: str | None) -> None:
    """The command line of a script: run, print the table, write ``results/NAME.json`` (not with ``--quick``)."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few cases and rounds; nothing is written")
    parser.add_argument("--output", type=Path, default=RESULTS / f"{Path(script).stem}.json")
    options = parser.parse_args()
    found = written(rows, options.quick, None if options.quick else options.output)
    print(HEAD, *map(line, found), sep="\n")
