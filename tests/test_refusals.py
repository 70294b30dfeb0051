"""What cannot be meant is refused in one sentence that names the argument, by every room."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import environment
from refusals import REFUSALS


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """Apart, because the tests check the types of every call before the package can."""
    words = [sys.executable, str(Path(__file__).with_name("refusals.py"))]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("what", REFUSALS)
def test_the_sentence_says_which_argument_what_it_was_and_what_it_may_be(what: str, answers: dict[str, str]) -> None:
    words = REFUSALS[what][1]
    assert words in answers[what]
    assert "\n" not in answers[what]
    assert answers[what].endswith(".")
