"""What every engine promises. Enter an engine by one line in ``ENGINES``."""

from __future__ import annotations

import dataclasses
import io
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from backwards_engine import BackwardsEngine
from coin_experiment import COINS
from dask_clusters import shared_cluster
from separatrix.lab import (
    AbstractEngine,
    Cell,
    DaskEngine,
    Finished,
    LocalEngine,
    Record,
    RunInterrupted,
    RunProgress,
    Store,
    compute_record,
    run_experiments,
)
from short_experiments import SHORT

ENGINES: dict[str, Callable[[], AbstractEngine]] = {
    "local": lambda: LocalEngine(2),
    "dask": lambda: DaskEngine(shared_cluster()),
    "a stranger's": BackwardsEngine,
}


@pytest.fixture(params=ENGINES.values(), ids=ENGINES.keys(), scope="module")
def engine(request: pytest.FixtureRequest) -> AbstractEngine:
    return request.param()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as opened:
        yield opened


@dataclasses.dataclass(frozen=True)
class CalmRun:
    """A run to which nothing happens, of cells that need no data and of one that does."""

    cells: list[Cell]
    with_data: Cell
    ended: list[Finished]
    store: Store


@pytest.fixture(scope="module")
def calm(engine: AbstractEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CalmRun]:
    cells, (with_data,) = coins(), SHORT.cells(SHORT.params("smoke", n_cells=1))
    with Store(tmp_path_factory.mktemp("calm")) as opened:
        ended = list(engine.run([*cells, with_data], opened, {"mnist": "abc"}))
        yield CalmRun(cells, with_data, ended, opened)


def coins(**changes: object) -> list[Cell]:
    return COINS.cells(COINS.params("smoke", seeds=(0, 1), **changes))


def read(store: Store, cell: Cell) -> Record:
    record = store.read(cell.key)
    assert record is not None
    return record


def test_every_cell_ends_once_and_has_a_record(calm: CalmRun) -> None:
    cells = [*calm.cells, calm.with_data]
    assert sorted(finished.key for finished in calm.ended) == sorted(cell.key for cell in cells)
    assert {finished.error for finished in calm.ended} == {None}
    assert [read(calm.store, cell).cell for cell in cells] == cells
    assert calm.store.keys() == {cell.key for cell in cells}


def test_records_are_those_of_the_cells_bit_for_bit(calm: CalmRun) -> None:
    cells = [*calm.cells, calm.with_data]
    assert [read(calm.store, cell).digest for cell in cells] == [compute_record(cell, {}).digest for cell in cells]


def test_a_digest_of_a_data_set_reaches_the_records(calm: CalmRun) -> None:
    assert read(calm.store, calm.with_data).provenance["data"] == {"mnist": "abc", "ptb": "not recorded"}


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
