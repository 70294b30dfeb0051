from __future__ import annotations

import os
from pathlib import Path

import pytest

from separatrix.lab import Store, StoreWarning, best_report, run_experiments
from separatrix.lab.engines.progress import RunProgress
from separatrix.lab.store import condensed, runs
from short_experiments import NAN, SHORT, InlineEngine, run_inline

REQUEST = (SHORT, SHORT.params("smoke"), "smoke")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store(tmp_path)
    run_inline(opened, REQUEST)
    return opened


def reads(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of the records that are read from now on."""
    seen: list[str] = []
    read = Store._read
    monkeypatch.setattr(Store, "_read", lambda self, key, row: (seen.append(key), read(self, key, row))[1])
    return seen


def test_a_finished_run_is_reported_without_reading_a_record(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = best_report(SHORT, store)
    seen, engine = reads(store, monkeypatch), InlineEngine()
    monkeypatch.setattr(type(SHORT), "cells", lambda self, params: pytest.fail("expanded again"))
    with RunProgress(quiet=True) as progress:
        (again,) = run_experiments([REQUEST], store, engine, progress)
    assert seen == engine.computed == []
    assert before is not None
    assert again.summary == before.summary
    assert again.judgements == before.judgements
    assert again.provenance == before.provenance
    assert len(again.cells) == 4


def test_a_touched_record_is_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path, *_ = sorted(store.folder.glob("records/*/*.json"))
    os.utime(path, (1e9, 1e9))
    seen = reads(store, monkeypatch)
    run_inline(store, REQUEST)
    assert path.stem in seen
    seen.clear()
    run_inline(store, REQUEST)
    assert seen == []  # it was what had been written, and is known again


def test_an_edited_record_is_computed_again(store: Store) -> None:
    path, *_ = sorted(store.folder.glob("records/*/*.json"))
    path.write_text(path.read_text().replace("0.", "1."))
    engine = InlineEngine()
    with pytest.warns(StoreWarning, match="not what was written"):
        run_inline(store, REQUEST, engine=engine)
    assert engine.computed == [path.stem]


def test_other_code_makes_the_summary_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (condensed, runs):
        monkeypatch.setattr(module, "code_state", lambda name: "other code")
    seen = reads(store, monkeypatch)
    assert best_report(SHORT, store) is not None
    assert len(seen) == 4


def test_what_does_not_read_back_the_same_is_not_kept(store: Store) -> None:
    run_inline(store, (NAN, NAN.params("smoke"), "smoke"))
    kept = [run for (run,) in store.database.query("SELECT run FROM reports")]
    assert kept == [runs.run_name(*(REQUEST[0], REQUEST[2], REQUEST[1]))]
