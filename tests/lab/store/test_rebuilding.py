from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from separatrix.core import StoreError
from separatrix.lab import Store, StoreWarning, best_report, rebuild, stored_runs
from separatrix.lab.store.database import STORE_FORMAT
from short_experiments import SHORT, run_inline


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a complete run."""
    with Store(tmp_path / "a store, ü") as store:
        run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    return store.folder


def lose_index(folder: Path) -> None:
    for file in folder.glob("index.sqlite*"):
        file.unlink()


def test_a_lost_index_forgets_no_run(folder: Path) -> None:
    with Store(folder) as store:
        before = stored_runs(store, SHORT), store.keys(), best_report(SHORT, store)
    lose_index(folder)
    with pytest.warns(StoreWarning, match="made from 4 records"):
        Store(folder).close()
    with Store(folder) as store:
        assert (stored_runs(store, SHORT), store.keys()) == before[:2]
        assert best_report(SHORT, store) == before[2]


def test_a_damaged_index_is_replaced_and_kept(folder: Path) -> None:
    (folder / "index.sqlite").write_bytes(b"nonsense" * 1000)
    assert rebuild(folder) == 4
    assert (folder / "index.sqlite.old").read_bytes().startswith(b"nonsense")
    with Store(folder) as store:
        assert best_report(SHORT, store) is not None
    with pytest.raises(StoreError, match="no records"):
        rebuild(folder / "none")


def test_what_is_no_record_is_named_and_left(folder: Path) -> None:
    lose_index(folder)
    broken, *_ = sorted(folder.glob("records/*/*.json"))
    broken.write_text("{" * 100_000)
    os.mkfifo(folder / "records" / "pipe.json")
    pipe = broken.with_name("0" * 64 + ".json")
    os.mkfifo(pipe)
    with pytest.warns(StoreWarning) as warned, Store(folder) as store:
        assert len(store.keys()) == 3
    named = [str(entry.message) for entry in warned]
    assert any(str(broken) in text for text in named)
    assert any(str(pipe) in text and "no regular file" in text for text in named)


def test_a_store_of_the_first_format_is_brought_up_to_date(folder: Path) -> None:
    make_first_format(folder)
    with Store(folder, read_only=True) as store:
        assert best_report(SHORT, store) is not None
    with pytest.warns(StoreWarning, match="made from 4 records"):
        Store(folder).close()
    with Store(folder) as store:
        assert best_report(SHORT, store) is not None
        assert len(store.unchanged(sorted(store.keys()))) == 4
    assert len(list((folder / "runs").glob("*.json"))) == 1


def make_first_format(folder: Path) -> None:
    """The index as the first version of the package left it, and no files of runs."""
    for file in (folder / "runs").iterdir():
        file.unlink()
    connection = sqlite3.connect(folder / "index.sqlite")
    for statement in (
        "DROP TABLE reports",
        "DROP INDEX records_by_experiment",
        *(f"ALTER TABLE records DROP COLUMN {name}" for name in ("size", "changed", "seconds", "memory", "args")),
        "ALTER TABLE jobs DROP COLUMN beat",
        "ALTER TABLE jobs ADD COLUMN expires REAL",
        "ALTER TABLE runs DROP COLUMN code",
        "DROP TABLE wants",
        "CREATE TABLE wants (session TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 0",
    ):
        connection.execute(statement)
    connection.commit()
    connection.close()
    assert STORE_FORMAT == 2


@pytest.fixture
def locked(folder: Path) -> Iterator[Path]:
    """The store on a disk that nobody can write, where the system lets us make one; else closed by permissions."""
    mounted = subprocess.run(["mount", "--bind", "-o", "ro", folder, folder], capture_output=True, check=False)
    if mounted.returncode == 0:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], capture_output=True, check=False)
    else:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        (folder / "trial").touch()
    except OSError:
        yield folder
    else:
        pytest.skip("no folder can be closed to this user")
    if mounted.returncode == 0:
        subprocess.run(["umount", folder], check=True)
    else:
        folder.chmod(0o755)


def test_a_read_only_store_can_be_read(locked: Path) -> None:
    with Store(locked, read_only=True) as store:
        report = best_report(SHORT, store)
    assert report is not None
    assert report.complete
    with pytest.raises(StoreError, match=r"cannot be|read-only|readonly"):
        Store(locked)


def test_a_read_only_store_without_an_index_can_be_read(folder: Path) -> None:
    lose_index(folder)
    before = sorted(folder.rglob("*"))
    with pytest.warns(StoreWarning, match="made from 4 records"), Store(folder, read_only=True) as store:
        assert best_report(SHORT, store) is not None
    assert sorted(folder.rglob("*")) == before


def test_looking_changes_nothing_not_even_what_is_damaged(folder: Path) -> None:
    path, *_ = sorted(folder.glob("records/*/*.json"))
    path.write_text(path.read_text()[:-40])
    with pytest.warns(StoreWarning, match="is not what was written"), Store(folder, read_only=True) as store:
        assert store.read(path.stem) is None
    assert path.exists()


def test_a_store_needs_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="needs the name of a folder"):
        Store("")
    with pytest.raises(StoreError, match="NUL"):
        Store("a\0b")
    with pytest.raises(StoreError, match="there is no store in"):
        Store("typo", read_only=True)
    assert list(tmp_path.iterdir()) == []
