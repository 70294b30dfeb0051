from __future__ import annotations

from separatrix.experiments.ours import recurrent_copy
from separatrix.lab import Verdict


def test_basis_and_spectrum_are_watched_and_models_of_torch_have_none() -> None:
    experiment = recurrent_copy.EXPERIMENT
    cells = experiment.cells(experiment.params("smoke", n_steps=5))
    summary = experiment.summarise([(cell, experiment.run(cell)) for cell in cells])
    rows = {row["model"]: row for row in summary.table(recurrent_copy.TABLE)}
    assert rows["LSTM"]["largest_deviation"] == rows["LSTM"]["spectrum_error"] == 0
    assert 0 < rows["nnRNN"]["largest_deviation"] < 2e-5
    verdicts = {claim.id: claim.judge(summary).verdict for claim in experiment.claims}
    assert verdicts["separatrix-copy-orthogonal"] is Verdict.CONFIRMED
    assert verdicts["separatrix-copy-spectrum"] is Verdict.CONFIRMED
    assert verdicts["separatrix-copy-learned"] is Verdict.REFUTED  # five steps teach nothing
