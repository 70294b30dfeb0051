"""How answers look: tables for people on standard output, JSON for programs, one line for a problem."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from separatrix.lab.campaign import RunReport
    from separatrix.lab.experiment.claim import Claim, Judgement

VERDICT_STYLES = {
    "confirmed": "green",
    "misprint": "cyan",
    "holds under a condition": "yellow",
    "refuted": "bold red",
    "undecided": "magenta",
    "not run at this scale": "dim",
}


def say(line: str) -> None:
    """One line for the person at the terminal, on standard error."""
    print(f"separatrix: {line}", file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """A value as indented JSON."""
    print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """A table as wide as the terminal; the text of cells is never taken for markup."""
    from rich.console import Console

    Console().print(make_table(columns, rows, title))


def make_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Table:
    """A table in the house style; a verdict gets its colour."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=index == 0)  # the first is a name, to be copied whole
    for row in rows:
        table.add_row(*(Text(_shown(value), style=VERDICT_STYLES.get(str(value), "")) for value in row))
    return table


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_run(report: RunReport) -> None:
    """A run with its verdicts and the evidence for each."""
    print(
        f"{report.experiment.name} ({report.scale}): {report.n_done} of {len(report.cells)} cells, "
        f"{report.seconds:.1f} s of computing"
    )
    for claim in report.experiment.claims:
        if claim.id in report.judgements:
            print_verdict(claim, report.judgements[claim.id])


def print_runs(reports: Sequence[RunReport]) -> None:
    """Many runs, a line each: how much is done and how the verdicts fell."""
    rows = []
    for report in reports:
        verdicts = Counter(judged.verdict.label for judged in report.judgements.values())
        cells = f"{report.n_done}/{len(report.cells)}"
        rows.append((report.experiment.name, cells, f"{report.seconds:.1f}", counted(verdicts)))
    print_table(("experiment", "cells", "seconds", "verdicts"), rows)


def print_verdict(claim: Claim, judgement: Judgement, notes: Sequence[str] = ()) -> None:
    """One claim: the verdict and where it stands, what it says, what was measured, what is true, and notes on that."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console()
    verdict = judgement.verdict.label
    head = Text.assemble((verdict, VERDICT_STYLES[verdict]), f"  {claim.id} ", (f"({claim.place})", "dim"))
    console.print(head, soft_wrap=True)
    console.print(Padding(Text(claim.statement), (0, 0, 0, 4)))
    console.print(Padding(Text(f"measured: {judgement.evidence}", style="dim"), (0, 0, 0, 4)))
    if judgement.truth:
        console.print(Padding(Text(f"true is: {judgement.truth}"), (0, 0, 0, 4)))
    for note in notes:
        console.print(Padding(Text(note, style="dim"), (0, 0, 0, 4)))


def counted(verdicts: Mapping[str, int]) -> str:
    """How many of each verdict, in the order of the ledger."""
    return "; ".join(f"{verdicts[label]} {label}" for label in VERDICT_STYLES if verdicts.get(label)) or "no claims"


def say_failures(report: RunReport) -> None:
    """What went wrong in a run, each different reason once."""
    cells = [text.splitlines()[0] for key, text in report.failures.items() if key != "summarise"]
    for reason in dict.fromkeys(cells):
        count = cells.count(reason)
        say(f"{report.experiment.name}: {count} {'cell' if count == 1 else 'cells'} failed: {reason}")
    if "summarise" in report.failures:
        say(report.failures["summarise"])
