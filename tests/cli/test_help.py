"""Help of every command: words stay whole in a narrow terminal, and a value is named as a person would write it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import typer

from command_line import Answer
from separatrix.cli.app import app


def _leaves(command: Any, words: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "list_commands"):
        return [(words, command)]
    return [
        leaf
        for name in command.list_commands(None)
        for leaf in [*_leaves(command.get_command(None, name), (*words, name))]
    ]


LEAVES = dict(_leaves(typer.main.get_command(app)))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_help_cuts_no_word_and_names_what_to_write(
    words: tuple[str, ...], cli: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {}
    for columns in (60, 80, 120, 1000):
        monkeypatch.setenv("COLUMNS", str(columns))
        told[columns] = cli(*words, "--help").out
        assert "…" not in told[columns]
        assert max(map(len, told[columns].splitlines())) <= columns
        assert re.findall(r"<[a-z]\S*>|\{\w+\}", told[columns]) == []  # a type of Python, a brace of the parser
    whole = set(re.split(r"[\s│╭╮╰╯─]+", told[1000]))
    assert set(re.split(r"[\s│╭╮╰╯─]+", told[60])) <= whole


def test_both_names_of_a_switch_are_understood_after_its_help_was_shown(
    cli: Callable[..., Answer],
) -> None:
    assert "--no-settle" in cli("attention", "classify", "--help").out
    for switch in ("--settle", "--no-settle"):
        answer = cli("attention", "classify", switch, "--value", "none.npy", "--tokens", "none.npy")
        assert "give either --coupling" in answer.err
        assert answer.code == 2


def test_every_option_with_a_value_has_a_word_for_it() -> None:
    named = {
        (*words, parameter.opts[0]): parameter.metavar
        for words, command in LEAVES.items()
        for parameter in command.params
        if not getattr(parameter, "is_flag", False)
    }
    assert named["run", "--scale"] == "SCALE"
    assert named["run", "--jobs"] == named["verify", "--rtol"] == "NUMBER"
    assert named["advise", "deq", "--figure"] == "FILE"
    assert named["plan", "name"] == "NAME"
    assert {word for word in named.values() if not word or word != word.upper()} == set()
