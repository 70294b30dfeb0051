"""The experiments on moving tokens at their smallest scale: shape of the result and verdicts, not digits."""

from __future__ import annotations

from typing import Any

import pytest

from separatrix.experiments import find
from separatrix.lab.experiment.claim import Verdict

VERDICTS = {
    "altafini-theorem1": {"altafini2025-theorem1": Verdict.CONDITIONAL, "separatrix-oja-pair": Verdict.CONFIRMED},
    "altafini-polygonal": {"altafini2025-lemma11-polygonal": Verdict.REFUTED},
    "attention-metastability": {"separatrix-plateau-life": Verdict.CONFIRMED},
    "attention-beta-sweep": {"separatrix-beta-events": Verdict.CONFIRMED},
    "attention-cycles": {"separatrix-consensus-cycle": Verdict.CONFIRMED},
}
SMALLER: dict[str, dict[str, Any]] = {
    "altafini-polygonal": {"n_draws": 1, "n_starts": 3, "token_counts": (4,), "n_pairs": 60},
    "attention-beta-sweep": {"n_betas": 7, "n_fractions": 7},
    "attention-cycles": {"t_max": 20.0, "n_frames": 20},
}


def summary_of(name: str, **changes: Any) -> tuple[Any, Any]:
    experiment = find(name)
    cells = experiment.cells(experiment.params("smoke", **changes))
    return experiment, experiment.summarise([(cell, experiment.run(cell)) for cell in cells])


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_follow_from_the_smallest_scale(name: str) -> None:
    experiment, summary = summary_of(name, **SMALLER.get(name, {}))
    assert {claim.id: claim.judge(summary).verdict for claim in experiment.claims} == VERDICTS[name]
    assert all(isinstance(row, dict) for table in summary.tables.values() for row in table)


def test_census_of_the_example_is_certified_and_knows_no_1_clustering() -> None:
    experiment, summary = summary_of("altafini-fig2", n_instances=3, n_starts=6)
    verdicts = {claim.id: claim.judge(summary).verdict for claim in experiment.claims}
    assert verdicts["altafini2025-example2-one-clustering"] == Verdict.REFUTED
    assert verdicts["altafini2025-example3-bipartite-ends"] == Verdict.CONFIRMED
    assert summary.n_runs == 18
    assert set(experiment.draw(summary)) == {"census"}


def test_an_end_outside_its_window_is_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    from separatrix import dynamics
    from separatrix.experiments.altafini2025 import altafini_fig2

    monkeypatch.setattr(altafini_fig2, "_inside", lambda window, n1, n2: False)
    experiment = find("altafini-fig2")
    cells = experiment.cells(experiment.params("smoke"))
    with pytest.raises(dynamics.Contradiction, match="certified stable bipartite end point on eigenvector"):
        _ = [experiment.run(cell) for cell in cells]


def test_a_cell_of_the_census_does_not_depend_on_the_others() -> None:
    experiment = find("altafini-fig2")
    cells = experiment.cells(experiment.params("smoke", n_instances=3, n_starts=4))
    assert experiment.run(cells[2]) == experiment.run(cells[2])
    assert cells[2].key == experiment.cells(experiment.params("smoke", n_instances=9, n_starts=4))[2].key


@pytest.mark.slow
def test_the_four_panels_of_figure_1_are_found() -> None:
    experiment, summary = summary_of("altafini-fig1")
    assert experiment.claims[0].judge(summary).verdict == Verdict.CONFIRMED
    assert set(experiment.draw(summary)) == {"spheres"}
