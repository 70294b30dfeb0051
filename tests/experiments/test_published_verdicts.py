"""Published results are judged anew by the present claims: verdict, evidence and rows come out as they stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from separatrix.core.result import plain
from separatrix.experiments import catalogue
from separatrix.lab import read_publication, rule_digest

RESULTS = sorted((Path(__file__).parents[2] / "results").glob("*.json"))


def test_every_published_result_belongs_to_an_experiment() -> None:
    assert RESULTS
    assert {path.stem for path in RESULTS} <= set(catalogue())


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_published_verdicts_follow_from_published_summaries(path: Path) -> None:
    experiment = catalogue()[path.stem]
    published = read_publication(path, experiment)
    assert not published.stale
    wanted = experiment.params(published.scale).model_dump(mode="json")
    # a run of its own, with other seeds than those on which a rule was written, but as many
    assert len(wanted["seeds"]) == len(published.params["seeds"])
    assert wanted | {"seeds": published.params["seeds"]} == published.params
    summary = experiment.summary.from_dict(published.summary)
    claims = {claim.id: claim for claim in experiment.claims}
    assert set(published.claims) <= set(claims)  # a claim that is newer than the file is judged by the next run
    for name, judged in published.claims.items():
        found = {"statement": claims[name].statement, **plain(claims[name].judge(summary))}
        told = {key: value for key, value in judged.items() if key not in ("rule", "rules_of_run")}
        assert json.loads(json.dumps(found)) == told
        assert judged["rule"] == rule_digest(claims[name])
