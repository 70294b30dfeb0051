"""The door of the command line ``separatrix``: which commands there are, and its first page.

The first page of help and the version are written here, without the library that parses command lines: they are what
people ask for first, and should be there at once. Everything else is the application's (``app``).
"""

from __future__ import annotations

import os
import sys

from .words import ABOUT, COMMANDS, OPTIONS, TO_TRY


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


def greeting(columns: int) -> str:
    """What a newcomer reads who types the name alone: three things to try."""
    lines = [*_paragraph("", ABOUT, columns), "", "Three things to try:", ""]
    for command, about in TO_TRY.items():
        lines += [f"  {command}", *_paragraph("      ", about, columns)]
    return "\n".join([*lines, "", "All commands: separatrix --help"])


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
    completes = any(name.startswith("_SEPARATRIX_COMPLETE") for name in os.environ)  # a shell asks, without words
    if completes or words not in ([], ["--help"], ["--version"]):
        from .app import run

        run()
        return
    import separatrix

    try:
        pages = {"--version": separatrix.__version__, "--help": first_page(_columns())}
        print(pages[words[0]] if words else greeting(_columns()), flush=True)
    except OSError as error:
        from .app import leave

        if isinstance(error, BrokenPipeError):
            leave(None, 141)  # who read our output has enough, as with SIGPIPE
        leave(f"the output cannot be written: {error.strerror or error}.", 2)
    sys.exit(0 if words else 2)  # nothing was asked for: a script that forgot its command must notice
