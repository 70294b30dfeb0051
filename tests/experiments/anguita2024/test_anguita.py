"""Every experiment on linear networks at its smallest scale: its summary is JSON, its verdicts are as expected."""

from __future__ import annotations

import json

import pytest

from separatrix.experiments import find
from separatrix.lab import Verdict
from separatrix.lab.experiment.record import decode, encode

EXPECTED = {
    "anguita2024-thm3.1.1-variance": Verdict.MISPRINT,
    "anguita2024-table3.2": Verdict.MISPRINT,
    "anguita2024-thm3.2.1": Verdict.MISPRINT,
    "anguita2024-thm3.3.1": Verdict.MISPRINT,
    "anguita2024-fig4.3-rate": Verdict.MISPRINT,
    "anguita2024-eq4.40": Verdict.MISPRINT,
    "anguita2024-thm4.1.3": Verdict.MISPRINT,
    "anguita2024-thm4.2.1": Verdict.MISPRINT,
    "anguita2024-thm4.5.1": Verdict.MISPRINT,
    "anguita2024-thm2.2.5": Verdict.MISPRINT,
    "anguita2024-table3.3": Verdict.MISPRINT,
    "anguita2024-thm4.1.1-times": Verdict.REFUTED,
    "anguita2024-large-balance-lazy": Verdict.CONDITIONAL,
    "anguita2024-fig4.4-law": Verdict.REFUTED,
    "anguita2024-thm3.4.1": Verdict.REFUTED,
    "anguita2024-thm4.1.1": Verdict.REFUTED,
    "anguita2024-fig3.6-alone": Verdict.REFUTED,
    "anguita2024-wide-is-balanced": Verdict.REFUTED,
}

CASES: dict[str, dict[str, object]] = {
    "anguita-table3-1": {"n_samples": 20},
    "anguita-fig3-2": {"horizon": 2.0},
    "anguita-fig3-3": {},
    "anguita-fig3-4": {"n_trials": 6},
    "anguita-fig3-5": {"n_trials": 4},
    "anguita-fig3-6": {"n_trials": 4},
    "anguita-fig4-2": {"n_times": 50, "steps": 800},
    "anguita-fig4-4": {},
    "anguita-fig4-5": {},
    "anguita-fig4-6": {"steps": 500, "rate_steps": 200},
    "anguita-foundations": {},
    "anguita-theorems": {},
    "linear-regime-map": {},
    "linear-unequal-sizes": {"shapes": ((2, 2, 3), (4, 2, 4), (2, 3, 5)), "times": (0.3, 1.0)},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_smoke_runs_give_the_expected_verdicts(name: str) -> None:
    experiment, changes = find(name), CASES[name]
    cells = experiment.cells(experiment.params("smoke", **changes))
    summary = experiment.summarise([(cell, decode(encode(experiment.run(cell)))) for cell in cells])
    json.dumps(summary.to_dict(), allow_nan=False)
    for claim in experiment.claims:
        if claim.scale != "smoke":
            continue  # its verdict means something with more steps only
        verdict = claim.judge(summary).verdict
        expected = EXPECTED.get(claim.id, Verdict.CONFIRMED)
        assert verdict is expected, (claim.id, claim.judge(summary))
    if experiment.draw is not None:
        assert experiment.draw(summary)


def test_every_scale_expands_into_cells() -> None:
    for experiment in map(find, CASES):
        for scale in ("smoke", "laptop", "paper"):
            assert experiment.cells(experiment.params(scale))


def test_a_cell_computes_the_same_bits_twice() -> None:
    experiment = find("anguita-theorems")
    cell = experiment.cells(experiment.params("smoke"))[0]
    assert encode(experiment.run(cell)) == encode(experiment.run(cell))
