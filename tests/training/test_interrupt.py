from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from separatrix.core.stopping import WorkStopped, stoppable
from separatrix.training import FinishStep, load_checkpoint, save_checkpoint
from short_training import run


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """As at a terminal: a shell that runs tests in the background lets them inherit that interrupts are ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


PROGRAM = Path(__file__).parents[1] / "short_training.py"


def start(checkpoint: Path, pause: float) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), str(checkpoint), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})


def wait_for_some_steps(process: subprocess.Popen[str], seconds: float) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "measured\n"  # five steps are done and one checkpoint is written
    time.sleep(seconds)  # however long this takes: the run halts before its last step


@pytest.mark.slow
def test_a_run_killed_at_a_random_step_and_resumed_has_the_metrics_of_one_that_was_not(
    tmp_path: Path, seed: int
) -> None:
    whole = run(None).history.records
    process = start(tmp_path / "run.pt", pause=0.02)
    wait_for_some_steps(process, random.Random(seed).uniform(0, 0.4))  # another moment with every seed: all must do
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    resumed = run(tmp_path / "run.pt")
    assert resumed.resumed_at is not None
    assert 0 < resumed.resumed_at < 40
    assert resumed.history.records == whole  # equal, not close


def test_the_first_interrupt_finishes_the_step_and_saves(tmp_path: Path) -> None:
    stopped = run(tmp_path / "run.pt", interrupt_at=7)
    assert (stopped.ending, stopped.n_done) == ("interrupted", 8)
    assert load_checkpoint(tmp_path / "run.pt")["n_done"] == 8
    resumed = run(tmp_path / "run.pt")
    assert resumed.resumed_at == 8
    assert resumed.history.records == run(None).history.records
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("by", ["a signal", "its worker"])
def test_half_a_training_is_no_result_of_a_cell(tmp_path: Path, by: str) -> None:
    """A batch queue may send an interrupt to every process of a job: what was trained so far is saved, not recorded."""
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(True)
        return by == "its worker" and len(asked) > 8

    with stoppable(stop), pytest.raises(WorkStopped):
        run(tmp_path / "run.pt", interrupt_at=7 if by == "a signal" else -1)
    resumed = run(tmp_path / "run.pt")
    assert resumed.resumed_at == 8
    assert resumed.history.records == run(None).history.records


def test_a_second_interrupt_stops_at_once() -> None:
    with FinishStep() as interrupt:
        signal.raise_signal(signal.SIGINT)
        assert interrupt.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("moment", ["before the rename", "in the middle of writing"])
def test_a_save_that_does_not_finish_leaves_the_old_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    run(tmp_path / "run.pt", n_steps=6)
    before = (tmp_path / "run.pt").read_bytes()

    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "replace" if moment == "before the rename" else "fsync", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        save_checkpoint(tmp_path / "run.pt", {"anything": 1})
    assert (tmp_path / "run.pt").read_bytes() == before
