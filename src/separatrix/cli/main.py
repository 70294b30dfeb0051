"""The command line ``separatrix``: which commands there are, and what happens to errors.

Command modules import the rooms they need inside their functions, so that help and completion stay fast.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Annotated, TextIO

import typer

import separatrix
from separatrix.core.errors import SeparatrixError

from .commands import (
    advise,
    attention,
    cite,
    claims,
    data,
    diagnose,
    errata,
    list as list_command,
    publish,
    report,
    run,
    show,
    version,
)
from .printing import say

app = typer.Typer(
    name="separatrix",
    help="Simulate, predict, compare, train and diagnose networks that are dynamical systems.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

COMMANDS: dict[str, Callable[..., None]] = {
    "list": list_command.list_experiments,
    "run": run.run,
    "resume": run.resume,
    "claims": claims.claims,
    "show": show.show,
    "report": report.report,
    "publish": publish.publish,
    "errata": errata.errata,
    "cite": cite.cite,
    "version": version.version,
}
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)

# Commands with commands of their own stand here, one line each: app.add_typer(MODULE.app, name=NAME).
app.add_typer(advise.app, name="advise")
app.add_typer(attention.app, name="attention")
app.add_typer(data.app, name="data")
app.add_typer(diagnose.app, name="diagnose")


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(separatrix.__version__)
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning is one line for a person; where in the code it arose helps nobody at a terminal."""
    say(f"warning: {message}")


def main() -> None:
    """Run a command; an expected error is one line on standard error and exit code 2, never a traceback."""
    warnings.showwarning = _warn
    try:
        app()
    except SeparatrixError as error:
        say(str(error))
        sys.exit(2)
