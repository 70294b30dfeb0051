"""Whether work of some size begins here: each way in which it may not is told apart from the others."""

from __future__ import annotations

from typing import Any

import pytest

from separatrix.cli.lookup import find_experiment
from separatrix.core import InvalidInput
from separatrix.lab import Cell, FirstStep, Limits, first_step, largest_cell
from short_experiments import SHORT
from trouble_experiments import TROUBLE


def begun(kind: str, amount: float, limits: Limits) -> FirstStep:
    (cell,) = TROUBLE.cells(TROUBLE.params("smoke", kinds=(kind,), amount=amount))
    return first_step(cell, limits)


def test_the_largest_cell_has_the_largest_product_of_sizes() -> None:
    sizes: list[dict[str, Any]] = [
        {"n": 100, "word": "x"},
        {"n": 20, "m": 30},
        {"n": 20, "list": [1] * 40, "share": 1e9},
        {"n": -5},
    ]
    cells = [Cell("e", 1, args, 0, "m:e") for args in sizes]
    assert largest_cell(cells) is cells[2]
    with pytest.raises(InvalidInput, match="at least one cell"):
        largest_cell([])


@pytest.mark.slow
def test_a_cell_that_asks_for_more_than_there_is_tells_how_much() -> None:
    found = begun("leak", 0.0, Limits(seconds=20, memory=3e8))
    assert found.outcome == "too large"
    assert not found.began
    assert found.memory is not None
    assert found.memory > 3e8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "amount", "outcome"),
    [
        ("calm", 0, "finished"),
        ("spin", 60, "at work"),
        ("gil", 60, "at work"),
        ("fail", 0, "fault"),
        ("die", 9, "fault"),
    ],
)
def test_every_end_has_its_word(kind: str, amount: float, outcome: str) -> None:
    found = begun(kind, amount, Limits(seconds=1.0))
    assert found.outcome == outcome
    assert bool(found.sentence) is (outcome == "fault")


@pytest.mark.slow
def test_a_cell_that_trains_is_ended_at_its_first_step() -> None:
    experiment = find_experiment("kerg7-fig3")
    found = first_step(largest_cell(experiment.cells(experiment.params("smoke"))))
    assert found.outcome == "made a step"


@pytest.mark.slow
def test_what_refuses_itself_is_no_fault() -> None:
    (cell,) = SHORT.cells(SHORT.params("smoke", n_cells=1, fail_at=0))
    assert first_step(cell).outcome == "fault"
    with pytest.raises(InvalidInput, match="main program"):
        first_step(Cell("e", 1, {}, 0, "__main__:e"))
