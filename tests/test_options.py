"""Every option that takes a name refuses what is none, in one sentence."""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import environment
from option_calls import BAD, OPTIONS
from separatrix.core import Result
from test_public_surface import NAMES

FREE_TEXT = {
    "also", "authors", "between", "citation", "class_names", "condition", "confirm", "correct", "document", "erratum",
    "evidence", "key", "kind", "layer", "licence", "member", "name", "note", "path", "place", "prefix", "printed",
    "reason", "rotation", "sentence", "sha256", "split", "start", "summary", "text", "title", "url", "venue", "version",
    "xlabel", "ylabel", "checkpoint", "model_file", "source", "theme_name", "meaning", "labels", "id", "statement",
    "measures", "test", "quantity", "measured", "expected", "tolerance", "folder", "unchecked", "word",
}  # fmt: skip
"""Arguments that take any text, a file, or a name that only a later call can look up."""

RECORDS = {"Cell", "Finished", "Lease", "Publication", "RunReport", "StoredRun"}
"""Made by the package, of what it has looked up before."""

ALIASES = {"Pairs", "Family", "DenseFamily", "Level", "Splitting", "Injection", "Optimiser"}
"""Names of unions that hold a string or a literal; ``Loss`` does in ``diagnose`` alone."""


def takes_a_name(annotation: str, module: str) -> bool:
    """Whether one of the alternatives of an annotation is a string or a literal."""
    parts = {part.strip() for part in re.split(r"\|(?![^\[]*\])", annotation)}
    aliases = ALIASES | ({"Loss"} if module.startswith("diagnose") else set())
    return bool(parts & ({"str"} | aliases)) or any(part.startswith("Literal[") for part in parts)


def named_options() -> Iterator[tuple[str, str, str, bool]]:
    """Module, function and argument of every public option that is a literal or may be a string; whether or none."""
    for room, name, module in NAMES:
        value = getattr(importlib.import_module(room), name) if module else None
        if not (inspect.isfunction(value) or inspect.isclass(value)) or not value.__module__.startswith("separatrix"):
            continue
        if name in RECORDS or (
            inspect.isclass(value)
            and (issubclass(value, BaseException | enum.Enum | Result) or inspect.isabstract(value))
        ):
            continue
        for parameter in inspect.signature(value).parameters.values():
            module = value.__module__.removeprefix("separatrix.")
            if takes_a_name(str(parameter.annotation), module):
                yield module, name, parameter.name, "None" in str(parameter.annotation)


FOUND = sorted(set(named_options()))
MAY_BE_NONE = {(name, argument) for _, name, argument, optional in FOUND if optional}


def test_every_option_is_tried_or_takes_free_text() -> None:
    untried = [
        (module, name, argument)
        for module, name, argument, _ in FOUND
        if (name, argument) not in OPTIONS and argument not in FREE_TEXT
    ]
    assert not untried, f"enter these in OPTIONS: {untried}"


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    script = Path(__file__).with_name("option_calls.py")
    words = [sys.executable, str(script)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize(("name", "argument"), OPTIONS, ids=lambda value: str(value))
def test_what_is_no_option_is_refused_in_one_sentence(
    name: str, argument: str, kind: str, answers: dict[str, str]
) -> None:
    if kind == "none" and (name, argument) in MAY_BE_NONE:
        pytest.skip("nothing is an answer too")
    message = answers[f"{name}/{argument}/{kind}"]
    assert not message.startswith("not refused"), message
    assert len(message) < 600
    assert "\n" not in message
    assert repr(BAD[kind]) in message or "; got " in message
