"""Published results are judged anew by the present claims: verdict, evidence and rows come out as they stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from separatrix.core.result import plain
from separatrix.experiments import catalogue
from separatrix.lab import SCALES, read_publication

RESULTS = sorted((Path(__file__).parents[2] / "results").glob("*.json"))


def test_every_experiment_is_published() -> None:
    assert [path.stem for path in RESULTS] == list(catalogue())


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_published_verdicts_follow_from_published_summaries(path: Path) -> None:
    experiment = catalogue()[path.stem]
    published = read_publication(path, experiment)
    assert not published.stale
    assert experiment.params(published.scale).model_dump(mode="json") == published.params
    summary = experiment.summary.from_dict(published.summary)
    judged = [claim for claim in experiment.claims if SCALES.index(claim.scale) <= SCALES.index(published.scale)]  # type: ignore[arg-type]
    assert [claim.id for claim in judged] == list(published.claims)
    for claim in judged:
        found = {"statement": claim.statement, **plain(claim.judge(summary))}
        assert json.loads(json.dumps(found)) == published.claims[claim.id]
