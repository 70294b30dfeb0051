from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backwards_engine import BackwardsEngine
from command_line import OWN, Answer, command, environment, run_apart
from separatrix.lab import JobTable, Store
from short_experiments import SHORT

Cli = Callable[..., Answer]

FULL_AFTER_TWO_RECORDS = """
import errno, os, pathlib, stat
full, store, real = pathlib.Path({full!r}), pathlib.Path({store!r}), os.fsync
def fsync(handle):
    is_file = stat.S_ISREG(os.fstat(handle).st_mode)
    if is_file and full.exists() and len(list(store.glob("records/*/*.json"))) >= 2:
        raise OSError(errno.ENOSPC, "No space left on device")
    real(handle)
os.fsync = fsync
"""


def one_sentence(answer: Answer) -> str:
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("separatrix: ")
    assert answer.err.count("\n") == 1
    return answer.err


def digests(folder: Path) -> dict[str, str]:
    with Store(folder) as store:
        return dict(store.database.query("SELECT key, digest FROM records"))


def wait_for_records(folder: Path, count: int) -> None:
    """The suite's own limit ends a wait in vain."""
    while len(list(folder.glob("records/*/*.json"))) < count:
        time.sleep(0.02)


@pytest.mark.usefixtures("no_workers")
def test_a_run_prints_verdicts_and_a_second_one_computes_nothing(cli: Cli, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    words = ("run", OWN, "--jobs", 1, "--store", tmp_path, "--set", f"marks={marks}")
    first = cli(*words)
    assert first.code == 0
    assert "short (smoke): 4 of 4 cells" in first.out
    assert "refuted" in first.out
    assert cli(*words) == first
    assert len(marks.read_text().split()) == 4


@pytest.mark.usefixtures("no_workers")
def test_json_holds_the_whole_report(cli: Cli, tmp_path: Path) -> None:
    answer = cli("run", OWN, "-j", 1, "--json", "--seeds", "2", "--set", "n_cells=1", "--store", tmp_path)
    (report,) = json.loads(answer.out)
    assert report["params"]["seeds"] == [0, 1]
    assert report["n_done"] == report["n_cells"] == 2


def test_a_failed_cell_is_named_and_the_exit_code_is_1_and_resume_tries_again(cli: Cli, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    answer = cli("run", OWN, "-j", 1, "--store", tmp_path, "--set", "fail_at=1", "--set", f"marks={marks}")
    assert answer.code == 1
    first, where = answer.err.splitlines()
    assert first == "separatrix: short: 1 cell failed: ValueError: the cell was told to fail"
    assert where.startswith(f"separatrix: records: {tmp_path}")
    assert "3 of 4 cells" in answer.out
    Path(f"{marks}.mended").touch()
    assert "4 of 4 cells" in cli("resume", OWN, "--store", tmp_path).out
    assert "nothing to resume" in cli("resume", OWN, "--store", tmp_path).out


def test_an_unknown_experiment_gets_the_nearest_names(cli: Cli, tmp_path: Path) -> None:
    assert "unknown experiment 'altafini-fig'" in one_sentence(cli("run", "altafini-fig", "--store", tmp_path))
    assert "Did you mean 'short'" in one_sentence(cli("run", "short_experiments:shor", "--store", tmp_path))
    assert "set PYTHONPATH" in one_sentence(cli("run", "no_such_module:x", "--store", tmp_path))


def test_an_unknown_setting_gets_the_nearest_names(cli: Cli, tmp_path: Path) -> None:
    sentence = one_sentence(cli("run", OWN, "--set", "n_cels=3", "--store", tmp_path))
    assert "Did you mean 'n_cells'" in sentence


def test_a_value_of_the_wrong_type_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    assert "n_cells of short" in one_sentence(cli("run", OWN, "--set", "n_cells=many", "--store", tmp_path))


def test_an_unknown_scale_gets_the_nearest_name(cli: Cli, tmp_path: Path) -> None:
    assert "Did you mean 'smoke'" in one_sentence(cli("run", OWN, "--scale", "smok", "--store", tmp_path))


def test_names_and_all_exclude_each_other(cli: Cli) -> None:
    assert "or give --all" in one_sentence(cli("run"))
    assert "or give --all" in one_sentence(cli("run", OWN, "--all"))


def test_a_store_that_cannot_be_written_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "choose another folder with --store" in one_sentence(cli("run", OWN, "--store", tmp_path / "file"))


def test_a_store_of_a_newer_version_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / "index.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for words in (("run", OWN), ("resume", OWN), ("claims", OWN)):
        assert "made by a newer version of separatrix" in one_sentence(cli(*words, "--store", tmp_path))


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_the_run_can_be_resumed(cli: Cli, tmp_path: Path) -> None:
    full, store = tmp_path / "full", tmp_path / "store"
    (tmp_path / "sitecustomize.py").write_text(FULL_AFTER_TWO_RECORDS.format(full=str(full), store=str(store)))
    full.touch()
    env = environment(PYTHONPATH=str(tmp_path))
    sentence = one_sentence(run_apart("run", OWN, "--jobs", "1", "--store", str(store), env=env))
    assert "no space left" in sentence
    kept = digests(store)
    assert len(kept) == 2
    assert sorted(path.stem for path in store.glob("records/*/*")) == sorted(kept)
    full.unlink()
    assert cli("resume", OWN, "--jobs", 1, "--store", store).code == 0
    assert kept.items() <= digests(store).items()
    assert len(digests(store)) == 4


@pytest.mark.filterwarnings("always")  # as in a program of its own, where the command shows them
@pytest.mark.usefixtures("no_workers")
def test_an_edited_record_is_named_on_standard_error_and_computed_again(cli: Cli, tmp_path: Path) -> None:
    words = ("run", OWN, "--jobs", 1, "--store", tmp_path)
    cli(*words)
    before = digests(tmp_path)
    path = sorted(tmp_path.glob("records/*/*.json"))[0]
    path.write_text(path.read_text()[:-40])
    answer = cli(*words)
    assert answer.code == 0
    assert answer.err.startswith("separatrix: warning: the record")
    assert path.name in answer.err
    assert digests(tmp_path) == before


@dataclasses.dataclass(frozen=True)
class LongRun:
    """A run of six cells that cannot end before its gate is open, and what it gives when nothing happens to it."""

    gate: Path
    digests: dict[str, str]

    def start(self, folder: Path) -> subprocess.Popen[str]:
        self.gate.unlink()
        settings = ("--set", "n_cells=6", "--set", f"gate={self.gate}")
        return subprocess.Popen(
            command("run", OWN, "--jobs", "2", *settings, "--store", str(folder)),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> LongRun:
    folder = tmp_path_factory.mktemp("calm")
    gate = folder / "gate"
    gate.touch()
    with Store(folder / "store") as store:
        list(BackwardsEngine().run(SHORT.cells(SHORT.params("smoke", n_cells=6, gate=str(gate))), store, {}))
    return LongRun(gate, digests(folder / "store"))


def test_a_killed_run_resumes_with_the_same_records(cli: Cli, tmp_path: Path, long_run: LongRun) -> None:
    run = long_run.start(tmp_path / "killed")
    wait_for_records(tmp_path / "killed", 2)
    with Store(tmp_path / "killed") as store:
        workers = store.database.query("SELECT DISTINCT worker FROM jobs WHERE state = 'leased'")
    run.kill()
    run.communicate()
    for (worker,) in workers:
        assert_ends(int(worker.split("|")[-2]))
    assert len(digests(tmp_path / "killed")) == 2
    long_run.gate.touch()
    assert cli("resume", OWN, "--store", tmp_path / "killed").code == 0
    assert digests(tmp_path / "killed") == long_run.digests


def assert_ends(pid: int) -> None:
    """Wait until a worker has noticed that its run is gone; the suite's own limit ends a wait in vain."""
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.05)


@pytest.mark.parametrize(
    "kind", [signal.SIGINT, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (signal.SIGTERM, signal.SIGHUP))]
)
def test_an_interrupt_prints_the_command_that_continues(
    kind: signal.Signals, tmp_path: Path, long_run: LongRun
) -> None:
    """Every day one kind; that the engine takes all alike is tested in ``tests/lab/engines/test_local.py``."""
    folder = tmp_path / "stopped here"
    run = long_run.start(folder)
    wait_for_records(folder, 1)
    run.send_signal(kind)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 128 + kind
    assert err.count("\n") == 1
    assert "finished cells are kept. Continue with: " in err
    with Store(folder) as store:
        assert JobTable(store).states().keys() == {"done", "cancelled"}
    words = shlex.split(err.partition("Continue with: ")[2])  # as it must be typed
    assert words == [*command("resume", OWN, "--jobs", "2", "--store", str(folder))]
    long_run.gate.touch()
    assert subprocess.run(words, env=environment(), capture_output=True, check=False).returncode == 0
    assert digests(folder) == long_run.digests


@pytest.mark.slow
def test_two_runs_at_once_share_the_work(tmp_path: Path, long_run: LongRun) -> None:
    """As two people do; every day two engines in one process do, in ``tests/lab/engines/test_local.py``."""
    runs = [long_run.start(tmp_path)]
    long_run.gate.touch()
    runs.append(long_run.start(tmp_path))
    wait_for_records(tmp_path, 2)
    long_run.gate.touch()
    answers = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], answers
    with Store(tmp_path) as store:
        assert set(JobTable(store).starts().values()) == {1}
        assert len(store.keys()) == 6


@pytest.mark.usefixtures("no_workers")
def test_the_printed_command_gives_the_same_cells(cli: Cli, tmp_path: Path) -> None:
    cli("run", OWN, "--set", "n_cells=1", "--seeds", "5,", "--store", tmp_path)
    (shown,) = json.loads(cli("run", OWN, "--set", "n_cells=1", "--seeds", "5,", "--store", tmp_path, "--json").out)
    words = shlex.split(shown["command"])[1:]
    (again,) = json.loads(cli(*words, "--json", "--store", tmp_path).out)
    assert again == shown


def test_a_hung_cell_is_set_aside_and_told(cli: Cli, tmp_path: Path) -> None:
    own = "trouble_experiments:trouble"
    changes = ("--set", 'kinds=["sleep", "calm"]', "--set", "amount=600")
    answer = cli("run", own, "-j", 1, *changes, "--cell-timeout", "3s", "--store", tmp_path)
    assert answer.code == 1
    assert "trouble (smoke): 1 of 2 cells" in answer.out
    told = "separatrix: trouble: 1 cell failed: time limit: stopped because it ran longer than 3 s"
    assert answer.err.splitlines()[0] == told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--cell-timeout", "soon"), "--cell-timeout takes a time such as 90s, 20m or 2h; got 'soon'"),
        (("--cell-timeout", "-3"), "--cell-timeout takes a time"),
        (("--engine", "dsk"), "Did you mean 'dask'"),
        (("--address", "tcp://127.0.0.1:1"), "--address is for --engine dask"),
        (("--engine", "dask", "--address", "here"), "address must be like tcp://host:8786"),
        (("--jobs", "0"), "--jobs must be an integer of at least 1"),
        (("--jobs", "999999999"), "at most 10000"),
        (("--seeds", "1000000000000"), "at most 1000000 seeds"),
        (("--seeds", "0-99999999999999999999"), "--seeds takes a number of seeds"),
        (("--set", "n_cells=" + "[" * 100_000), "nested too deeply"),
    ],
)
def test_wrong_options_are_one_sentence_before_the_work(
    words: tuple[str, ...], sentence: str, cli: Cli, tmp_path: Path
) -> None:
    assert sentence in one_sentence(cli("run", OWN, *words, "--store", tmp_path / "store"))
    assert not (tmp_path / "store").exists()
