"""Experiments on relevancy screening: cells run, resume, summarise and are judged by intervals alone."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure

from separatrix import nn
from separatrix.experiments import find
from separatrix.experiments.kerg2022.relevance import memory_runs
from separatrix.experiments.kerg2022.relevance.gradients.kept_bytes import kept_bytes
from separatrix.experiments.kerg2022.relevance.tables import accuracies, accuracy_claims, kerg4_table1
from separatrix.experiments.kerg2022.relevance.tables.accuracies import wilson
from separatrix.experiments.kerg2022.relevance.theorems.sparse_measures import (
    gradients_along,
    least_degrees,
    planted_chain,
)
from separatrix.lab import Cell, Summary, Verdict
from separatrix.lab.experiment.scratch import scratch_below
from separatrix.sources.kerg2022.screening import COPY, DENOISE, HYPERPARAMETERS, TRANSFER_COPY, screening_row

CHEAP: dict[str, dict[str, Any]] = {
    "kerg4-theorems": {"even_steps": (20, 60, 100), "n_patterns": 9, "memory_steps": (50, 100)},
    "kergB-theorems": {"n_steps": 4, "longest_sum": 4, "n_long": 3000},
    "kergB-fig8": {"n_steps": 1},
}
DEAR = (
    "kerg4-table1",
    "kerg4-table2",
    "kerg4-fig2",
    "kergB-table2",
    "kerg4-table3",
    "kergB-fig1",
    "kerg4-fig1",
    "kergB-fig5",
    "kergB-fig7",
    "kergB-fig9",
)


def summary_of(name: str, changes: dict[str, Any]) -> Any:
    experiment = find(name)
    cells = experiment.cells(experiment.params("smoke", **changes))
    made: Summary = experiment.summarise([(cell, experiment.run(cell)) for cell in cells])
    return experiment.summary.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False)))


def check(name: str, changes: dict[str, Any]) -> None:
    experiment, summary = find(name), summary_of(name, changes)
    for claim in experiment.claims:
        assert claim.judge(summary).rows, claim.id
        assert claim.judge(claim.counterfeit(summary)).verdict is Verdict.REFUTED, claim.id
        if claim.genuine is not None:
            assert claim.judge(claim.genuine(summary)).verdict is Verdict.CONFIRMED, claim.id
    if experiment.draw is not None:
        assert all(isinstance(figure, Figure) for figure in experiment.draw(summary).values())


@pytest.mark.parametrize("name", CHEAP)
def test_a_summary_is_plain_judged_and_drawn(name: str) -> None:
    check(name, CHEAP[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", DEAR)
def test_a_summary_is_plain_judged_and_drawn_at_the_smallest_scale(name: str) -> None:
    check(name, {})


def tiny_cell(**changes: Any) -> Cell:
    experiment = find("kerg4-table1")
    own = {"models": ("RelRNN",), "n_steps": 3, "tail_steps": 2, "n_test": 4, "measure_every": 1, **changes}
    return experiment.cells(experiment.params("smoke", **own))[0]


def test_a_run_in_two_parts_that_finds_its_checkpoints_gives_the_same_numbers(tmp_path: Path) -> None:
    alone = kerg4_table1.run(tiny_cell())
    with scratch_below(tmp_path):
        first, second = kerg4_table1.run(tiny_cell()), kerg4_table1.run(tiny_cell())
    assert {file.name for file in tmp_path.rglob("*.pt")} == {"part0.pt", "part1.pt"}
    assert alone == first == second
    assert alone["n_done"] == 5


def test_kept_symbols_are_told_from_lost_ones() -> None:
    found = kerg4_table1.run(tiny_cell(delays=(40,)))
    assert len(found["retention_by_symbol"]) == len(found["accuracy_by_symbol"]) == 10
    assert found["retention"] == pytest.approx(sum(found["retention_by_symbol"]) / 10)
    trained = memory_runs.train_cell(tiny_cell())
    ((batch, right),) = memory_runs.answers(trained.model, memory_runs.make_task("copy", 40), 3, 0)
    kept = memory_runs.in_memory(trained.model.core.last.trace, batch.oracle, 60)
    index = trained.model.core.last.trace.indices[:, 50]
    assert kept.tolist() == [[step in row for step in range(10)] for row in index.tolist()]
    assert right.shape == (3, 10)


def test_the_interval_of_a_share_counts_problems() -> None:
    low, high = wilson(1.0, 400)
    assert (high, low > 0.99) == (pytest.approx(1.0), True)
    assert wilson(1.0, 20)[0] < 0.85
    centre = wilson(0.5, 100)
    assert centre[0] == pytest.approx(1 - centre[1])
    assert all(math.isnan(end) for end in wilson(math.nan, 10))


def rows_of(until: dict[str, float], updates: int = 1000) -> Any:
    training = [{"model": model, "until_90": value, "updates": updates} for model, value in until.items()]
    return accuracies.Measured(curves=[], baseline=1.0, tables={accuracies.TRAINING: training})


@pytest.mark.parametrize(
    ("own", "other", "verdict"),
    [
        (300.0, 900.0, Verdict.CONFIRMED),
        (600.0, 900.0, Verdict.REFUTED),
        (300.0, math.inf, Verdict.CONFIRMED),
        (900.0, math.inf, Verdict.UNDECIDED),
        (math.inf, 900.0, Verdict.REFUTED),
        (math.inf, math.inf, Verdict.UNDECIDED),
    ],
)
def test_who_never_learned_counts_with_the_updates_it_had(own: float, other: float, verdict: Verdict) -> None:
    assert accuracy_claims.sooner("A", ("B",))(rows_of({"A": own, "B": other})).verdict is verdict


@pytest.mark.parametrize(
    ("own", "longer", "updates", "verdict"),
    [
        (0.99, 0.99, 4000, Verdict.CONFIRMED),
        (0.99, 0.4, 4000, Verdict.REFUTED),
        (0.2, 0.2, 4000, Verdict.UNDECIDED),
        (0.2, 0.2, 200_000, Verdict.REFUTED),
    ],
)
def test_a_network_cut_short_before_it_learned_refutes_nothing(
    own: float, longer: float, updates: int, verdict: Verdict
) -> None:
    accuracy = [
        {"model": "A", "trained_at": 5, "delay": delay, "mean": mean, "low": mean - 0.01, "high": mean + 0.01, "n": 400}
        for delay, mean in ((5, own), (40, longer))
    ]
    training = [{"model": "A", "trained_at": 5, "until_90": 100.0, "updates": updates}]
    tables = {accuracies.ACCURACY: accuracy, accuracies.TRAINING: training}
    summary = accuracies.Measured(curves=[], baseline=1.0, tables=tables)
    assert accuracy_claims.keeps(("A",), 0.9)(summary).verdict is verdict


def test_bytes_kept_are_those_of_the_graph() -> None:
    x = torch.zeros(3, 100, requires_grad=True)
    assert kept_bytes(lambda: x.exp()) == 3 * 100 * 4  # the result, which exp keeps too
    with torch.no_grad():
        assert kept_bytes(lambda: (x.exp() * 2).sum()) == 4
    core = nn.RelRNN(2, 8, 3, 3)
    short, long = (kept_bytes(lambda t=t: core(torch.zeros(1, t, 2))) for t in (200, 400))
    assert long - short < 1.05 * short


def test_a_planted_chain_has_its_degree_and_the_gradient_of_its_hops() -> None:
    pattern, start = planted_chain(4, 2, 60)
    assert least_degrees(pattern, start)[-1] == 2
    assert gradients_along(pattern, 0.5, start)[-1] == pytest.approx(0.5**2 / 4**3, rel=1e-9)


def test_printed_tables_have_one_entry_per_model_and_delay() -> None:
    for table in (TRANSFER_COPY, DENOISE, COPY):
        assert len({tuple(row) for row in table.values()}) == 1
    assert TRANSFER_COPY["MemRNN"][5000] is None
    assert all(screening_row(name, row.model) is row for name, rows in HYPERPARAMETERS.items() for row in rows)
    with pytest.raises(ValueError, match="Did you mean 'RelRNN'"):
        screening_row("copy", "RelRN")
