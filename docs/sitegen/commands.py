"""The page of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from separatrix.cli.app import app

from .docstrings import to_markdown
from .markup import code, prose_cell, table


def commands_page() -> str:
    """Every command with its arguments and options, as ``--help`` shows them."""
    top = typer.main.get_command(app)
    lines = ["# Command line", "", to_markdown(top.help or ""), ""]
    for words, command in _leaves(top, ("separatrix",)):
        lines += _part(words, command)
    return "\n".join(lines)


def _leaves(command: Any, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    """Commands that do something: groups are walked into, by asking, because a group may import them only then."""
    if not hasattr(command, "list_commands"):
        return [(words, command)]
    context = command.make_context(" ".join(words), [], resilient_parsing=True)
    inner = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return [leaf for name, found in inner.items() for leaf in _leaves(found, (*words, name))]


def _part(words: tuple[str, ...], command: Any) -> list[str]:
    context = command.make_context(" ".join(words), [], resilient_parsing=True)
    usage = " ".join([*words, *command.collect_usage_pieces(context)])
    lines = [f"## {' '.join(words[1:])} {{ #{'-'.join(words[1:])} }}", "", f"```text\n{usage}\n```", ""]
    lines += [to_markdown(inspect.cleandoc(command.help or "")), ""]
    records = [param.get_help_record(context) for param in command.params if param.name != "help"]
    rows = [(code(record[0]), prose_cell(record[1])) for record in records if record]
    return [*lines, *table(("", "meaning"), rows), ""] if rows else lines
