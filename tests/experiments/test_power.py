"""Every claim could have come out otherwise: its rule refutes a counterfeit of its own published run."""

from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.experiments import catalogue
from separatrix.lab import Claim, Summary, Verdict, read_publication

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = [name for name in catalogue() if (RESULTS / f"{name}.json").exists()]
POSITIVE = (Verdict.CONFIRMED, Verdict.MISPRINT, Verdict.CONDITIONAL)


def weakness(claim: Claim, real: Summary) -> str:
    """Why the rule of a claim could not have come out otherwise, or nothing."""
    if claim.judge(claim.counterfeit(real)).verdict is not Verdict.REFUTED:
        return "a counterfeit is not refuted"
    if claim.judge(real).verdict in POSITIVE:
        return ""
    if claim.genuine is None:
        return "refuted or undecided: show a summary that this rule would confirm"
    good = claim.judge(claim.genuine(real)).verdict is Verdict.CONFIRMED
    return "" if good else "good news could not have been told"


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_counterfeit_is_refuted_and_good_news_could_have_been_told(name: str) -> None:
    experiment = catalogue()[name]
    real = experiment.summary.from_dict(read_publication(RESULTS / f"{name}.json", experiment).summary)
    assert not {claim.id: said for claim in experiment.claims if (said := weakness(claim, real))}


def test_every_experiment_with_claims_is_published() -> None:
    missing = [
        name
        for name, experiment in catalogue().items()
        if experiment.claims and not (RESULTS / f"{name}.json").exists()
    ]
    assert missing == []
