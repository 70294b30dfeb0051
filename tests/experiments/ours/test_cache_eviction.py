"""Caches that forget: the shape of the result at smoke scale."""

from __future__ import annotations

from separatrix.experiments.ours import cache_eviction as module
from separatrix.lab import Verdict


def test_every_policy_is_measured_at_its_budget_and_a_long_cache_changes_nothing() -> None:
    experiment = module.EXPERIMENT
    cells = experiment.cells(experiment.params("smoke", n_steps=2, text_steps=2))
    summary = experiment.summarise([(cell, experiment.run(cell)) for cell in cells])
    recall = summary.table(module.RECALL)
    assert {row["policy"] for row in recall} == {*module.POLICIES, "oracle"}
    assert all(
        row["largest"] <= row["budget"] for title in (module.RECALL, module.TEXT) for row in summary.table(title)
    )
    assert {row["wording"] for row in summary.table(module.NEEDLES)} == {"exact", "paraphrased"}
    verdicts = {claim.id: claim.judge(summary).verdict for claim in experiment.claims}
    assert verdicts["separatrix-cache-identical"] is Verdict.CONFIRMED
    assert verdicts["separatrix-cache-screening"] is Verdict.UNDECIDED  # two steps teach nothing to forget
    assert set(experiment.draw(summary)) == {"quality", "needles"}
