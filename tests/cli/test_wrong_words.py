"""No command line ends in a traceback: an answer, or one sentence, within limits of time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import wrong_words
from command_line import Answer, environment

PROGRAM = Path(wrong_words.__file__)


def tried(share: float, folder: Path) -> dict[str, object]:
    words = [sys.executable, str(PROGRAM), str(share)]
    done = subprocess.run(words, env=environment(), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_every_command_has_its_line() -> None:
    """So that a new command meets wrong words on the day it is written; its options do without."""
    found = wrong_words.all_commands()
    assert len(found) > 30
    assert wrong_words.without_a_line(found) == []
    assert wrong_words.without_a_line({**found, "fresh": None}) == ["fresh"]


@pytest.mark.slow
def test_no_wrong_word_is_answered_by_a_traceback(tmp_path: Path) -> None:
    answer = tried(0.25, tmp_path)
    assert answer["without a line"] == []
    assert not answer["raw"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("words", [("list",), ("errata", "--json"), ("version",)])
def test_an_output_that_is_full_is_one_sentence(words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "separatrix", *words],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "separatrix: the output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("entry", [":x", "x:", ":", "1:x", ".a:b", "a..b:c", "failing_module:x"])
def test_an_entry_that_leads_nowhere_is_one_sentence(
    entry: str, cli: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_module.py").write_text("raise SystemExit('at import')")
    monkeypatch.syspath_prepend(tmp_path)
    answer = cli("run", entry, "--store", tmp_path / "s")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert "entry must be module:name" in answer.err or "fails when it is imported" in answer.err
