"""The documents' own sizes: every experiment expands at them, and its largest cell begins here or is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from separatrix.cli.lookup import find_experiments
from separatrix.lab import Limits, first_step, largest_cell
from separatrix.lab.experiment.scales import SCALES

EXPERIMENTS = {experiment.name: experiment for experiment in find_experiments(None)}
MISSING = ("DatasetUnavailable", "MissingExtra")
TABLE = Path(__file__).parents[2] / "benchmarks" / "results" / "first_steps.json"


def test_every_experiment_expands_at_every_scale() -> None:
    for experiment in EXPERIMENTS.values():
        for scale in SCALES:
            cells = experiment.cells(experiment.params(scale))
            assert len({cell.key for cell in cells}) == len(cells) > 0, experiment.name


def test_the_table_of_first_steps_tells_of_no_fault() -> None:
    """Made by ``benchmarks/first_steps.py``, which begins the largest cell of every experiment."""
    rows = json.loads(TABLE.read_text(encoding="utf-8"))["experiments"]
    began = ("finished", "made a step", "at work")
    for name, row in rows.items():
        missing = row["outcome"] == "refused" and row["said"].startswith(MISSING)
        assert row["outcome"] in (*began, "too large") or missing, (name, row)
    assert len(rows.keys() & EXPERIMENTS.keys()) > 90


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_the_largest_cell_at_the_documents_size_begins_or_says_why_not(name: str) -> None:
    """It ends, makes a step, works until its time is over, or is too large and says so: never a crash."""
    experiment = EXPERIMENTS[name]
    found = first_step(largest_cell(experiment.cells(experiment.params("paper"))), Limits(20, 6e9))
    assert found.began or found.outcome == "too large" or found.sentence.startswith(MISSING), found
