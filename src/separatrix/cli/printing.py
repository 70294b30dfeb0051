"""How answers look: tables for people on standard output, JSON for programs, one line for a problem."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

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
    """One sentence for the person at the terminal, on standard error."""
    with contextlib.suppress(OSError, ValueError):  # a terminal that was closed
        print(fitted(f"separatrix: {line}", sys.stderr), file=sys.stderr, flush=True)


def program() -> list[str]:
    """What was typed to start this program: its own name, or Python with the module."""
    name = os.path.basename(sys.argv[0])
    return [name] if name == "separatrix" else [sys.executable, "-m", "separatrix"]


def tell(text: str) -> None:
    """Lines of an answer, on standard output."""
    print(fitted(text, sys.stdout))


def fitted(text: str, stream: Any) -> str:
    """The text wrapped to the width of the terminal, words left whole; as it is for a pipe, where programs read it.

    What continues a line is indented by two more than the line. ``COLUMNS`` sets the width of a pipe too.
    """
    if not (stream.isatty() or os.environ.get("COLUMNS")):
        return text
    return "\n".join(_wrapped(line, shutil.get_terminal_size().columns) for line in text.splitlines())


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line.strip(),
        max(width, 20),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def print_json(value: Any) -> None:
    """A value as indented JSON."""
    print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """A table as wide as the terminal, words left whole; where it has no room, one paragraph for each row.

    The text of cells is never taken for markup.
    """
    from rich.console import Console

    console = Console()
    cells = [[_shown(value) for value in row] for row in rows]
    least = [
        max([_longest(name, index), *(_longest(row[index], index) for row in cells)], default=0)
        for index, name in enumerate(columns)
    ]
    if title is not None:  # a title of the table's own would be wrapped to the width of the table
        tell(title)
    if sum(least) + 3 * len(least) <= console.width:
        console.print(_table(columns, cells, least))
        return
    for row in cells:
        _print_paragraph(console, columns, row)


def print_records(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
    """Records as a table: columns in words, values with their uncertainty, digits that mean something."""
    from separatrix.core.wording import readable
    from separatrix.report.pages.wording import names_in_words

    table = readable(rows, title=title or "", words=names_in_words)
    print_table(table.columns, table.cells, title)


def _longest(text: str, index: int) -> int:
    """Columns that a cell needs: the first is a name, to be copied whole; others may be wrapped between words."""
    from rich.cells import cell_len

    parts = [text] if index == 0 else text.split()
    return max((cell_len(part) for part in parts), default=0)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], least: Sequence[int]) -> Table:
    """A table in the house style; a verdict gets its colour."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=index == 0, min_width=least[index])
    for row in rows:
        table.add_row(*(_styled(value) for value in row))
    return table


def _print_paragraph(console: Console, columns: Sequence[str], row: Sequence[str]) -> None:
    """The name of a row, and below it what the other columns say."""
    print(row[0])
    for name, value in zip(columns[1:], row[1:], strict=True):
        if value:
            _print_indented(console, f"{name}: {value}", VERDICT_STYLES.get(value, ""))


def _print_indented(console: Console, text: str, style: str = "") -> None:
    """A paragraph four columns in; a word that is longer than a line stays whole."""
    from rich.text import Text

    for line in _wrapped(" " * 4 + " ".join(text.split()), console.width).splitlines():
        console.print(Text(line, style=style), soft_wrap=True)


def _styled(value: str) -> Text:
    from rich.text import Text

    return Text(value, style=VERDICT_STYLES.get(value, ""))


def _shown(value: Any) -> str:
    from separatrix.core.wording import number

    if value is None:
        return ""
    return number(value, 4) if isinstance(value, float) else str(value)


def print_run(report: RunReport) -> None:
    """A run with its verdicts and the evidence for each."""
    tell(
        f"{report.experiment.name} ({report.scale}): {report.n_done} of {len(report.cells)} cells, "
        f"{report.seconds:.1f} s of computing"
    )
    for claim in report.experiment.claims:
        judgement = report.judgement_of(claim)
        if judgement is not None:
            print_verdict(claim, judgement)


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
    from rich.text import Text

    console = Console()
    verdict = judgement.verdict.label
    for index, line in enumerate(_wrapped(f"{verdict}  {claim.id} ({claim.place})", console.width).splitlines()):
        text = Text(line)
        text.stylize(VERDICT_STYLES[verdict], 0, 0 if index else len(verdict))
        console.print(text, soft_wrap=True)
    _print_indented(console, claim.statement)
    _print_indented(console, f"measured: {judgement.evidence}", "dim")
    if judgement.truth:
        _print_indented(console, f"true is: {judgement.truth}")
    for note in notes:
        _print_indented(console, note, "dim")


def shown_duration(seconds: float) -> str:
    """A time as people say it: ``"0.4 s"``, ``"12 min"``, ``"3.2 h"``, ``"5.1 days"``."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def counted(verdicts: Mapping[str, int]) -> str:
    """How many of each verdict, in the order of the ledger."""
    return "; ".join(f"{verdicts[label]} {label}" for label in VERDICT_STYLES if verdicts.get(label)) or "no claims"


def say_failures(report: RunReport) -> None:
    """What went wrong in a run, each different reason once."""
    if not report.failures:
        return
    keys = {cell.key for cell in report.cells}
    cells = [text.splitlines()[0] for key, text in report.failures.items() if key in keys]
    for reason in dict.fromkeys(cells):
        count = cells.count(reason)
        say(f"{report.experiment.name}: {count} {'cell' if count == 1 else 'cells'} failed: {reason}")
    for key, text in report.failures.items():
        if key not in keys:  # the summary, or the rule of a claim
            say(text)
