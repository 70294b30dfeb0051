from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from separatrix.core import InvalidInput
from separatrix.lab import Cell, Experiment, Finished, Params, Record, Store, Summary, plan_run
from separatrix.lab.engines.base import AbstractEngine
from separatrix.lab.probing import measure_towards, part_way, rung


class Settings(Params):
    n_steps: int = 2
    width: int = 4
    lr: float = 0.1
    models: tuple[str, ...] = ("a",)


def expand(settings: Settings) -> Iterator[Mapping[str, Any]]:
    for seed in settings.seeds:
        for model in settings.models:
            yield {"seed": seed, "model": model, "n_steps": settings.n_steps, "width": settings.width}


LARGE = Settings(n_steps=2000, width=400, lr=0.1, models=("a", "b"), seeds=tuple(range(10)))
GROWING = Experiment(
    name="growing",
    title="grows",
    document="separatrix",
    place="",
    version=1,
    scales={"smoke": Settings(), "laptop": LARGE, "paper": LARGE},
    expand=expand,
    run=lambda cell: {},
    summarise=lambda results: Summary(),
)


def cost(cell: Cell) -> float:
    """A tenth of a second whatever happens, then by steps and width; the second model takes three times as long."""
    work = 1e-5 * cell.args["n_steps"] * cell.args["width"] ** 1.5
    return 0.1 + work * (3 if cell.args["model"] == "b" else 1)


class Noting(AbstractEngine):
    """Says what cells would have cost."""

    def run(self, cells: Sequence[Cell], store: Store, data: Mapping[str, str]) -> Iterator[Finished]:
        for cell in cells:
            store.write(Record(cell, {}, {"seconds": cost(cell), "memory": 1e8}))
            yield Finished(cell.key)


def test_a_plan_from_cells_on_the_way_is_near_the_truth(tmp_path: Path) -> None:
    """From the smallest scale alone it cannot tell; nothing of the planned size is computed."""
    store = Store(tmp_path)
    list(Noting().run(GROWING.cells(GROWING.params("smoke")), store, {}))
    assert plan_run(GROWING, LARGE, "paper", store).is_guess
    assert measure_towards(GROWING, LARGE, "paper", store, Noting(), 60.0) == 6
    plan = plan_run(GROWING, LARGE, "paper", store)
    truth = sum(map(cost, GROWING.cells(LARGE)))
    assert plan.seconds is not None
    assert not plan.is_guess
    assert plan.seconds.low < truth < plan.seconds.high
    assert truth / 2 < plan.seconds.typical < 2 * truth
    assert measure_towards(GROWING, LARGE, "paper", store, Noting(), 60.0) == 0  # what is measured stays so


def test_a_rung_has_one_seed_and_one_cell_for_each_model() -> None:
    cells = rung(GROWING, LARGE, "paper", 0.5)
    assert [cell.args for cell in cells] == [
        {"model": "a", "n_steps": 63, "width": 40},
        {"model": "b", "n_steps": 63, "width": 40},
    ]


def test_values_go_part_of_the_way_in_the_logarithm(tmp_path: Path) -> None:
    assert part_way(2, 200, 0.5) == 20
    assert part_way(0.01, 1.0, 0.5) == pytest.approx(0.1)
    assert part_way(0, 5, 0.5) == 5
    assert part_way(True, False, 0.5) is False
    assert part_way((8,), (8, 80), 1.0) == (8, 80)
    with pytest.raises(InvalidInput, match="seconds must be a positive number"):
        measure_towards(GROWING, LARGE, "paper", Store(tmp_path), Noting(), -1.0)


class Grid(Params):
    width: int = 10
    scales: tuple[float, ...] = (0.5,)
    families: tuple[str, ...] = ("a", "b")


def over_grid(settings: Grid) -> Iterator[Mapping[str, Any]]:
    for seed in settings.seeds:
        for family in settings.families:
            for scale in settings.scales:
                yield {"seed": seed, "family": family, "scale": scale, "width": settings.width}


def test_cells_on_the_way_reach_from_the_first_number_of_a_grid_to_the_last() -> None:
    """A cell beside a transition may take forty times as long as the first; only numbers of the grid are asked."""
    large = Grid(width=1000, scales=tuple(0.1 * k for k in range(1, 16)))
    experiment = dataclasses.replace(
        GROWING, name="grid", scales={"smoke": Grid(), "laptop": large, "paper": large}, expand=over_grid
    )
    for share in (0.25, 0.5, 0.75):
        cells = rung(experiment, large, "paper", share)
        for family in ("a", "b"):
            asked = [cell.args["scale"] for cell in cells if cell.args["family"] == family]
            assert set(asked) <= set(large.scales)
            assert {min(large.scales), max(large.scales)} <= set(asked)
            assert len(asked) <= 3
