from __future__ import annotations

import functools
import json

import pytest
import torch
from matplotlib.figure import Figure

from separatrix import core
from separatrix.experiments import find
from separatrix.experiments.agarwala2022.nonlinear import Measured
from separatrix.lab import Experiment, Summary, Verdict
from separatrix.sources import find_erratum

NAMES = (
    "agarwala-fig1",
    "agarwala-fig2",
    "agarwala-fig3",
    "agarwala-fig4",
    "agarwala-theorems",
    "deq-advisor",
    "deq-cavity",
)
SMALL = {
    "agarwala-fig1": {"width": 120, "n_scales": 4},
    "agarwala-fig2": {"width": 100, "n_matrices": 3, "scales": (0.4, 0.6)},
    "agarwala-fig3": {"width": 100, "n_matrices": 3, "scales": (0.3, 0.5)},
    "agarwala-fig4": {"width": 80, "n_matrices": 3, "scales": (0.3, 0.6, 2.4)},
    "agarwala-appendix": {},
    "agarwala-theorems": {"width": 100, "untied_width": 100},
    "deq-advisor": {"width": 100, "n_matrices": 1},
    "deq-cavity": {"width": 100, "n_matrices": 4, "n_matrices_others": 3, "n_cases": 3},
}


@functools.cache
def compute(name: str) -> tuple[Experiment, Summary]:
    experiment = find(name)
    params = experiment.params("smoke", **SMALL[name])
    return experiment, experiment.summarise([(cell, experiment.run(cell)) for cell in experiment.cells(params)])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_small_run_is_judged_drawn_and_plain(name: str) -> None:
    experiment, summary = compute(name)
    json.dumps(summary.to_dict(), allow_nan=False)
    assert all(rows and isinstance(rows[0], dict) for rows in summary.tables.values())
    for claim in experiment.claims:
        # the smallest sizes of Fig. 1 do not span the distances over which a power could be told
        assert (claim.judge(summary).verdict is not Verdict.NOT_RUN) or name == "agarwala-fig1"
        assert claim.erratum is None or find_erratum(claim.erratum)
    assert experiment.draw is not None
    figures = experiment.draw(summary)
    assert figures
    assert all(isinstance(figure, Figure) for figure in figures.values())


def test_cells_are_deterministic() -> None:
    experiment = find("deq-cavity")
    cell = experiment.cells(experiment.params("smoke", width=60, n_cases=1))[0]
    assert experiment.run(cell) == experiment.run(cell)


def test_symmetric_weights_need_the_correction() -> None:
    experiment, summary = compute("agarwala-fig2")
    verdicts = {claim.id: claim.judge(summary).verdict for claim in experiment.claims}
    assert verdicts["separatrix-cavity-variance"] is Verdict.CONFIRMED
    assert verdicts["agarwala2022-fig2-goe"] is Verdict.CONFIRMED


@pytest.mark.slow
def test_the_untied_formula_is_refuted() -> None:
    experiment, summary = compute("agarwala-theorems")
    verdicts = {claim.id: claim.judge(summary).verdict for claim in experiment.claims}
    assert verdicts["agarwala2022-eq14"] is Verdict.REFUTED


def test_exponents_are_those_of_the_traces_not_of_a_formula() -> None:
    experiment = find("agarwala-exponents")
    cells = experiment.cells(experiment.params("smoke"))

    def verdicts(powers: dict[str, float]) -> list[Verdict]:
        made = []
        for cell in cells:
            noise = torch.randn(cell.args["n_matrices"], 1, generator=core.spawn(0, cell.key), dtype=torch.float64)
            delta = torch.tensor(cell.args["deltas"], dtype=torch.float64)
            power = powers[cell.args["family"]] if cell.args["tied"] else 2.0
            made.append((cell, {"traces": (2 - delta) * delta**-power * (0.01 * noise).exp()}))
        summary = experiment.summarise(made)
        return [claim.judge(summary).verdict for claim in experiment.claims]

    assert verdicts({"gaussian": 4.0, "haar": 3.0, "goe": 2.5}) == [Verdict.CONFIRMED, Verdict.CONFIRMED]
    assert verdicts({"gaussian": 4.0, "haar": 3.0, "goe": 3.0}) == [Verdict.REFUTED, Verdict.CONFIRMED]


def test_empty_tables_are_not_a_verdict() -> None:
    for name in ("agarwala-fig2", "agarwala-fig3"):
        for claim in find(name).claims:
            assert claim.judge(Measured(width=100, tables={"scales": []})).verdict is Verdict.NOT_RUN


def test_every_scale_expands_without_computing() -> None:
    for name in NAMES:
        experiment = find(name)
        for scale in ("smoke", "laptop", "paper"):
            keys = [cell.key for cell in experiment.cells(experiment.params(scale))]
            assert len(set(keys)) == len(keys) > 0


def test_statements_without_a_figure_are_misprints_where_an_erratum_says_so() -> None:
    experiment, summary = compute("agarwala-appendix")
    for claim in (claim for claim in experiment.claims if claim.scale == "smoke"):
        verdict = claim.judge(summary).verdict
        expected = Verdict.CONFIRMED if claim.erratum is None else Verdict.MISPRINT
        assert verdict is (Verdict.CONDITIONAL if claim.id.endswith("annulus") else expected), claim.id
