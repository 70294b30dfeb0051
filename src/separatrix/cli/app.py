"""The application that parses command lines, and what happens to errors. Commands are imported when they are asked for.

Command modules import the rooms they need inside their functions, so that help and completion stay fast.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import warnings
from typing import Annotated, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

import separatrix
from separatrix.core.errors import SeparatrixError

from .help import speak_plainly
from .printing import say
from .words import ABOUT, COMMANDS, OPTIONS


class _Commands(TyperGroup):
    """Imports the module of a command when the command is asked for."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands.get(cmd_name)


def _load(name: str) -> Any:
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(importlib.import_module(f"{__package__}.commands.{module}"), attribute)
    if isinstance(found, typer.Typer):
        command: Any = typer.main.get_group(found)
    else:
        alone = typer.Typer(add_completion=False)
        alone.command()(found)
        command = typer.main.get_command(alone)
    command.name = name
    speak_plainly(command)
    return command


app = typer.Typer(
    name="separatrix",
    cls=_Commands,
    help=ABOUT,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(separatrix.__version__)
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help=OPTIONS["--version"])
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


def run() -> None:
    """Run a command; an expected error is one line on standard error and exit code 2, never a traceback.

    What nobody expected is a bug of ours: one line too, with exit code 70, and the traceback if the variable
    ``SEPARATRIX_TRACEBACK`` is set.
    """
    warnings.showwarning = _warn
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # a full disk behind a redirected output is noticed here, while we can still say so
    except SeparatrixError as error:
        leave(str(error), 2)
    except BrokenPipeError:
        leave(None, 141)  # who read our output has enough, as with SIGPIPE
    except MemoryError:
        leave("there is not enough memory for this; ask for less.", 2)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else "the output cannot be written: "
        leave(f"{place}{error.strerror or error}.", 2)
    except Exception as error:
        if os.environ.get("SEPARATRIX_TRACEBACK"):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        leave(f"a bug of separatrix: {reason[:500]} (SEPARATRIX_TRACEBACK=1 shows where)", 70)


def leave(sentence: str | None, code: int) -> NoReturn:
    """End the program with an exit code, and one line if there is something to say."""
    if sentence is not None:
        say(" ".join(sentence.split("\n")))
    # What is left in the buffer cannot be written; the interpreter would try again at its end and complain.
    with contextlib.suppress(OSError, ValueError):
        handle = os.open(os.devnull, os.O_WRONLY)
        os.dup2(handle, sys.stdout.fileno())
    sys.exit(code)
