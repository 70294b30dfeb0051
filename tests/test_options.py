"""What cannot be meant is refused in one sentence: by every option that takes a name, and by every room."""

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
from typing import Any

import pytest

from command_line import environment
from option_calls import BAD, OPTIONS
from refusals import REFUSALS
from separatrix.core import Result
from test_public_surface import NAMES

FREE_TEXT = {
    "also", "authors", "between", "citation", "class_names", "condition", "confirm", "correct", "document", "erratum",
    "evidence", "key", "kind", "layer", "licence", "member", "name", "note", "path", "place", "prefix", "printed",
    "reason", "rotation", "sentence", "sha256", "split", "start", "summary", "text", "title", "url", "venue", "version",
    "xlabel", "ylabel", "checkpoint", "model_file", "source", "theme_name", "meaning", "labels", "id", "statement",
    "measures", "test", "quantity", "measured", "expected", "tolerance", "folder", "truth", "concerns", "says",
    "because", "number", "wanted", "rule",
    "needs", "column", "columns", "entries", "axes", "only", "rows", "caption", "promise", "x_label",
    "module", "op", "names", "watch", "unchecked", "word", "argument", "address", "x", "y", "home",
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


@pytest.fixture(scope="module")
def found() -> list[tuple[str, str, str, bool]]:
    return sorted(set(named_options()))


def test_every_option_is_tried_or_takes_free_text(found: list[tuple[str, str, str, bool]]) -> None:
    untried = [
        (module, name, argument)
        for module, name, argument, _ in found
        if (name, argument) not in OPTIONS and argument not in FREE_TEXT
    ]
    assert not untried, f"enter these in OPTIONS: {untried}"


def fault(message: str, kind: str) -> str:
    """What is wrong with the answer to a bad option, or nothing."""
    if message.startswith("not refused"):
        return message
    if len(message) >= 600 or "\n" in message:
        return f"more than a sentence: {message}"
    return "" if repr(BAD[kind]) in message or "; got " in message else f"does not say what it got: {message}"


WRONG_CALLS = """import json, sys
sys.path.insert(0, {here!r})
import refusals, wrong_kinds, wrong_values
print(json.dumps(refusals.main(set(json.loads(sys.stdin.read())))))
wrong_kinds.main(0.01, {seed})
print()
wrong_values.main(",".join(wrong_values.ALL_ROOMS), 0.001, {seed})
"""


@pytest.fixture(scope="module")
def may_be_none(found: list[tuple[str, str, str, bool]]) -> set[tuple[str, str]]:
    return {(name, argument) for _, name, argument, optional in found if optional}


@pytest.fixture(scope="module")
def said(
    may_be_none: set[tuple[str, str]], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """Answers to wrong calls, made in one process of their own: the tests check the types of every call before the
    package can, and importing every room takes longer than the calls. A path may be written."""
    program = WRONG_CALLS.format(here=str(Path(__file__).parent), seed=request.config.getoption("seed"))
    left_out = json.dumps(["/".join((*option, "none")) for option in may_be_none])
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=left_out,
        env=environment(),
        cwd=tmp_path_factory.mktemp("calls"),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_share_of_wrong_kinds_and_values_is_refused_in_one_sentence(said: list[dict[str, Any]]) -> None:
    """A few calls of every room, others with every seed; all of them, slowly, in ``test_wrong_kinds.py``."""
    _, kinds, values = said
    assert kinds["calls"] > 30
    assert values["calls"] > 15
    assert not kinds["raw"] | values["raw"]


def test_the_sentence_says_which_argument_what_it_was_and_what_it_may_be(said: list[dict[str, Any]]) -> None:
    answers = said[0]["refusals"]
    wrong = {
        what: answers[what]
        for what, (_, words) in REFUSALS.items()
        if words not in answers[what] or "\n" in answers[what] or not answers[what].endswith(".")
    }
    assert not wrong


def test_what_is_no_option_is_refused_in_one_sentence(
    may_be_none: set[tuple[str, str]], said: list[dict[str, Any]]
) -> None:
    answers = said[0]["options"]
    tried = [(*option, kind) for option in OPTIONS for kind in BAD if kind != "none" or option not in may_be_none]
    faults = {
        words: problem for words in map("/".join, tried) if (problem := fault(answers[words], words.split("/")[-1]))
    }
    assert len(tried) > 4 * len(OPTIONS)
    assert not faults
