from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from separatrix.core import MissingData
from separatrix.lab import Record, Store, plan_run, publish, read_publication
from separatrix.lab.planning import Estimate
from separatrix.lab.store.costs import SECONDS_OF_SIZES, CostModel
from short_experiments import SHORT, run_inline


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def note(store: Store, scale: str, seconds: float) -> None:
    """Records of a run in which every cell took so long."""
    for cell in SHORT.cells(SHORT.params(scale)):
        store.write(Record(cell, {"mean": 0.0, "number": 1}, {"seconds": seconds, "memory": 2e8}))


def test_a_plan_counts_cells_and_tells_what_they_will_cost(store: Store) -> None:
    note(store, "smoke", 2.0)
    plan = plan_run(SHORT, SHORT.params("paper"), "paper", store)
    assert (plan.n_cells, plan.n_done) == (8, 4)  # those of the smaller scale are cells of the larger one
    assert plan.seconds is not None
    assert plan.seconds.low < 8.0 < plan.seconds.high
    assert plan.memory is not None
    assert plan.memory.typical == pytest.approx(2e8, rel=0.5)
    assert plan.source == "4 records of the store"
    assert plan.memory_warning() is None


def test_a_finished_run_costs_nothing(store: Store) -> None:
    note(store, "paper", 1.0)
    plan = plan_run(SHORT, SHORT.params("paper"), "paper", store)
    assert (plan.n_done, plan.seconds, plan.wall_seconds(2)) == (8, None, 0.0)


def test_a_copied_store_knows_what_is_done(store: Store, tmp_path: Path) -> None:
    """A copy has other times than those that were indexed."""
    note(store, "smoke", 2.0)
    for path in store.folder.glob("records/*/*.json"):
        os.utime(path, (1e9, 1e9))
    assert plan_run(SHORT, SHORT.params("paper"), "paper", store).n_done == 4
    next(store.folder.glob("records/*/*.json")).unlink()
    assert plan_run(SHORT, SHORT.params("paper"), "paper", store).n_done == 3


def test_a_cell_that_does_not_fit_is_told_before(store: Store) -> None:
    for cell in SHORT.cells(SHORT.params("smoke")):
        store.write(Record(cell, {}, {"seconds": 1.0, "memory": 1e15}))
    warning = plan_run(SHORT, SHORT.params("paper"), "paper", store).memory_warning()
    assert warning is not None
    assert warning.startswith("the largest cell of short at scale paper takes about 1")
    assert "e+06 GB, and this machine has" in warning


def test_without_any_measurement_a_plan_says_what_to_run(store: Store) -> None:
    with pytest.raises(MissingData, match="separatrix plan short_experiments:short --scale paper --measure 60s"):
        plan_run(SHORT, SHORT.params("paper"), "paper", store)
    with pytest.raises(MissingData, match="was ever measured"):
        plan_run(SHORT, SHORT.params("paper"), "paper", None)


def test_inline_runs_are_measured_too(store: Store) -> None:
    run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    assert plan_run(SHORT, SHORT.params("laptop"), "laptop", store).n_measured == 4


def test_sizes_that_never_varied_do_not_multiply(store: Store) -> None:
    """A cell of 2 steps took 0.1 s; one with a thousand times the steps and a hundred times everything else takes less
    than the product of all of them, which is a billion."""
    small = {"n_steps": 2, "n_test": 10, "n_curve": 10, "n_shapes": 10}
    model = CostModel([small] * 3, [0.1] * 3, SECONDS_OF_SIZES)
    (large,) = SHORT.cells(SHORT.params("smoke", n_cells=1))
    grown = dataclasses.replace(large, args={"n_steps": 2000, "n_test": 1000, "n_curve": 1000, "n_shapes": 1000})
    (typical,) = model.typical([grown])
    assert 1.0 < typical < 10_000.0
    (same,) = model.typical([dataclasses.replace(large, args=small)])
    assert same == pytest.approx(0.1, rel=1e-6)


def test_a_plan_from_cells_that_are_too_unlike_says_so(store: Store) -> None:
    note(store, "smoke", 2.0)
    near = plan_run(SHORT, SHORT.params("paper"), "paper", store)
    assert not near.is_guess
    far = dataclasses.replace(near, seconds=Estimate(1.0, 50.0, 101.0))
    assert far.is_guess


def test_a_published_run_without_records_tells_by_its_parameters(store: Store, tmp_path: Path) -> None:
    run_inline(store, (SHORT, SHORT.params("smoke"), "smoke"))
    publish([SHORT], store, tmp_path, scale="smoke")
    published = read_publication(tmp_path / "short.json", SHORT)
    published.provenance["seconds"] = 60.0
    with_records, without = (
        plan_run(SHORT, SHORT.params("laptop"), "laptop", None, dataclasses.replace(published, records=records))
        for records in (published.records, {})
    )
    assert without.seconds == with_records.seconds
    assert without.source == "the published run at scale smoke"
