from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from separatrix.core import DatasetUnavailable
from separatrix.experiments import find
from separatrix.experiments.agarwala2022.trained import agarwala_fig5, agarwala_fig6, agarwala_table1
from separatrix.lab import Table, Verdict

NAMES = ("agarwala-fig5", "agarwala-table1", "agarwala-fig6")
TINY: dict[str, dict[str, Any]] = {
    "agarwala-fig5": {"weight_scales": (0.3, 1.5), "n_steps": 2, "n_test": 50},
    "agarwala-table1": {"weight_scales": (1.0,), "n_steps": 3},
    "agarwala-fig6": {"n_steps": 3},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NAMES)
def test_a_summary_is_plain_judged_and_drawn(name: str) -> None:
    experiment = find(name)
    cells = experiment.cells(experiment.params("smoke", **TINY[name]))
    summary = experiment.summarise([(cell, experiment.run(cell)) for cell in cells])
    assert experiment.summary.from_dict(json.loads(json.dumps(summary.to_dict()))) == summary
    for claim in experiment.claims:
        judgement = claim.judge(summary)
        assert judgement.rows
        assert judgement.evidence
    assert experiment.draw is not None
    assert all(isinstance(figure, Figure) for figure in experiment.draw(summary).values())


def test_a_cell_gives_the_same_numbers_twice() -> None:
    experiment = find("agarwala-table1")
    cell = experiment.cells(experiment.params("smoke", **TINY["agarwala-table1"]))[0]
    assert experiment.run(cell) == experiment.run(cell)


def test_families_share_everything_but_the_matrix() -> None:
    args = {"group": [3], "tol": 1e-3, "solver_steps": 5}
    haar, gaussian = (agarwala_fig5.build(family, 1.0, 6, args) for family in ("haar", "gaussian"))
    assert haar.head.state_dict()["stacked.weight"].equal(gaussian.head.state_dict()["stacked.weight"])
    assert not haar.deq.state_dict()["cell.stacked.linear/weight"].equal(
        gaussian.deq.state_dict()["cell.stacked.linear/weight"]
    )


@pytest.mark.parametrize("name", NAMES)
def test_without_data_a_laptop_run_says_so_and_a_smoke_run_needs_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv("SEPARATRIX_DATA", str(tmp_path))
    monkeypatch.setattr("separatrix.tasks.store.location.cache_folder", lambda: tmp_path / "none")
    experiment = find(name)
    agarwala_fig5.load_images.cache_clear()
    with pytest.raises(DatasetUnavailable, match="was not found"):
        experiment.run(experiment.cells(experiment.params("laptop"))[0])
    assert experiment.run(experiment.cells(experiment.params("smoke", **TINY[name]))[0])


def test_the_paper_scale_has_the_documents_numbers() -> None:
    params = find("agarwala-table1").params("paper")
    assert params.model_dump() | {
        "width": 700, "context": 128, "batch_size": 512, "solver_steps": 20, "lr": 1e-3, "warmup_steps": 2000,
        "n_steps": 52000, "clip_norm": 0.25, "weight_scales": (0.1, 0.3, 1.0), "seeds": tuple(range(10)),
    } == params.model_dump()  # fmt: skip
    fig5 = find("agarwala-fig5").params("paper").model_dump()
    assert fig5 | {"lr": 1e-2, "pool": 1, "n_train": 60000, "seeds": tuple(range(10))} == fig5


def fig5_summary(*intervals: tuple[float, float, float]) -> agarwala_fig5.Measured:
    pairs = [
        {"weight_scale": scale, "haar_minus_gaussian": (low + high) / 2, "low": low, "high": high}
        for scale, low, high in intervals
    ]
    tables = {"Orthogonal minus independent, 95 % interval": pairs}
    return agarwala_fig5.Measured(errors=[], images="mnist", full_size=True, n_steps=1, tables=tables)


@pytest.mark.parametrize(
    ("intervals", "verdict"),
    [
        ([(0.3, -0.1, 0.1), (1.0, -0.3, -0.1), (2.0, -0.2, -0.1)], Verdict.CONFIRMED),
        ([(1.0, -0.3, -0.1), (2.0, -0.2, 0.1)], Verdict.UNDECIDED),
        ([(1.0, -0.3, 0.1), (2.0, 0.1, 0.2)], Verdict.REFUTED),
        ([(1.0, -0.3, 0.1), (2.0, -0.2, 0.1)], Verdict.UNDECIDED),
        ([(0.3, -0.3, -0.1)], Verdict.NOT_RUN),
    ],
)
def test_orthogonal_wins_only_if_intervals_say_so(
    intervals: list[tuple[float, float, float]], verdict: Verdict
) -> None:
    summary = fig5_summary(*intervals)
    assert agarwala_fig5.judge_orthogonal(summary).verdict is verdict
    smaller = summary.model_copy(update={"full_size": False})  # size changes what is measured, not the rule
    assert agarwala_fig5.judge_orthogonal(smaller).verdict is verdict


def table1_summary(full_size: bool, **tables: Table) -> agarwala_table1.Measured:
    """A summary with the tables of these names, and nothing else that a claim looks at."""
    named = {getattr(agarwala_table1, name): rows for name, rows in tables.items()}
    return agarwala_table1.Measured(
        perplexities=[], curves=[], text="made-up", n_steps=1, full_size=full_size, first_loss=1.0, tables=named
    )


def fig6_summary(full_size: bool, **tables: Table) -> agarwala_fig6.Measured:
    named = {getattr(agarwala_fig6, name): rows for name, rows in tables.items()}
    return agarwala_fig6.Measured(curves=[], text="made-up", full_size=full_size, tables=named)


@pytest.mark.parametrize(
    ("goe", "others", "verdict"),
    [
        ([1.0, 1.02, 1.03], [1.0, 9.0, 80.0] * 8, Verdict.CONFIRMED),
        ([1.0, 1.02, 1.03], [1.0, 1.1, 1.2], Verdict.REFUTED),
        ([1.0, 9.0, 80.0] * 8, [1.0, 9.0, 80.0] * 8, Verdict.REFUTED),
        ([1.0, 1.02, 1.03], [1.0, 1.5, 2.5], Verdict.UNDECIDED),
    ],
)
def test_seeds_go_astray_only_if_intervals_say_so(goe: list[float], others: list[float], verdict: Verdict) -> None:
    values = {"goe": goe, "haar": others, "gaussian": others}
    found = [{"family": family, "weight_scale": 1.0, "values": own} for family, own in values.items()]
    summary = table1_summary(True, TABLE=[{"diverged": 0}]).model_copy(update={"perplexities": found})
    assert agarwala_table1.judge_unstable(summary).verdict is verdict


@pytest.mark.parametrize(("shift", "verdict"), [(-2, Verdict.CONFIRMED), (2, Verdict.REFUTED), (0, Verdict.UNDECIDED)])
def test_the_best_seed_wins_only_if_intervals_say_so(shift: float, verdict: Verdict) -> None:
    goe = [10.0, 10.1, 10.2, 10.3]
    found = [
        {"family": "goe", "weight_scale": 1.0, "values": goe},
        {"family": "gaussian", "weight_scale": 1.0, "values": [value + shift for value in goe]},
    ]
    summary = table1_summary(True).model_copy(update={"perplexities": found})
    assert agarwala_table1.judge_best(summary).verdict is verdict


@pytest.mark.parametrize(
    ("second", "verdict"),
    [((0.1, 0.3), Verdict.CONFIRMED), ((-0.1, 0.3), Verdict.UNDECIDED), ((-0.3, -0.1), Verdict.REFUTED)],
)
@pytest.mark.parametrize("full_size", [True, False])
def test_goe_leads_only_if_intervals_say_so(second: tuple[float, float], full_size: bool, verdict: Verdict) -> None:
    def gap(low: float, high: float) -> dict[str, Any]:
        numbers = {"loss": (low + high) / 2, "loss_low": low, "loss_high": high}
        return {"weight_scale": 1.0, "embedding_std": 0.02, "family": "haar", **numbers}

    gaps = [gap(0.1, 0.3), gap(*second)]
    assert agarwala_table1.judge_mean(table1_summary(full_size, GAPS=gaps)).verdict is verdict
    assert agarwala_fig6.judge_width(fig6_summary(full_size, GAPS=gaps)).verdict is verdict


def test_no_effect_seen_is_no_refutation() -> None:
    gap = {"weight_scale": 1.0, "family": "gaussian", "residual": 0.1, "residual_low": -0.1, "residual_high": 0.3}
    assert agarwala_table1.judge_residual(table1_summary(False, GAPS=[gap])).verdict is Verdict.UNDECIDED


def test_controls_have_equal_widths_and_differ_in_what_is_injected() -> None:
    experiment = find("agarwala-fig6")
    cells = experiment.cells(experiment.params("laptop"))
    assert all(cell.args["square"] for cell in cells)
    assert {cell.args["embedding_std"] for cell in cells} == {0.02, 1.0}
    assert {cell.args["family"] for cell in cells} == set(agarwala_fig6.FAMILIES)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.3, Verdict.CONFIRMED), (-0.1, 0.3, Verdict.UNDECIDED), (-0.3, -0.1, Verdict.REFUTED)],
)
def test_larger_embeddings_train_better_only_if_intervals_say_so(low: float, high: float, verdict: Verdict) -> None:
    gaps = [
        {"family": family, "weight_scale": 1.0, "loss": 0.2, "low": bottom, "high": top}
        for family, bottom, top in (("goe", 0.1, 0.3), ("haar", low, high))
    ]
    assert agarwala_fig6.judge_injection_loss(fig6_summary(False, LOSSES=gaps)).verdict is verdict
