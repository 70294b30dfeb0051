"""One rule gives a worker its device: a GPU of its own, else the processor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from command_line import environment
from separatrix.core import InvalidInput
from separatrix.lab import EngineError, compute_record
from separatrix.lab.engines.worker_devices import chosen_device, device_words
from short_experiments import SHORT

GPUS = ("first", "second")


def given_to(n_workers: int, told: str = "auto", share: int = 1, gpus: tuple[str, ...] = GPUS) -> list[str]:
    taken: set[str] = set()

    def take(place: str) -> bool:
        free = place not in taken
        taken.add(place)
        return free

    return [chosen_device(told, gpus, share, take) for _ in range(n_workers)]


def test_no_two_workers_share_a_gpu_unless_told() -> None:
    assert given_to(4) == ["cuda:0", "cuda:1", "cpu", "cpu"]
    assert given_to(5, share=2) == ["cuda:0", "cuda:1", "cuda:0", "cuda:1", "cpu"]


def test_a_machine_without_a_gpu_and_one_that_may_not_use_its_own() -> None:
    assert given_to(2, gpus=()) == ["cpu", "cpu"]
    assert given_to(2, told="cpu") == ["cpu", "cpu"]


def test_a_gpu_that_is_wanted_and_not_free_is_an_error() -> None:
    with pytest.raises(EngineError, match="none of the 2 GPUs of this machine is free"):
        given_to(3, told="cuda")
    with pytest.raises(InvalidInput, match="unknown SEPARATRIX_DEVICE 'gpu'"):
        given_to(1, told="gpu")
    with pytest.raises(InvalidInput, match="SEPARATRIX_CELLS_PER_GPU must be an integer of at least 1; got 0"):
        given_to(1, share=0)


def test_a_record_says_on_which_device_it_was_computed() -> None:
    record = compute_record(SHORT.cells(SHORT.params("smoke"))[0], {})
    assert record.provenance["device"] == device_words("cpu") == "cpu"


def test_a_place_is_taken_by_one_process_and_free_again_when_it_ends(tmp_path: Path) -> None:
    code = "from separatrix.lab.engines.worker_devices import _take; import sys\n"
    code += "print(_take('gpu.0'), flush=True); sys.stdin.read()"

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment(TMPDIR=str(tmp_path)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    first = started()
    assert answer(first) == "True"
    second = started()
    assert answer(second) == "False"
    first.kill()
    first.communicate()
    third = started()
    assert answer(third) == "True"
    for process in (second, third):
        process.kill()
        process.communicate()
