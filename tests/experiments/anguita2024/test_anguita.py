"""Every experiment on linear networks at its smallest scale: its summary is JSON, its verdicts are as expected."""

from __future__ import annotations

import json

import pytest

from separatrix.experiments.anguita2024 import (
    anguita_accuracy,
    anguita_fig3_2,
    anguita_fig3_3,
    anguita_fig4_2,
    anguita_fig4_4,
    anguita_fig4_6,
    anguita_tables3,
    anguita_theorems,
)
from separatrix.experiments.ours import linear_regime_map, linear_unequal_sizes
from separatrix.lab import Experiment, Verdict
from separatrix.lab.experiment.record import decode, encode

CORRECTED = {
    "anguita2024-thm3.1.1-variance",
    "anguita2024-table3.2",
    "anguita2024-thm3.2.1",
    "anguita2024-thm3.3.1",
    "anguita2024-fig4.3-rate",
    "anguita2024-fig4.4-law",
    "anguita2024-eq4.40",
    "anguita2024-thm3.4.1",
    "anguita2024-thm4.1.1",
    "anguita2024-thm4.1.3",
    "anguita2024-thm4.2.1",
    "anguita2024-thm4.5.1",
}
REFINED = {"anguita2024-wide-is-balanced", "anguita2024-large-balance-lazy"}

CASES: dict[str, tuple[Experiment, dict[str, object]]] = {
    "table3-1": (anguita_tables3.EXPERIMENT, {"n_samples": 20}),
    "fig3-2": (anguita_fig3_2.EXPERIMENT, {"horizon": 2.0}),
    "fig3-3": (anguita_fig3_3.EXPERIMENT, {}),
    "fig3-4": (anguita_accuracy.FIG_3_4, {"n_trials": 6}),
    "fig3-5": (anguita_accuracy.FIG_3_5, {"n_trials": 4}),
    "fig3-6": (anguita_accuracy.FIG_3_6, {"n_trials": 4}),
    "fig4-2": (anguita_fig4_2.EXPERIMENT, {"n_times": 50}),
    "fig4-4": (anguita_fig4_4.FIG_4_4, {}),
    "fig4-5": (anguita_fig4_4.FIG_4_5, {}),
    "fig4-6": (anguita_fig4_6.EXPERIMENT, {"steps": 500, "rate_steps": 200}),
    "theorems": (anguita_theorems.EXPERIMENT, {}),
    "regime-map": (linear_regime_map.EXPERIMENT, {}),
    "unequal": (linear_unequal_sizes.EXPERIMENT, {"shapes": ((2, 2, 3), (4, 2, 4), (2, 3, 5)), "times": (0.3, 1.0)}),
}


@pytest.mark.parametrize("case", CASES)
def test_smoke_runs_give_the_expected_verdicts(case: str) -> None:
    experiment, changes = CASES[case]
    cells = experiment.cells(experiment.params("smoke", **changes))
    summary = experiment.summarise([(cell, decode(encode(experiment.run(cell)))) for cell in cells])
    json.dumps(summary, allow_nan=False)
    for claim in experiment.claims:
        verdict = claim.judge(summary).verdict
        expected = (
            Verdict.CORRECTED
            if claim.id in CORRECTED
            else Verdict.REFINED
            if claim.id in REFINED
            else Verdict.CONFIRMED
        )
        assert verdict is expected, (claim.id, claim.judge(summary))
    if experiment.draw is not None:
        assert experiment.draw(summary)


def test_every_scale_expands_into_cells() -> None:
    for experiment, _ in CASES.values():
        for scale in ("smoke", "laptop", "paper"):
            assert experiment.cells(experiment.params(scale))


def test_a_cell_computes_the_same_bits_twice() -> None:
    experiment = anguita_theorems.EXPERIMENT
    cell = experiment.cells(experiment.params("smoke"))[0]
    assert encode(experiment.run(cell)) == encode(experiment.run(cell))
