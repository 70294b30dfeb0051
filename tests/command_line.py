"""Run the command line as a user does: in this process for speed, or in one of its own where signals matter."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

OWN = "short_experiments:short"
"""An experiment that is not of the package."""


@dataclasses.dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "separatrix", *words]


def environment(**changes: str) -> dict[str, str]:
    here = str(Path(__file__).parent)
    source = str(Path(__file__).parents[1] / "src")
    path = os.pathsep.join([changes.pop("PYTHONPATH", here), here, source])
    return {**os.environ, "PYTHONPATH": path, **changes}


def run_apart(*words: str, env: Mapping[str, str] | None = None) -> Answer:
    done = subprocess.run(command(*words), env=env or environment(), capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def run_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> Answer:
    from separatrix.cli.main import main

    monkeypatch.setattr(sys, "argv", ["separatrix", *words])
    with pytest.raises(SystemExit) as end:
        main()
    captured = capsys.readouterr()
    return Answer(int(end.value.code or 0), captured.out, captured.err)
