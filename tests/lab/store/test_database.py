"""Stores that something went over: every command that looks ends in one sentence that names the way out."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from separatrix.core import CorruptData, StoreError
from separatrix.lab import Store, best_report, plan_run, rebuild, unfinished_runs
from separatrix.lab.store.database import Database
from separatrix.lab.store.runs import run_from_body
from short_experiments import SHORT, run_inline

REQUEST = (SHORT, SHORT.params("smoke"), "smoke")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Store(tmp_path) as store:
        run_inline(store, REQUEST)
    return tmp_path


def altered(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / "index.sqlite") as connection:
        connection.execute(statement)
    connection.close()


def refusal(look: Callable[[Store], object], store: Store) -> str:
    """What a look at the store is refused with; nothing where it does not meet the damage."""
    try:
        look(store)
    except StoreError as error:
        return str(error)
    return ""


LOOKS: dict[str, Callable[[Store], object]] = {
    "report": lambda store: best_report(SHORT, store),
    "resume": lambda store: unfinished_runs([SHORT], store),
    "run": lambda store: run_inline(store, REQUEST),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET params = '[1', keys = '{'",
        "UPDATE runs SET params = '{}', keys = '[1, null]'",
        "UPDATE runs SET scale = 'huge', keys = '[\"../../x\"]'",
        'UPDATE runs SET keys = \'["../../../etc/passwd", "", 7]\'',
    ],
)
def test_a_run_that_is_none_is_a_damaged_index_which_can_be_rebuilt(folder: Path, statement: str, look: str) -> None:
    altered(folder, statement)
    with Store(folder) as store:
        said = refusal(LOOKS[look], store)
    assert not said or ("is damaged" in said and "separatrix store rebuild --store" in said)
    assert rebuild(folder) == 4
    with Store(folder) as store:
        report = best_report(SHORT, store)
    assert report is not None
    assert report.complete


def test_what_was_condensed_and_costs_that_are_none_are_passed_over(folder: Path) -> None:
    with Store(folder) as store:
        before = best_report(SHORT, store)
    altered(folder, "UPDATE reports SET body = '{\"summary\": 3}'")
    altered(
        folder, "UPDATE records SET args = '[', seconds = 'x', memory = -1 WHERE key = (SELECT min(key) FROM records)"
    )
    with Store(folder) as store:
        again = best_report(SHORT, store)
        assert plan_run(SHORT, SHORT.params("laptop"), "laptop", store).n_measured == 3
    assert before is not None
    assert again is not None
    assert again.summary == before.summary


def test_an_index_that_is_a_pipe_is_not_waited_for(folder: Path) -> None:
    (folder / "index.sqlite").unlink()
    os.mkfifo(folder / "index.sqlite")
    for read_only in (False, True):
        with pytest.raises(StoreError, match="is no file that can be an index"):
            Store(folder, read_only=read_only)
    assert rebuild(folder) == 4


def test_a_run_of_others_whose_keys_lead_elsewhere_is_not_taken(folder: Path) -> None:
    (path,) = folder.glob("runs/*.json")
    body = json.loads(path.read_text())
    body["keys"][0] = "../../../home/me/notes"
    with pytest.raises(CorruptData, match="a key of a cell is none"):
        run_from_body(json.dumps(body).encode(), "theirs")


def test_a_rebuild_that_fails_leaves_the_index_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(store: Store) -> None:
        raise StoreError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("separatrix.lab.store.rebuilding.cover_files", full)
        with pytest.raises(StoreError, match="no space left"):
            rebuild(folder)
    with Store(folder, read_only=True) as store:
        assert len(store.keys()) == 4


def test_a_full_disk_is_told_as_such_when_the_index_cannot_be_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite speaks of an error of the disk when there is no room for the file beside its index."""
    with Store(folder) as store:
        error = sqlite3.OperationalError("disk I/O error")
        assert "cannot be used: disk I/O error" in str(store.database._problem(error))
        monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 0}))
        assert "no space left on the disk of the store" in str(store.database._problem(error))


def test_a_group_may_share_an_index(tmp_path: Path) -> None:
    """SQLite by itself lets nobody but the owner write, whatever the mask of the user."""
    before = os.umask(0o002)
    try:
        Database(tmp_path / "index.sqlite").close()
    finally:
        os.umask(before)
    assert (tmp_path / "index.sqlite").stat().st_mode & 0o777 == 0o664


def test_the_index_of_another_user_is_read_without_leaving_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index.sqlite"
    Database(path).close()
    monkeypatch.setattr(os, "access", lambda place, mode: not (mode & os.W_OK))
    reading = Database(path, read_only=True)
    assert reading.query("SELECT count(*) FROM records") == [(0,)]
    assert [found.name for found in tmp_path.iterdir()] == ["index.sqlite"]
    reading.close()
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(PermissionError()))
    with pytest.raises(
        StoreError, match="may be read but not written by this user; ask its owner to open it to a group"
    ):
        Database(path)
