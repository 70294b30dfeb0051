"""Statements of altafini2025 are judged by all seeds, not by the first."""

from __future__ import annotations

import pytest

from separatrix.experiments import find
from separatrix.lab import Verdict


@pytest.mark.parametrize(
    ("name", "part", "quantity", "claim_id"),
    [
        ("altafini-lemmas", "lemma 4", "error of the list", "altafini2025-lemma4"),
        ("altafini-propositions", "lemma 7", "clusterings of another rank", "altafini2025-lemma7"),
        ("altafini-foundations", "lemma 3", "error of the blocks", "altafini2025-lemma3"),
    ],
)
def test_a_second_seed_that_disagrees_refutes(name: str, part: str, quantity: str, claim_id: str) -> None:
    experiment = find(name)
    cells = experiment.cells(experiment.params("smoke", seeds=(0, 1), n_instances=1))
    chosen = [cell for cell in cells if cell.args["part"] == part]
    results = [(cell, experiment.run(cell)) for cell in chosen]
    claim = next(claim for claim in experiment.claims if claim.id == claim_id)
    assert claim.judge(experiment.summarise(results)).verdict is not Verdict.REFUTED
    results[1][1][quantity] += 1
    assert claim.judge(experiment.summarise(results)).verdict is Verdict.REFUTED
