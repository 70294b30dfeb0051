"""What cannot be meant is refused in one sentence that names the argument, by every room."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from command_line import environment
from refusals import REFUSALS


def test_the_sentence_says_which_argument_what_it_was_and_what_it_may_be() -> None:
    """Apart, because the tests check the types of every call before the package can."""
    words = [sys.executable, str(Path(__file__).with_name("refusals.py"))]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=True)
    answers: dict[str, str] = json.loads(done.stdout)
    wrong = {
        what: answers[what]
        for what, (_, words) in REFUSALS.items()
        if words not in answers[what] or "\n" in answers[what] or not answers[what].endswith(".")
    }
    assert not wrong
