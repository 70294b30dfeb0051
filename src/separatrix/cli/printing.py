"""How answers look: tables for people on standard output, JSON for programs, one line for a problem."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from separatrix.lab.campaign import RunReport

VERDICT_STYLES = {
    "confirmed": "green",
    "confirmed with correction": "cyan",
    "refined": "yellow",
    "refuted": "bold red",
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
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_shown(value), style=VERDICT_STYLES.get(str(value), "")) for value in row))
    return table


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_run(report: RunReport) -> None:
    """A run in a few lines: how much is done, the verdicts, what failed."""
    print(
        f"{report.experiment.name} ({report.scale}): {report.n_done} of {len(report.cells)} cells, "
        f"{report.seconds:.1f} s of computing"
    )
    if report.judgements:
        rows = [(name, judged.verdict.label, judged.evidence) for name, judged in report.judgements.items()]
        print_table(("claim", "verdict", "evidence"), rows)


def say_failures(report: RunReport) -> None:
    """What went wrong in a run, each different reason once."""
    cells = [text.splitlines()[0] for key, text in report.failures.items() if key != "summarise"]
    for reason in dict.fromkeys(cells):
        count = cells.count(reason)
        say(f"{report.experiment.name}: {count} {'cell' if count == 1 else 'cells'} failed: {reason}")
    if "summarise" in report.failures:
        say(report.failures["summarise"])
