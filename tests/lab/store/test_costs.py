from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy
import pytest

from separatrix.lab import Cell, CostModel, Record, Store
from separatrix.lab.store.costs import SECONDS_OF_SIZES, longest_first


def cell(**args: Any) -> Cell:
    seed = args.pop("seed", 0)
    return Cell("e", 1, args, seed, "m:e")


def measured(rows: list[dict[str, Any]], law: Any, scatter: float = 0.05) -> CostModel:
    noise = random.Random(0)
    return CostModel(rows, [law(row) * noise.lognormvariate(0, scatter) for row in rows], SECONDS_OF_SIZES)


def test_a_power_law_is_learned_and_carried_far_beyond_the_data() -> None:
    rows = [{"width": w, "n_steps": s, "seed": k} for w in (8, 16, 32) for s in (10, 40) for k in range(3)]
    model = measured(rows, lambda row: 1e-4 * row["width"] ** 2 * row["n_steps"])
    (cost,) = model.typical([cell(width=256, n_steps=1000)])
    assert cost == pytest.approx(
        1e-4 * 256**2 * 1000, rel=0.6
    )  # powers known to about 0.05 each, over a factor 8 and 25
    draws = model.draws([cell(width=256, n_steps=1000)], numpy.random.default_rng(0))
    assert numpy.quantile(draws, 0.05) < 6553.6 < numpy.quantile(draws, 0.95)


def test_what_was_never_varied_makes_the_interval_wide() -> None:
    model = measured([{"width": 8, "seed": k} for k in range(5)], lambda row: 1.0)
    generator = numpy.random.default_rng(0)
    near, far = model.draws([cell(width=8)], generator), model.draws([cell(width=800)], generator)
    assert numpy.quantile(near, 0.95) / numpy.quantile(near, 0.05) < 1.7
    assert numpy.quantile(far, 0.95) / numpy.quantile(far, 0.05) > 50
    assert numpy.quantile(far, 0.05) < 100 < numpy.quantile(far, 0.95)


def test_words_have_their_own_cost() -> None:
    rows = [{"model": m, "seed": k} for m in ("small", "large") for k in range(4)]
    model = measured(rows, lambda row: {"small": 1.0, "large": 50.0}[row["model"]])
    small, large = model.typical([cell(model="small"), cell(model="large")])
    assert small == pytest.approx(1.0, rel=0.3)
    assert large == pytest.approx(50.0, rel=0.3)


def test_short_cells_do_not_tell_how_time_grows() -> None:
    """Times of 8 and 11 ms at sizes 5 and 10 are mostly calls: at 20 it was 0.45 s, not 15 ms."""
    rows = [{"size": size, "seed": k} for size in (5, 10) for k in range(3)]
    costs = [{5: 0.0084, 10: 0.0114}[row["size"]] for row in rows]
    generator = numpy.random.default_rng(0)
    trusting = CostModel(rows, costs, SECONDS_OF_SIZES).draws([cell(size=20)], generator)
    doubting = CostModel(rows, costs, SECONDS_OF_SIZES, fixed=0.05).draws([cell(size=20)], generator)
    assert numpy.quantile(trusting, 0.95) < 0.45
    assert numpy.quantile(doubting, 0.05) < 0.0114 < 0.45 < numpy.quantile(doubting, 0.95)
    long = CostModel(rows, [1000 * cost for cost in costs], SECONDS_OF_SIZES, fixed=0.05)
    assert long.typical([cell(size=20)])[0] == pytest.approx(15.4, rel=0.2)


def test_the_longest_cells_come_first(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        for n in (1, 2, 4, 8):
            store.write(Record(cell(n=n), {}, {"seconds": 0.1 * n, "memory": 1e8}))
        waiting = [cell(n=n, seed=1) for n in (2, 8, 1, 4)]
        assert [c.args["n"] for c in longest_first(waiting, store)] == [8, 4, 2, 1]
        unknown = [Cell("other", 1, {"n": 1}, 0, "m:e")]
        assert longest_first([*waiting, *unknown], store)[0] == unknown[0]
        assert longest_first([], store) == []


def test_the_first_cell_of_a_process_teaches_little(tmp_path: Path) -> None:
    """A run of one cell is known by it alone; as soon as there are others, it counts no more."""
    with Store(tmp_path) as store:
        assert CostModel.of_seconds(store, "e") is None
        store.write(Record(cell(n=1), {}, {"seconds": 4.0, "warm": False}))
        alone = CostModel.of_seconds(store, "e")
        assert alone is not None
        draws = alone.draws([cell(n=1)], numpy.random.default_rng(0))
        assert numpy.quantile(draws, 0.05) < 2 < 8 < numpy.quantile(draws, 0.95)
        store.write(Record(cell(n=1, seed=1), {}, {"seconds": 0.5, "warm": True}))
        warm = CostModel.of_seconds(store, "e")
        assert warm is not None
        assert warm.typical([cell(n=1)])[0] == pytest.approx(0.5, rel=0.01)
