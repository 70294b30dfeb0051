from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from separatrix.core import InvalidInput
from separatrix.lab import (
    JobTable,
    LocalEngine,
    RunInterrupted,
    Span,
    Store,
    WithinBudget,
    sweep_points,
    sweep_requests,
    swept,
)
from short_experiments import SHORT, InlineEngine, run_inline


def test_a_grid_is_every_combination_in_order() -> None:
    points = sweep_points({"a": (1, 2), "b": ("x", "y")})
    assert points == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]


def test_random_points_are_distinct_within_their_spans_and_repeatable() -> None:
    axes: dict[str, Any] = {"a": Span(1e-4, 1.0, logarithmic=True), "n": Span(2.0, 9.0, whole=True), "w": ("x", "y")}
    points = sweep_points(axes, 40, seed=3)
    assert points == sweep_points(axes, 40, seed=3) != sweep_points(axes, 40, seed=4)
    assert len({repr(point) for point in points}) == 40
    assert all(1e-4 <= point["a"] <= 1 and point["n"] in range(2, 10) for point in points)
    assert 10 < sum(point["a"] < 1e-2 for point in points) < 30
    assert len(sweep_points({"w": ("x", "y")}, 40)) == 2  # there are no more


@pytest.mark.parametrize(
    ("axes", "n_random", "sentence"),
    [
        ({}, None, "at least one parameter"),
        ({"a": ()}, None, "a has no values"),
        ({"a": Span(0.0, 1.0)}, None, "only random points"),
        ({"a": tuple(range(1000)), "b": tuple(range(1000))}, None, "1000000 points"),
        ({"a": (1,)}, 0, "n_random must be"),
    ],
)
def test_wrong_axes_are_one_sentence(axes: dict[str, Any], n_random: int | None, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        sweep_points(axes, n_random)
    with pytest.raises(InvalidInput, match="logarithmic span must begin above 0"):
        Span(0.0, 1.0, logarithmic=True)


def test_a_sweep_is_a_table_and_computes_nothing_twice(tmp_path: Path) -> None:
    points = sweep_points({"n_cells": (1, 2), "expected": (0.5,)})
    requests = sweep_requests(SHORT, "smoke", points)
    with Store(tmp_path) as store:
        engine = InlineEngine()
        reports = run_inline(store, *requests, engine=engine)
        assert len(engine.computed) == 2  # the first point is part of the second
        found = swept(SHORT, "smoke", points, reports)
    assert [row["n"] for row in found.rows] == [1, 2]
    assert found.quantity() == "mean"
    with pytest.raises(InvalidInput, match="unknown quantity"):
        found.quantity("men")
    with pytest.raises(InvalidInput, match="Did you mean 'n_cells'"):
        sweep_requests(SHORT, "smoke", [{"n_cels": 1}])


def test_a_budget_ends_a_cell_that_would_go_on(tmp_path: Path) -> None:
    """Cells of a minute, a budget of a second: a cell whose end was waited for would have left its record."""
    cells = SHORT.cells(SHORT.params("smoke", n_cells=2, pause=60.0))
    with Store(tmp_path) as store:
        with pytest.raises(RunInterrupted, match="after 0 of 2 cells") as caught:
            list(WithinBudget(LocalEngine(1), 1.0).run(cells, store, {}))
        assert caught.value.exit_code == 0
        assert JobTable(store).states() == {"cancelled": 2}
        assert not store.keys()
