"""The door of the command line ``separatrix``: which commands there are, and its first page.

The first page of help and the version are written here, without the library that parses command lines: they are what
people ask for first, and should be there at once. Everything else is the application's (``app``).
"""

from __future__ import annotations

import os
import sys

COMMANDS = {
    "check": ("check:check_target", "Say what is wrong with a model, how sure that is, and what to change."),
    "list": (
        "list:list_experiments",
        "Show every experiment: which figure, table or theorem it is, and how many claims it judges.",
    ),
    "run": ("run:run", "Run experiments; finished cells are kept and never computed twice."),
    "resume": ("run:resume", "Continue every run that was interrupted or had failures."),
    "plan": ("plan:plan", "Show how many cells a run has and what they will cost, learned from smaller runs."),
    "sweep": ("sweep:sweep", "Run an experiment at many settings; the same command again continues it."),
    "claims": (
        "claims:claims",
        "Show every claim with its verdict, from your records or, where you have none, as published.",
    ),
    "show": ("show:show", "Show what an experiment computes, and the result of its largest complete run."),
    "report": ("report:report", "Write figures, tables and the claim ledger of the stored runs as HTML."),
    "publish": ("publish:publish", "Write one JSON file per experiment that has a complete run at the scale."),
    "verify": (
        "verify:verify",
        "Compute cells of a published result again and judge it again; leave with 0 if all agrees, with 1 if not.",
    ),
    "store": ("store:app", "Carry, join, check and tidy the records."),
    "errata": ("errata:errata", "Show what the documents print wrongly, and the correction."),
    "cite": ("cite:cite", "Print citation, place and BibTeX of whatever bears the name."),
    "version": ("version:version", "Show the version of the package, of Python and of the numerical libraries."),
    "advise": ("advise:app", "Recommend a method, a matrix family or a scale, and say why."),
    "attention": ("attention:app", "Equilibria of a self-attention head: count them, their spectra, where tokens end."),
    "data": ("data:app", "List, show and fetch data sets; no other command downloads."),
    "diagnose": ("diagnose:app", "Look inside a model; nothing in its file is executed."),
    "relational": ("relational:app", "Relational tasks: see their problems, and explain the accuracies of a run."),
}
"""Every command in the order of the help: its module in ``commands`` and what it is there (a function or, if it has
commands of its own, a ``typer.Typer``), and what it does."""
ABOUT = "Simulate, predict, compare, train and diagnose networks that are dynamical systems."
OPTIONS = {
    "--version": "Show the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "--help": "Show this message and exit.",
}


def first_page(columns: int) -> str:
    """The help of the program itself, for a terminal of so many columns."""
    lines = ["Usage: separatrix [OPTIONS] COMMAND [ARGS]...", "", *_paragraph("  ", ABOUT, columns), ""]
    rows = {"Options:": OPTIONS, "Commands:": {name: about for name, (_, about) in COMMANDS.items()}}
    indent = 4 + max(len(name) for table in rows.values() for name in table)
    for title, table in rows.items():
        lines.append(title)
        for name, about in table.items():
            first, *more = _paragraph(" " * indent, about, columns)
            lines += [f"  {name}".ljust(indent) + first[indent:], *more]
        lines.append("")
    return "\n".join(lines[:-1])


def _paragraph(indent: str, text: str, columns: int) -> list[str]:
    """Words in lines that begin with the indent and do not pass the last column, if a word has the room."""
    lines = [indent]
    for word in text.split():
        if len(lines[-1]) > len(indent) and len(lines[-1]) + 1 + len(word) > columns:
            lines.append(indent)
        lines[-1] += word if lines[-1] == indent else f" {word}"
    return lines


def _columns() -> int:
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal():
        return int(told)
    try:
        return os.get_terminal_size().columns
    except OSError:
        return 80


def main() -> None:
    """Answer what asks for no more than the first page or the version; leave the rest to the application."""
    words = sys.argv[1:]
    if words not in (["--help"], ["--version"]):
        from .app import run

        run()
        return
    import separatrix

    try:
        print(first_page(_columns()) if words == ["--help"] else separatrix.__version__, flush=True)
    except OSError as error:
        from .app import leave

        if isinstance(error, BrokenPipeError):
            leave(None, 141)  # who read our output has enough, as with SIGPIPE
        leave(f"the output cannot be written: {error.strerror or error}.", 2)
    sys.exit(0)
