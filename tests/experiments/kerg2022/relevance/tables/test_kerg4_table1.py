from __future__ import annotations

from pathlib import Path

import pytest

from separatrix.experiments import catalogue
from separatrix.experiments.kerg2022.relevance.tables.accuracies import ACCURACY
from separatrix.lab import Verdict, read_publication
from separatrix.lab.experiment.reading import judge_what_was_measured

RESULT = Path(__file__).parents[5] / "results" / "kerg4-table1.json"


@pytest.mark.parametrize(("longest", "verdict"), [(5000, Verdict.CONFIRMED), (400, Verdict.UNDECIDED)])
def test_short_delays_do_not_confirm_a_statement_about_long_ones(longest: int, verdict: Verdict) -> None:
    experiment = catalogue()["kerg4-table1"]
    summary = experiment.summary.from_dict(read_publication(RESULT, experiment).summary)
    claim = next(claim for claim in experiment.claims if claim.id == "kerg2022-ch4-table1-RelRNN")
    rows = [row for row in summary.table(ACCURACY) if row["delay"] <= longest]
    kept = summary.model_copy(update={"tables": {**summary.tables, ACCURACY: rows}})
    assert judge_what_was_measured(claim, kept).verdict is verdict
