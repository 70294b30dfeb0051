"""Experiments on the theory of attention: claims are decided, records survive a round trip, figures are drawn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from matplotlib.figure import Figure

from separatrix.experiments import find
from separatrix.lab import Experiment, Verdict
from separatrix.lab.experiment.record import decode, encode

SMALL = {
    "altafini_fig3a": {"n_instances": 40, "n_enumerated": 1, "n_per_ensemble": 60},
    "altafini_fig3b": {"n_instances": 40, "n_tuned": 3, "tuned_tokens": 8},
    "altafini_theorem2": {"n_points": 60},
    "altafini_beyond": {"n_instances": 1},
    "altafini_lemmas": {"n_instances": 3},
    "altafini_propositions": {"n_instances": 3},
    "altafini_multihead": {"n_instances": 3, "heads": (2, 3)},
    "altafini_causal": {"n_tokens": 6, "n_instances": 6},
    "altafini_extensions": {"n_instances": 4, "n_balanced": 1},
    "attention_criterion": {"n_tokens": 12, "n_instances": 10, "n_betas": 21},
    "attention_cluster_stability": {"n_cases": 2, "dims": (2, 4), "clusters": (1, 2)},
}
EXPECTED = {
    "altafini2025-theorem2-inequalities": Verdict.MISPRINT,
    "altafini2025-theorem2-single": Verdict.CONDITIONAL,
    "altafini2025-fig3b-lower": Verdict.REFUTED,
    "altafini2025-feedforward": Verdict.REFUTED,
    "altafini2025-theorem1-values": Verdict.CONDITIONAL,
    "altafini2025-lemma4": Verdict.CONDITIONAL,
    "altafini2025-lemma5": Verdict.MISPRINT,
    "altafini2025-lemma7": Verdict.CONDITIONAL,
    "altafini2025-lemma11": Verdict.REFUTED,
    "altafini2025-proposition1": Verdict.REFUTED,
    "altafini2025-multihead-consensus": Verdict.REFUTED,
}


def run(name: str) -> tuple[Experiment, Any]:
    experiment = find(name.replace("_", "-"))
    results = []
    for cell in experiment.cells(experiment.params("smoke", **SMALL[name])):
        results.append((cell, decode(json.loads(json.dumps(encode(experiment.run(cell)))))))
    return experiment, experiment.summarise(results)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SMALL)
def test_every_claim_is_decided_as_the_theory_says(name: str) -> None:
    experiment, summary = run(name)
    json.dumps(summary.to_dict(), allow_nan=False)
    assert summary.tables
    for claim in experiment.claims:
        if claim.scale != "smoke":
            continue  # its verdict means something with more instances only
        judgement = claim.judge(summary)
        assert judgement.verdict is EXPECTED.get(claim.id, Verdict.CONFIRMED), (claim.id, judgement)
        assert (claim.erratum is not None) >= (
            judgement.verdict in (Verdict.MISPRINT, Verdict.CONDITIONAL, Verdict.REFUTED)
        )
    if experiment.draw is not None:
        assert all(isinstance(figure, Figure) for figure in experiment.draw(summary).values())


def test_a_wrong_count_would_refute_the_claim_of_exactness() -> None:
    experiment, summary = run("altafini_fig3a")
    claim = next(claim for claim in experiment.claims if claim.id == "separatrix-exact-count")
    assert claim.judge(summary.model_copy(update={"mismatches": 1})).verdict is Verdict.REFUTED


def test_a_cell_gives_the_same_record_every_time() -> None:
    experiment = find("altafini-fig3b")
    cell = experiment.cells(experiment.params("smoke", n_instances=5, n_tuned=1))[0]
    assert encode(experiment.run(cell)) == encode(experiment.run(cell))
