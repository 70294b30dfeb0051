from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from separatrix.lab import Cell, Record, Store, report_from_store, run_experiments
from separatrix.lab.engines.progress import RunProgress
from separatrix.lab.store import gathering
from separatrix.lab.store.gathering import Gathering, Results
from short_experiments import SHORT, InlineEngine, run_inline

ORIGIN = {"package_version": "1", "code": "c", "seed": 0, "machine": {}, "data": {}, "time": "now", "seconds": 1.0}
PAYLOADS: list[dict[str, Any]] = [
    {"value": 1.5, "text": "ü"},
    {"array": numpy.arange(3.0), "inside": [float("inf"), {"__float__": "mine"}]},
    {"value": 10**20},
]
RECORDS = [Record(Cell("e", 1, {"n": n}, 0, "m:e"), payload, ORIGIN) for n, payload in enumerate(PAYLOADS)]


@pytest.mark.parametrize("held", [10, 0])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_results_come_in_the_order_of_cells_whatever_order_they_were_put_in(
    monkeypatch: pytest.MonkeyPatch, held: int, order: tuple[int, ...]
) -> None:
    monkeypatch.setattr(gathering, "HELD", held)
    results = Results(3)
    for position in order:
        results.put(position, RECORDS[position])
        results.put(position, RECORDS[0])  # told twice
    assert (len(results), results.n_present) == (3, 3)
    for _ in range(2):  # as often as one likes
        assert [cell.args["n"] for cell, _ in results] == [0, 1, 2]
    numpy.testing.assert_equal([payload for _, payload in results], PAYLOADS)
    assert results[-1][1] == PAYLOADS[2]
    assert [cell for cell, _ in results[1:]] == [record.cell for record in RECORDS[1:]]
    assert results[0][0] == RECORDS[0].cell
    with pytest.raises(IndexError):
        results[3]


def test_long_results_are_put_down_while_they_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "HELD_CHARACTERS", len(RECORDS[0].to_text()) + 10)
    results = Results(3)
    for position, record in enumerate(RECORDS):
        results.put(position, record)
    assert results._held is None
    numpy.testing.assert_equal([payload for _, payload in results], PAYLOADS)


def test_a_run_reads_each_record_once_while_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it was there before; after the last cell nothing is left to read."""
    store = Store(tmp_path)
    run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    taken: list[int] = []
    take, read = Gathering._put, Store._read
    monkeypatch.setattr(Gathering, "_put", lambda self, at, record: (taken.append(at), take(self, at, record))[1])
    reads: list[str] = []
    monkeypatch.setattr(Store, "_read", lambda self, key, row: (reads.append(key), read(self, key, row))[1])
    last: list[int] = []

    class Watched(InlineEngine):
        def run(self, *args: Any) -> Any:
            yield from super().run(*args)
            last.append(len(taken))

    with RunProgress(quiet=True) as progress:
        (report,) = run_experiments([(SHORT, SHORT.params("paper"), "paper")], store, Watched(), progress)
    assert sorted(taken) == list(range(8))
    assert last == [8]
    assert report.complete
    again = report_from_store(SHORT, SHORT.params("paper"), "paper", store)
    assert again.summary == report.summary
    assert again.provenance == report.provenance


def test_a_record_that_is_changed_while_a_run_goes_on_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)

    class Meddled(InlineEngine):
        def run(self, cells: Any, store: Store, data: Any) -> Any:
            yield from super().run(cells, store, data)
            record = store.read(cells[0].key)
            assert record is not None
            store.write(Record(record.cell, {**record.payload, "mean": 7.0}, record.provenance))

    with RunProgress(quiet=True) as progress:
        (report,) = run_experiments([(SHORT, SHORT.params("smoke"), "smoke")], store, Meddled(), progress)
    plain = report_from_store(SHORT, SHORT.params("smoke"), "smoke", store)
    assert report.summary == plain.summary
    assert report.summary is not None
    assert report.summary.to_dict()["tables"]["means"][0]["mean"] == 7.0
