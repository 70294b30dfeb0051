from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from separatrix.lab import JobTable, Store, check_store, clear
from separatrix.lab.store import upkeep
from short_experiments import SHORT, run_inline

CELLS = SHORT.cells(SHORT.params("smoke"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store(tmp_path)
    run_inline(opened, (SHORT, SHORT.params("smoke"), "smoke"))
    return opened


def test_a_check_names_what_is_damaged_or_missing_and_changes_nothing(store: Store) -> None:
    assert check_store(store).ok
    first, second, third, _ = sorted(store.folder.glob("records/*/*.json"))
    first.write_text(first.read_text().replace("0.", "1."))
    second.unlink()
    third.unlink()
    third.symlink_to("/dev/zero")
    found = check_store(store)
    assert (found.ok, found.n_whole, set(found.damaged)) == (False, 1, {str(first), str(third)})
    assert found.missing == (second.stem,)
    assert first.exists()


def make_old(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (1e9, 1e9))
    return path


def test_only_what_nobody_needs_is_removed(store: Store) -> None:
    key = CELLS[0].key
    old = [
        make_old(store.path(key).with_name(f".{key}.1.tmp")),
        make_old(store.path(key).with_name(f"{key}.json.corrupt")),
        make_old(store.scratch / key),
        make_old(store.logs / f"{key}.log"),
    ]
    young = store.logs / f"{CELLS[1].key}.log"
    young.touch()
    JobTable(store).enqueue("elsewhere|0|1|0-a", [waiting := SHORT.cells(SHORT.params("paper"))[7]])
    needed = make_old(store.scratch / waiting.key)
    assert {str(store.folder / path) for path in clear(store, dry_run=True).paths} == {str(path) for path in old}
    assert all(path.exists() for path in old)
    assert clear(store).n_records == 0
    assert not any(path.exists() for path in old)
    assert young.exists()
    assert needed.exists()
    assert check_store(store).ok


def test_records_of_other_versions_go_when_asked(store: Store) -> None:
    assert clear(store, {"short": 1}).n_records == 0
    assert clear(store, {"short": 2}).n_records == 4
    assert store.keys() == set()
    assert check_store(store).ok


def test_a_clock_that_jumps_does_not_clear_what_is_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's log and the record it is writing look a year old; the cell is leased and its engine lives."""
    (cell,) = SHORT.cells(SHORT.params("smoke", n_cells=1))
    with Store(tmp_path) as store:
        jobs = JobTable(store)
        jobs.enqueue("us", [cell])
        jobs.take("us", "worker")
        writing = store.path(cell.key).with_name(f".{cell.key}.77.tmp")
        own, dead = store.logs / f"worker-{os.getpid()}-abc.log", store.logs / "worker-999999999-abc.log"
        for path in (writing, own, dead):
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
        jumped = time.time() + 400 * 86400
        monkeypatch.setattr(upkeep.time, "time", lambda: jumped)
        assert clear(store).paths == (f"logs/{dead.name}",)
    assert writing.exists()
    assert own.exists()
