"""Every claim could have come out otherwise: its rule refutes a counterfeit of its own published run."""

from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.core import InvalidInput
from separatrix.experiments import catalogue
from separatrix.experiments.kerg2022.relational.suite import EXTREME, UNSEEN_SHAPES, Measured as Suite
from separatrix.lab import Claim, Experiment, Summary, Verdict, read_publication

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


def test_every_experiment_with_claims_is_published() -> None:
    missing = [
        name
        for name, experiment in catalogue().items()
        if experiment.claims and not (RESULTS / f"{name}.json").exists()
    ]
    assert missing == []
