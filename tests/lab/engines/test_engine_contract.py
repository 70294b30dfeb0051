"""What every engine promises. Enter an engine by one line in ``ENGINES``."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from coin_experiment import COINS
from dask_clusters import shared_cluster
from separatrix.lab import (
    AbstractEngine,
    Cell,
    DaskEngine,
    Finished,
    JobTable,
    LocalEngine,
    Record,
    RunInterrupted,
    RunProgress,
    Store,
    compute_record,
    counted_interrupts,
    explain_failure,
    run_experiments,
)
from short_experiments import SHORT


class BackwardsEngine(AbstractEngine):
    """A stranger's engine: this process alone, last cell first."""

    def run(self, cells: Sequence[Cell], store: Store, data: Mapping[str, str]) -> Iterator[Finished]:
        jobs, session = JobTable(store), f"backwards|{os.getpid()}|0"
        jobs.enqueue(session, cells[::-1])
        n_done = 0
        with counted_interrupts() as interrupts:
            try:
                while (lease := jobs.take(session, session)) is not None:
                    if interrupts:
                        jobs.give_back(lease)
                        raise RunInterrupted(n_done, len(cells))
                    try:
                        jobs.finish(lease, compute_record(lease.cell, data))
                    except ValueError as error:
                        jobs.fail(lease, explain_failure(error))
                    for key, error_text in jobs.collect(session):
                        n_done += 1
                        yield Finished(key, error_text)
            finally:
                jobs.leave(session)


ENGINES: dict[str, Callable[[], AbstractEngine]] = {
    "local": lambda: LocalEngine(2),
    "dask": lambda: DaskEngine(shared_cluster()),
    "a stranger's": BackwardsEngine,
}


@pytest.fixture(params=ENGINES.values(), ids=ENGINES.keys())
def engine(request: pytest.FixtureRequest) -> AbstractEngine:
    return request.param()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as opened:
        yield opened


def coins(**changes: object) -> list[Cell]:
    return COINS.cells(COINS.params("smoke", seeds=(0, 1), **changes))


def read(store: Store, cell: Cell) -> Record:
    record = store.read(cell.key)
    assert record is not None
    return record


def test_every_cell_ends_once_and_has_a_record(engine: AbstractEngine, store: Store) -> None:
    cells = coins()
    ended = list(engine.run(cells, store, {}))
    assert sorted(finished.key for finished in ended) == sorted(cell.key for cell in cells)
    assert {finished.error for finished in ended} == {None}
    assert [read(store, cell).cell for cell in cells] == cells
    assert store.keys() == {cell.key for cell in cells}


def test_records_are_those_of_the_cells_bit_for_bit(engine: AbstractEngine, store: Store) -> None:
    cells = coins()
    list(engine.run(cells, store, {}))
    assert [read(store, cell).digest for cell in cells] == [compute_record(cell, {}).digest for cell in cells]


def test_a_digest_of_a_data_set_reaches_the_records(engine: AbstractEngine, store: Store) -> None:
    cells = SHORT.cells(SHORT.params("smoke", n_cells=1))
    list(engine.run(cells, store, {"mnist": "abc"}))
    assert read(store, cells[0]).provenance["data"] == {"mnist": "abc", "ptb": "not recorded"}


def test_a_failure_is_told_of_its_cell_alone(engine: AbstractEngine, store: Store) -> None:
    cells = coins(bad_coin=0.5)
    ended = {finished.key: finished.error for finished in engine.run(cells, store, {})}
    assert set(ended) == {cell.key for cell in cells}
    for cell in cells:
        error = ended[cell.key]
        if cell.args["chance"] == 0.5:
            assert error is not None
            assert error.startswith("ValueError: the coin is bent\n")
            assert "coin_experiment.py" in error
            assert store.read(cell.key) is None
        else:
            assert error is None
            assert read(store, cell).payload["heads"] > 0


def test_an_interrupt_keeps_finished_cells_and_another_run_computes_the_rest(
    engine: AbstractEngine, store: Store
) -> None:
    cells = SHORT.cells(SHORT.params("smoke", n_cells=200, pause=0.05))  # ten seconds: none ends before the interrupt
    ended: list[Finished] = []

    def run_until_interrupted() -> None:
        for finished in engine.run(cells, store, {}):
            ended.append(finished)
            if len(ended) == 1:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(RunInterrupted, match=r"of 200 cells; finished cells are kept") as stopped:
        run_until_interrupted()
    kept = store.keys()
    assert stopped.value.n_done == len(ended) == len(kept) < 200
    missing = [cell for cell in cells if cell.key not in kept][:3]
    assert {finished.key for finished in engine.run(missing, store, {})} == {cell.key for cell in missing}
    assert len(store.keys()) == len(kept) + 3


def test_the_display_counts_what_ends(engine: AbstractEngine, store: Store) -> None:
    text = io.StringIO()
    params = COINS.params("smoke", bad_coin=0.5)
    with RunProgress(False, Console(file=text, force_terminal=True, width=160)) as progress:
        (report,) = run_experiments([(COINS, params, "smoke")], store, engine, progress)
    assert "3/3" in text.getvalue()
    assert "1 failed" in text.getvalue()
    assert (report.n_done, len(report.failures)) == (2, 1)
