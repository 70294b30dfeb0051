"""Every claim could have come out otherwise: its rule refutes a counterfeit of its own published run."""

from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.core import InvalidInput
from separatrix.experiments import catalogue
from separatrix.experiments.kerg2022.relational.suite import EXTREME, UNSEEN_SHAPES, Measured as Suite
from separatrix.lab import Claim, Experiment, Store, Summary, Verdict, read_publication
from short_experiments import run_inline

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = [name for name in catalogue() if (RESULTS / f"{name}.json").exists()]
POSITIVE = (Verdict.CONFIRMED, Verdict.MISPRINT, Verdict.CONDITIONAL)


def weakness(claim: Claim, real: Summary, judged: bool, experiment: Experiment) -> str:
    """Why the rule of a claim could not have come out otherwise, or nothing.

    A claim that is judged at a larger scale than the published run may have no rows in it to be falsified: then a run
    at that scale is imagined.
    """
    if not judged and lacks_rows(claim, real):
        if not isinstance(real, Suite):
            return "the published run holds nothing that could be falsified"
        real = imagined(experiment, real)
    if claim.judge(claim.counterfeit(real)).verdict is not Verdict.REFUTED:
        return "a counterfeit is not refuted"
    if claim.judge(real).verdict in POSITIVE:
        return ""
    if claim.genuine is None:
        return "refuted or undecided: show a summary that this rule would confirm"
    good = claim.judge(claim.genuine(real)).verdict is Verdict.CONFIRMED
    return "" if good else "good news could not have been told"


def imagined(experiment: Experiment, real: Suite) -> Suite:
    """A run of everything at paper scale in which every network is right half of the time."""
    runs = [
        {
            **real.runs[0],
            "task": cell.args["task"],
            "asked": "hexominoes" if cell.args["task"].startswith("game_") else UNSEEN_SHAPES,
            "holdout": cell.args["holdout"],
            "extreme": cell.args["holdout"] == EXTREME,
            "model": cell.args["model"],
            "seed": cell.seed,
            "accuracy": 0.5,
        }
        for cell in experiment.cells(experiment.scales["paper"])
    ]
    return real.model_copy(update={"partial": False, "runs": runs})


def lacks_rows(claim: Claim, real: Summary) -> bool:
    try:
        claim.counterfeit(real)
    except InvalidInput as error:
        return "changes nothing" in str(error)
    return False


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_counterfeit_is_refuted_and_good_news_could_have_been_told(name: str) -> None:
    experiment = catalogue()[name]
    published = read_publication(RESULTS / f"{name}.json", experiment)
    real = experiment.summary.from_dict(published.summary)
    found = {claim.id: weakness(claim, real, claim.id in published.claims, experiment) for claim in experiment.claims}
    assert not {key: said for key, said in found.items() if said}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, experiment in catalogue().items() if experiment.claims])
def test_a_rehearsal_confirms_only_what_it_could_have_refuted(name: str, tmp_path: Path) -> None:
    """At the smallest scale a rule may have too little to go by; then it must not say confirmed."""
    experiment = catalogue()[name]
    with Store(tmp_path / "store") as store:
        (report,) = run_inline(store, (experiment, experiment.params("smoke"), "smoke"))
    summary, flattering = report.summary, []
    assert summary is not None
    for claim in experiment.claims:
        if claim.scale != "smoke" or claim.judge(summary).verdict not in POSITIVE:
            continue
        if lacks_rows(claim, summary) or claim.judge(claim.counterfeit(summary)).verdict is not Verdict.REFUTED:
            flattering.append(claim.id)
    assert flattering == []


def test_a_power_law_is_not_told_from_one_distance() -> None:
    experiment = catalogue()["agarwala-fig1"]
    rows = [
        {"family": "gaussian", "seed": 0, "delta": delta, "measured": delta**-4.0, "theory": delta**-4.0}
        for delta in (0.999, 0.6, 0.3, 0.2)
    ]
    claim = next(claim for claim in experiment.claims if claim.id == "agarwala2022-fig1-gaussian")
    made = experiment.summary(tables={"length variance": rows}, width=5000)
    judged = claim.judge(made)
    assert judged.verdict is Verdict.CONFIRMED
    assert "down to delta = 0.2 " in judged.evidence  # what was measured, not the threshold
    for width, left in ((100, 1), (600, 2)):
        told = claim.judge(experiment.summary(tables={"length variance": rows}, width=width))
        assert told.verdict is Verdict.NOT_RUN, left


def test_every_experiment_with_claims_is_published() -> None:
    missing = [
        name
        for name, experiment in catalogue().items()
        if experiment.claims and not (RESULTS / f"{name}.json").exists()
    ]
    assert missing == []
