"""The documents' own sizes: every experiment expands at them, and its largest cell begins here or is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from separatrix.cli.lookup import find_experiments
from separatrix.lab import Cell, Limits, LocalEngine, Store
from separatrix.lab.experiment.scales import SCALES

EXPERIMENTS = {experiment.name: experiment for experiment in find_experiments(None)}
LIMITS = Limits(seconds=20, memory=6e9)


def size(cell: Cell) -> float:
    """The logarithm of the product of all counts and sizes among its arguments."""
    numbers = [value for value in cell.args.values() if isinstance(value, int) and value > 1]
    return sum(map(math.log, numbers)) + sum(math.log(len(value)) for value in cell.args.values() if _is_list(value))


def _is_list(value: object) -> bool:
    return isinstance(value, list) and len(value) > 1


def test_every_experiment_expands_at_every_scale() -> None:
    for experiment in EXPERIMENTS.values():
        for scale in SCALES:
            cells = experiment.cells(experiment.params(scale))
            assert len({cell.key for cell in cells}) == len(cells) > 0, experiment.name


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_the_largest_cell_at_the_documents_size_runs_or_says_why_not(name: str, tmp_path: Path) -> None:
    """It ends, works until its time is over, or is stopped at its memory: never a crash, never a full machine."""
    experiment = EXPERIMENTS[name]
    largest = max(experiment.cells(experiment.params("paper")), key=size)
    with Store(tmp_path) as store:
        (finished,) = LocalEngine(1, limits=LIMITS).run([largest], store, {})
    if finished.error is not None:
        first = finished.error.splitlines()[0]
        expected = ("time limit: stopped because it ran longer than 20 s", "memory limit: stopped because it held more")
        assert first.startswith(expected) or first.split(":")[0] in ("DatasetUnavailable", "MissingData"), first
