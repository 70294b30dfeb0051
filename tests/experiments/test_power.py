"""Every claim could have come out otherwise: its rule refutes a counterfeit of its own published run."""

from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.experiments import catalogue
from separatrix.lab import Claim, Summary, Verdict, read_publication

RESULTS = Path(__file__).parents[2] / "results"
JUDGED = [
    pytest.param(experiment.name, claim, id=claim.id)
    for experiment in catalogue().values()
    if (RESULTS / f"{experiment.name}.json").exists()
    for claim in experiment.claims
]


def published(name: str) -> Summary:
    experiment = catalogue()[name]
    return experiment.summary.from_dict(read_publication(RESULTS / f"{name}.json", experiment).summary)


@pytest.mark.parametrize(("name", "claim"), JUDGED)
def test_a_counterfeit_is_refuted(name: str, claim: Claim) -> None:
    assert claim.judge(claim.counterfeit(published(name))).verdict is Verdict.REFUTED


@pytest.mark.parametrize(("name", "claim"), JUDGED)
def test_good_news_could_have_been_told(name: str, claim: Claim) -> None:
    real = published(name)
    positive = (Verdict.CONFIRMED, Verdict.MISPRINT, Verdict.CONDITIONAL)
    if claim.judge(real).verdict in positive:
        return
    assert claim.genuine is not None, "refuted or undecided: show a summary that this rule would confirm"
    assert claim.judge(claim.genuine(real)).verdict is Verdict.CONFIRMED


def test_every_experiment_with_claims_is_published() -> None:
    missing = [
        name
        for name, experiment in catalogue().items()
        if experiment.claims and not (RESULTS / f"{name}.json").exists()
    ]
    assert missing == []
