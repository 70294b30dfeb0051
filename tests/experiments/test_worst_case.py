"""The worst of all seeds is known only if every seed gave a number."""

from __future__ import annotations

import itertools
import math

import pytest

from separatrix.experiments.anguita2024.accuracy import rising
from separatrix.experiments.worst_case import highest, judge_limits, lowest, worst_of_all
from separatrix.lab import Cell, Verdict


def cells(*values: float) -> list[tuple[Cell, dict[str, float]]]:
    return [
        (Cell(experiment="x", version=1, args={"part": "lemma"}, seed=seed, entry="x:x"), {"error": v, "margin": v})
        for seed, v in enumerate(values)
    ]


@pytest.mark.parametrize("values", [*itertools.permutations((1e-12, math.nan, 2e-12))])
def test_a_number_that_one_seed_lacks_is_not_forgotten(values: tuple[float, ...]) -> None:
    assert math.isnan(highest(*values))
    assert math.isnan(lowest(*values))
    summary = worst_of_all(cells(*values), least=("margin",))
    assert math.isnan(summary.parts["lemma"]["error"])
    assert math.isnan(summary.parts["lemma"]["margin"])
    assert judge_limits("lemma", error=1e-10)(summary).verdict is Verdict.UNDECIDED


def test_the_worst_of_numbers_is_the_largest_error_and_the_smallest_margin() -> None:
    summary = worst_of_all(cells(1.0, 3.0, 2.0), least=("margin",))
    assert summary.parts["lemma"] == {"error": 3.0, "margin": 1.0}
    assert isinstance(highest(1, 2), int)
    assert isinstance(lowest(1, 2), int)


@pytest.mark.parametrize("values", [(), (1.0,), (1.0, math.nan, 2.0)])
def test_one_value_does_not_rise(values: tuple[float, ...]) -> None:
    assert rising("deviation", values).agrees is None
    assert rising("deviation", (1.0, 2.0)).agrees is True
    assert rising("deviation", (2.0, 1.0)).agrees is False
