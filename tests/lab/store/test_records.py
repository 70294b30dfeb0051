from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from separatrix.core.errors import StoreError
from separatrix.lab import Cell, JobTable, Record, Store, StoreWarning, default_folder
from separatrix.lab.store import database as database_module
from separatrix.lab.store.database import STORE_FORMAT


def record(number: int = 0, **provenance: object) -> Record:
    return Record(Cell("short", 1, {"number": number}, 0, "m:short"), {"x": number / 3}, provenance)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.write(record())
    with Store(tmp_path) as store:
        assert store.read(record().cell.key) == record()
        assert store.keys() == {record().cell.key}


def test_an_unknown_key_has_no_record(tmp_path: Path) -> None:
    assert Store(tmp_path).read("ab" * 32) is None


@pytest.mark.parametrize("change", [lambda text: text[:-30], lambda text: text.replace("0.33", "0.34"), lambda _: ""])
def test_a_truncated_or_edited_record_is_named_set_aside_and_not_trusted(tmp_path: Path, change) -> None:
    store = Store(tmp_path)
    store.write(record(1))
    path = store.path(record(1).cell.key)
    path.write_text(change(path.read_text()))
    with pytest.warns(StoreWarning, match=path.name):
        assert store.read(record(1).cell.key) is None
    assert not path.exists()
    assert path.with_name(path.name + ".corrupt").exists()
    assert store.keys() == set()
    store.write(record(1))
    assert store.read(record(1).cell.key) == record(1)


def test_an_edited_provenance_is_noticed_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(record(machine="mine"))
    path = store.path(record().cell.key)
    path.write_text(path.read_text().replace("mine", "ours"))
    with pytest.warns(StoreWarning, match="truncated or edited"):
        assert store.read(record().cell.key) is None


def test_bytes_that_are_no_text_are_set_aside(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.path(record().cell.key)
    path.parent.mkdir()
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.warns(StoreWarning, match="is not text"):
        assert store.read(record().cell.key) is None


def test_a_record_under_another_name_is_set_aside(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(record(1))
    path = store.path(record(2).cell.key)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(store.path(record(1).cell.key).read_bytes())
    with pytest.warns(StoreWarning, match="belongs to another cell"):
        assert store.read(record(2).cell.key) is None


def test_a_missing_file_is_named_and_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(record())
    store.path(record().cell.key).unlink()
    with pytest.warns(StoreWarning, match="is missing; it will be computed again"):
        assert store.read(record().cell.key) is None
    assert store.keys() == set()


def test_records_survive_the_loss_of_the_index(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.write(record())
    for file in tmp_path.glob("index.sqlite*"):
        file.unlink()
    with pytest.warns(StoreWarning, match="made from 1 records"):
        store = Store(tmp_path)
    assert store.read(record().cell.key) == record()
    assert store.keys() == {record().cell.key}


def test_a_damaged_index_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match=r"index.sqlite is damaged .* separatrix store rebuild --store"):
        Store(tmp_path)


def test_a_store_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "index.sqlite")
    connection.execute(f"PRAGMA user_version = {STORE_FORMAT + 1}")
    connection.close()
    with pytest.raises(StoreError, match="made by a newer version of separatrix"):
        Store(tmp_path)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot be written: .*choose another folder with --store"):
        Store(tmp_path / "file")


def test_a_full_disk_leaves_nothing_under_the_final_name_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.write(record(1))

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"no space left .* finished records are kept"):
        store.write(record(2))
    assert store.read(record(1).cell.key) == record(1)
    assert [path.name for path in tmp_path.rglob("records/*/*")] == [f"{record(1).cell.key}.json"]


def test_a_full_disk_under_the_index_is_the_same_sentence(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.database.transaction() as connection:
        ((pages,),) = connection.execute("PRAGMA page_count").fetchall()
        connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite reports a full disk beyond it
    big = Record(Cell("short", 1, {}, 0, "m:" + "x" * 100_000), {}, {})
    with pytest.raises(StoreError, match="no space left"):
        JobTable(store).enqueue("here|1|2", [big.cell])


def test_left_overs_of_killed_writers_disappear(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.path(record().cell.key)
    path.parent.mkdir()
    path.with_name(f".{path.stem}.12345.tmp").write_text("half a rec")
    store.write(record())
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_where_the_write_ahead_log_is_refused_a_warning_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def without_shared_memory(path: Path, uri: bool, **options: object) -> sqlite3.Connection:
        return connect(f"file:{path}?vfs=unix-dotfile", uri=True, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(database_module.sqlite3, "connect", without_shared_memory)
    with pytest.warns(StoreWarning, match="refuses SQLite's write-ahead log"):
        store = Store(tmp_path)
    store.write(record())
    assert store.read(record().cell.key) == record()


def test_a_failed_transaction_leaves_no_trace(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fail_halfway() -> None:
        with store.database.transaction() as connection:
            connection.execute(
                "INSERT INTO records (key, experiment, version, digest, sha256) VALUES ('k', 'e', 1, 'd', 's')"
            )
            raise KeyError

    with pytest.raises(KeyError):
        fail_halfway()
    assert store.keys() == set()


def test_reading_commands_can_ask_whether_there_is_a_store(tmp_path: Path) -> None:
    assert not Store.exists(tmp_path)
    Store(tmp_path).close()
    assert Store.exists(tmp_path)


def test_the_default_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder().name == "separatrix"
