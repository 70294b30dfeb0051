"""The script ``run`` with a Python that only pretends to install."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRETENDER = """#!/bin/sh
case "$*" in
"-m pip --version") exit 0 ;;
"-m pip install"*) echo begin >>"$LOG"; sleep 0.3; echo end >>"$LOG" ;;
"- "*) echo digest ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "a check out"
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "run", folder)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(PRETENDER)
    python.chmod(0o755)
    return folder


def start(folder: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "LOG": str(folder / "log")}
    return subprocess.Popen([folder / "run", "demo"], env=env, stderr=subprocess.PIPE, text=True)


def test_two_at_once_install_one_after_the_other_and_once(checkout: Path) -> None:
    for process in [start(checkout) for _ in range(3)]:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert (checkout / "log").read_text().split() == ["begin", "end"]
    assert not (checkout / ".venv.lock").exists()


def test_the_lock_of_one_that_was_killed_is_taken_over(checkout: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    (checkout / ".venv.lock").mkdir()
    (checkout / ".venv.lock" / "owner").write_text(f"{dead.pid}\n")
    process = start(checkout)
    process.communicate(timeout=60)
    assert process.returncode == 0
