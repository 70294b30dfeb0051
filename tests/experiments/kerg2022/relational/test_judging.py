from __future__ import annotations

import inspect
from typing import Any

import pytest

from separatrix.experiments import catalogue
from separatrix.experiments.kerg2022.relational.judging import fall_claim, gap_claim, level_claim
from separatrix.experiments.kerg2022.relational.suite import Measured
from separatrix.lab import Verdict


def measured(rows: dict[tuple[str, str, int], list[float]], partial: bool = False) -> Measured:
    runs = [
        {"task": t, "model": m, "holdout": h, "extreme": h == -1, "asked": "unseen shapes", "seed": s, "accuracy": a}
        for (t, m, h), values in rows.items()
        for s, a in enumerate(values)
    ]
    return Measured(partial=partial, runs=runs, curves=[], tables={})


NAMES: Any = {"id": "x", "statement": "s"}


def test_a_level_is_confirmed_refuted_or_left_open_by_its_interval() -> None:
    claim = level_claim(**NAMES, models=("A",), tasks=("t",), above=0.9)
    for values, verdict in (
        ([0.99, 0.98, 0.99], Verdict.CONFIRMED),
        ([0.5, 0.52, 0.51], Verdict.REFUTED),
        ([0.99, 0.7, 0.95], Verdict.UNDECIDED),
        ([0.99], Verdict.UNDECIDED),
    ):
        assert claim.judge(measured({("t", "A", -1): values})).verdict is verdict


def test_what_was_not_run_is_not_judged_unless_the_run_was_announced_as_partial() -> None:
    claim = level_claim(**NAMES, models=("A", "B"), tasks=("t",), above=0.9)
    rows = {("t", "A", -1): [0.99, 0.98, 0.99]}
    assert claim.judge(measured(rows)).verdict is Verdict.NOT_RUN
    assert claim.judge(measured(rows, partial=True)).verdict is Verdict.CONFIRMED


def test_gaps_are_taken_seed_by_seed() -> None:
    claim = gap_claim(**NAMES, first=("A",), second=("B",), tasks=("t",), above=0.0)
    noisy = {("t", "A", -1): [0.6, 0.8, 0.99], ("t", "B", -1): [0.5, 0.71, 0.9]}
    assert claim.judge(measured(noisy)).verdict is Verdict.CONFIRMED
    swapped = {("t", "A", -1): [0.5, 0.71, 0.9], ("t", "B", -1): [0.6, 0.8, 0.99]}
    assert claim.judge(measured(swapped)).verdict is Verdict.REFUTED


def test_equal_means_within_both_sides() -> None:
    claim = gap_claim(**NAMES, first=("A",), second=("B",), tasks=("t",), within=0.02)
    for second, verdict in (([0.99, 0.98, 0.99], Verdict.CONFIRMED), ([0.8, 0.81, 0.8], Verdict.REFUTED)):
        rows = {("t", "A", -1): [0.99, 0.985, 0.99], ("t", "B", -1): second}
        assert claim.judge(measured(rows)).verdict is verdict


def test_a_fall_compares_all_shapes_with_the_fewest() -> None:
    claim = fall_claim(**NAMES, models=("A",), tasks=("t",))
    rows = {("t", "A", 0): [0.99, 0.98, 0.99], ("t", "A", -1): [0.5, 0.6, 0.55]}
    assert claim.judge(measured(rows)).verdict is Verdict.CONFIRMED
    flat = {("t", "A", 0): [0.99, 0.98, 0.99], ("t", "A", -1): [0.99, 0.97, 0.98]}
    assert claim.judge(measured(flat)).verdict is Verdict.REFUTED


def test_a_scale_at_which_claims_are_judged_runs_all_that_they_name() -> None:
    asked = 0
    for name, experiment in catalogue().items():
        if not issubclass(experiment.summary, Measured):
            continue
        for claim in experiment.claims:
            cells = experiment.cells(experiment.params(claim.scale))
            named = inspect.getclosurevars(inspect.unwrap(claim.judge)).nonlocals
            models = {model for key in ("models", "first", "second") for model in named.get(key, ())}
            assert models <= {cell.args["model"] for cell in cells}, (name, claim.id)
            assert set(named.get("tasks", ())) <= {cell.args["task"] for cell in cells}, (name, claim.id)
            asked += len(models)
    assert asked > 50


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_suites_expand_without_a_cell_twice(scale: str) -> None:
    for experiment in catalogue().values():
        if issubclass(experiment.summary, Measured):
            assert experiment.cells(experiment.params(scale))


def test_a_game_is_judged_on_every_family_it_was_asked_on() -> None:
    claim = level_claim(**NAMES, models=("A",), tasks=("game_x",), above=0.9)
    good, bad = [0.99, 0.98, 0.99], [0.5, 0.52, 0.51]
    for first, second, verdict in (
        (good, good, Verdict.CONFIRMED),
        (bad, good, Verdict.REFUTED),
        (good, bad, Verdict.REFUTED),
    ):
        asked = {"hexominoes": first, "stripes": second}
        runs = [
            {"task": "game_x", "model": "A", "holdout": -1, "extreme": True, "asked": a, "seed": s, "accuracy": v}
            for a, values in asked.items()
            for s, v in enumerate(values)
        ]
        found = claim.judge(Measured(partial=False, runs=runs, curves=[], tables={}))
        assert found.verdict is verdict
        assert [row.quantity for row in found.rows] == ["A on game: x (hexominoes)", "A on game: x (stripes)"]


def test_what_holds_of_some_networks_holds_under_a_condition() -> None:
    claim = level_claim(
        **NAMES, models=("A", "B"), tasks=("t",), below=0.75, holds_for=("A",), where_it_holds="for A alone"
    )
    low, high = [0.5, 0.51, 0.5], [0.98, 0.99, 0.98]
    for first, second, verdict in (
        (low, low, Verdict.CONFIRMED),
        (low, high, Verdict.CONDITIONAL),
        (high, high, Verdict.REFUTED),
        (high, low, Verdict.REFUTED),
    ):
        runs = {("t", "A", -1): first, ("t", "B", -1): second, ("t", "C", -1): high}
        assert claim.judge(measured(runs)).verdict is verdict
    judged = claim.judge(measured({("t", "A", -1): low, ("t", "B", -1): low}))
    assert judged.verdict is Verdict.UNDECIDED  # nobody learned, so it is not for want of what they lack
