from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.experiments import catalogue
from separatrix.experiments.agarwala2022.transition import unseen_sides
from separatrix.lab import Verdict, read_publication

RESULTS = Path(__file__).parents[3] / "results"


def test_both_sides_of_a_transition_must_have_been_looked_at() -> None:
    assert unseen_sides((0.5, 2.0), 0.75, 1.15) == []
    assert [row.quantity for row in unseen_sides((0.5, 0.8), 0.75, 1.15)] == ["scales from 1.15"]
    assert [row.agrees for row in unseen_sides((), 0.75, 1.15)] == [None, None]


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "haar"])
def test_one_side_alone_confirms_no_transition(name: str, above: bool) -> None:
    """Networks that settle at small scales say nothing of where others stop to."""
    experiment = catalogue()["agarwala-fig4"]
    summary = experiment.summary.from_dict(read_publication(RESULTS / "agarwala-fig4.json", experiment).summary)
    claim = next(claim for claim in experiment.claims if claim.id == f"agarwala2022-fig4-{name}")
    assert claim.judge(summary).verdict is Verdict.CONFIRMED
    half = [row for row in summary.table("scales") if (row["scale"] > 1.5) is above]
    found = claim.judge(summary.model_copy(update={"tables": {**summary.tables, "scales": half}}))
    assert found.verdict is Verdict.UNDECIDED
