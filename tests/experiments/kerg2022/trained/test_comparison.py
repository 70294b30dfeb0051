"""Trained comparisons: that cells run, resume and summarise, and that rules follow from intervals alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from separatrix.core import InvalidInput
from separatrix.experiments import find
from separatrix.experiments.kerg2022.trained import comparison, kerg3_fig2, schur_forms
from separatrix.lab import Cell, Summary, Verdict
from separatrix.lab.experiment.scratch import scratch_below

TINY: dict[str, dict[str, Any]] = {
    "kerg3-fig2": {"copy_steps": 3, "copy_hidden": 6, "pixels_hidden": 6, "pixels_batch": 600},
    "kerg3-table1": {"n_steps": 2, "contexts": (6, 9), "measure_every": 1},
    "kergA-fig2": {"copy_steps": 2, "pixels_batch": 600, "text_steps": 2},
    "kergA-fig3": {"n_steps": 2, "measure_every": 1},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", TINY)
def test_a_summary_is_plain_judged_and_drawn(name: str) -> None:
    experiment = find(name)
    cells = experiment.cells(experiment.params("smoke", **TINY[name]))
    summary: Summary = experiment.summarise([(cell, experiment.run(cell)) for cell in cells])
    again = experiment.summary.from_dict(json.loads(json.dumps(summary.to_dict(), allow_nan=False)))
    for claim in experiment.claims:
        assert claim.judge(again).rows
        assert claim.judge(claim.counterfeit(again)).verdict is Verdict.REFUTED, claim.id
        if claim.genuine is not None:
            assert claim.judge(claim.genuine(again)).verdict is Verdict.CONFIRMED, claim.id
    assert experiment.draw is not None
    assert all(isinstance(figure, Figure) for figure in experiment.draw(again).values())


def copy_cell() -> Cell:
    experiment = find("kerg3-fig2")
    changes = {**TINY["kerg3-fig2"], "models": ("nnRNN",), "tasks": ("copy",), "seeds": (0,), "copy_steps": 8}
    return experiment.cells(experiment.params("smoke", **changes))[0]


def test_a_cell_that_finds_its_checkpoint_gives_the_same_numbers(tmp_path: Path) -> None:
    alone = kerg3_fig2.run(copy_cell())
    with scratch_below(tmp_path):
        first, second = kerg3_fig2.run(copy_cell()), kerg3_fig2.run(copy_cell())
    assert list(tmp_path.rglob("checkpoint.pt"))
    assert alone == first == second


def run_of(model: str, factor: float, seed: int, valid: float, score: float) -> tuple[Cell, dict[str, Any]]:
    arguments = {"task": "pixels", "model": model, "lr_factor": factor, "data": "digits"}
    payload = {"valid": valid, "score": score, "lr": factor, "n_hidden": 4, "n_parameters": 9, "ending": "finished"}
    return Cell("kerg3-fig2", 1, arguments, seed, "x:y"), {**payload, "curve": {"steps": [0], "values": [0.5]}}


def test_the_rate_is_chosen_on_validation_data_whatever_the_test_says() -> None:
    runs = [run_of("nnRNN", 1.0, seed, valid=-0.9, score=0.5) for seed in (0, 1)]
    runs += [run_of("nnRNN", 4.0, seed, valid=-0.8, score=0.7) for seed in (0, 1)]
    (row,) = comparison.summarise(runs).table(comparison.SCORES)
    assert (row["lr_factor"], row["mean"]) == (1.0, 0.5)


@pytest.mark.parametrize(("best", "is_edge"), [(1.0, True), (4.0, False), (16.0, True)])
def test_a_rate_at_an_edge_of_the_search_is_told(best: float, is_edge: bool) -> None:
    runs = [run_of("nnRNN", factor, 0, -abs(factor == best), 0.5) for factor in (1.0, 4.0, 16.0)]
    runs.append(run_of("LSTM", 64.0, 0, -1.0, 0.5))  # the rates of another model are not this one's
    row = next(r for r in comparison.summarise(runs).table(comparison.SCORES) if r["model"] == "nnRNN")
    assert (row["lr_factor"], row["rate_at_edge"]) == (best, is_edge)


def test_a_model_may_have_rates_of_its_own() -> None:
    experiment = find("kerg3-table1")
    cells = experiment.cells(experiment.params("smoke", rates=(1.0,), own_rates={"RNN": (8.0, 32.0)}))
    factors = {model: {c.args["lr_factor"] for c in cells if c.args["model"] == model} for model in ("RNN", "LSTM")}
    assert factors == {"RNN": {8.0, 32.0}, "LSTM": {1.0}}


@pytest.mark.parametrize(
    ("other", "verdict"),
    [((0.5, 0.52), Verdict.CONFIRMED), ((0.95, 0.97), Verdict.REFUTED), ((0.7, 0.9), Verdict.UNDECIDED)],
)
def test_a_ranking_is_told_only_if_intervals_say_so(other: tuple[float, float], verdict: Verdict) -> None:
    runs = [run_of("nnRNN", 1.0, seed, -0.9, score) for seed, score in enumerate((0.8, 0.82))]
    for model in ("LSTM", "RNN"):
        runs += [run_of(model, 1.0, seed, -0.9, score) for seed, score in enumerate(other)]
    judged = comparison.gap_above("pixels", ("LSTM", "RNN"), 0.0)(comparison.summarise(runs))
    assert judged.verdict is verdict


def test_a_claim_about_models_that_were_not_run_is_not_judged() -> None:
    runs = [run_of("nnRNN", 1.0, seed, -0.9, 0.8) for seed in (0, 1)]
    summary = comparison.summarise(runs)
    assert comparison.gap_above("pixels", ("LSTM",), 0.0)(summary).verdict is Verdict.NOT_RUN


def test_angles_that_agree_are_far_from_uniform() -> None:
    even = [(k + 0.5) / 50 * 3.14159 for k in range(50)]
    assert schur_forms._distance_from_uniform(even) < 0.2
    assert schur_forms._distance_from_uniform([0.3] * 50) > 3


def test_the_paper_scale_has_the_documents_sizes() -> None:
    fig2 = find("kerg3-fig2").params("paper").model_dump()
    assert fig2 | {"delay": 200, "copy_steps": 1500, "copy_hidden": 0, "n_epochs": 70, "pixels_data": "mnist"} == fig2
    table = find("kerg3-table1").params("paper").model_dump()
    assert table | {"contexts": (150, 300), "batch_size": 128, "n_epochs": 100, "data": "ptb-char"} == table


def test_a_table_or_row_that_is_not_printed_is_refused_by_name() -> None:
    experiment = find("kerg3-fig2")
    cell = experiment.cells(experiment.params("smoke", table="copi", models=("nnRNN",), tasks=("copy",)))[0]
    with pytest.raises(InvalidInput, match="copy"):
        experiment.run(cell)
