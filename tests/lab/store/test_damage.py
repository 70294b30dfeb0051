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
