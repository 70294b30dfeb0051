"""The first page of help says what the application would, and nothing is imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from command_line import environment, run_apart
from separatrix.cli.app import app
from separatrix.cli.main import first_page, greeting
from separatrix.cli.words import ABOUT, COMMANDS, OPTIONS, TO_TRY


def test_the_page_says_of_every_command_and_option_what_the_application_says() -> None:
    group = typer.main.get_command(app)
    said = {name: group.get_command(None, name).help or "" for name in group.list_commands(None)}  # type: ignore[attr-defined,arg-type]
    assert {name: " ".join(text.split("\n\n")[0].split()) for name, text in said.items()} == {
        name: about for name, (_, about) in COMMANDS.items()
    }
    options = {parameter.opts[0]: parameter.help for parameter in group.params}  # type: ignore[attr-defined]
    assert {**options, "--help": "Show this message and exit."} == OPTIONS
    assert group.help == ABOUT


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_longer_than_the_terminal(columns: int) -> None:
    page = first_page(columns)
    assert max(len(line) for line in page.splitlines()) <= max(columns, 46)  # of the usage, which stays whole
    assert all(f"  {name} " in page for name in COMMANDS)


def test_help_and_version_import_no_library() -> None:
    code = "import sys; sys.argv = ['separatrix', '--help']\nfrom separatrix.cli.main import main\n"
    code += "try:\n    main()\nexcept SystemExit:\n    print(*(n for n in ('typer', 'ast', 're') if n in sys.modules))"
    words = [sys.executable, "-S", "-c", code]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""
    assert run_apart("--version").out.strip()


def test_the_name_alone_is_answered_with_three_things_to_try() -> None:
    answer = run_apart()
    assert answer.code == 2
    assert all(command in answer.out for command in TO_TRY)
    assert max(len(line) for line in greeting(60).splitlines()) <= 60
    assert {command.split()[1] for command in TO_TRY} <= set(COMMANDS)
