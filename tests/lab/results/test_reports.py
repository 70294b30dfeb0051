from __future__ import annotations

import dataclasses

import pytest

from separatrix import experiments
from separatrix.core import CorruptData
from separatrix.lab.ledger import ledger, shipped_publications
from separatrix.lab.results import published_report

NAME = "linear-conservation"


def test_a_published_result_is_a_report_with_its_verdicts_and_numbers() -> None:
    experiment = experiments.find(NAME)
    publication = shipped_publications({NAME: experiment})[NAME]
    report = published_report(publication, experiment)
    assert report.complete
    assert report.scale == publication.scale
    for entry in ledger([experiment], None, None, {NAME: publication}):
        assert report.judgements[entry.claim.id] == entry.judgement


def test_what_json_cannot_hold_is_a_number_again() -> None:
    experiment = experiments.find(NAME)
    report = published_report(shipped_publications({NAME: experiment})[NAME], experiment)
    assert report.summary is not None
    values = [row["its residual"] for row in report.summary.table("laws")]
    assert any(value != value for value in values)
    assert all(isinstance(value, float) for value in values)


def test_a_summary_of_something_else_is_refused() -> None:
    experiment = experiments.find(NAME)
    publication = shipped_publications({NAME: experiment})[NAME]
    with pytest.raises(CorruptData):
        published_report(dataclasses.replace(publication, summary={"slope": 1.0}), experiment)
    with pytest.raises(CorruptData, match="not one of this version"):
        published_report(dataclasses.replace(publication, params={"nonsense": 1}), experiment)
