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
    "attention-metastability": {"distances": (1e-5, 1e-7)},
    "altafini-polygonal": {"n_draws": 1, "n_starts": 3, "token_counts": (4,), "n_pairs": 60},
    "attention-beta-sweep": {"n_betas": 7, "n_fractions": 7},
    "attention-cycles": {"t_max": 20.0, "n_frames": 20},
}


def summary_of(name: str, **changes: Any) -> tuple[Any, Any]:
    experiment = find(name)
    cells = experiment.cells(experiment.params("smoke", **changes))
    return experiment, experiment.summarise([(cell, experiment.run(cell)) for cell in cells])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_follow_from_the_smallest_scale(name: str) -> None:
    experiment, summary = summary_of(name, **SMALLER.get(name, {}))
    assert {claim.id: claim.judge(summary).verdict for claim in experiment.claims} == VERDICTS[name]
    assert all(isinstance(row, dict) for table in summary.tables.values() for row in table)


def test_census_of_the_example_is_certified_and_knows_no_1_clustering() -> None:
    experiment, summary = summary_of("altafini-fig2", n_instances=3, n_starts=6, n_searched=6, block=4)
    verdicts = {claim.id: claim.judge(summary).verdict for claim in experiment.claims}
    assert verdicts["altafini2025-example2-one-clustering"] == Verdict.REFUTED
    assert verdicts["altafini2025-example3-bipartite-ends"] == Verdict.CONFIRMED
    assert summary.n_runs == 18
    assert set(experiment.draw(summary)) == {"census"}


@pytest.mark.slow
def test_instances_are_multistable_by_what_is_counted_or_found() -> None:
    from separatrix import matrices, theory
    from separatrix.core import spawn

    _, summary = summary_of("altafini-fig2", n_instances=2, n_starts=4, n_searched=12, block=5)
    drawn = [matrices.attention_instance(3, generator=spawn(0, "census", "weights", i)) for i in range(12)]
    counted = [theory.count_stable(item.coupling, item.value, 10).log2_count > 1 for item in drawn]
    assert summary.n_searched == 12
    assert summary.counted == sum(counted)
    assert summary.multistable >= summary.counted
    assert summary.multistable == summary.counted + summary.by_pairs + summary.by_uniform - summary.by_both


@pytest.mark.parametrize(
    ("found", "missed", "verdict"),
    [
        (2200, 10, Verdict.CONFIRMED),
        (2010, 0, Verdict.UNDECIDED),
        (1900, 10, Verdict.REFUTED),
        (1900, 90, Verdict.UNDECIDED),
    ],
)
def test_example_2_is_judged_alike_on_both_sides_of_one_half(found: int, missed: int, verdict: Verdict) -> None:
    from separatrix.dynamics import wilson_interval

    experiment, summary = summary_of("altafini-fig2", n_instances=1, n_starts=2, n_searched=2)
    forged = summary.model_copy(
        update={
            "n_searched": 4000,
            "multistable": found,
            "multistable_interval": wilson_interval(found, 4000),
            "missed": float(missed),
            "with_missed_interval": wilson_interval(found + missed, 4000),
        }
    )
    claim = next(claim for claim in experiment.claims if claim.id == "altafini2025-example2-multistable")
    assert claim.judge(forged).verdict is verdict


def test_an_end_outside_its_window_is_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    from separatrix import dynamics
    from separatrix.experiments.altafini2025 import altafini_fig2

    monkeypatch.setattr(altafini_fig2, "_inside", lambda window, n1, n2: False)
    experiment = find("altafini-fig2")
    cells = experiment.cells(experiment.params("smoke", n_searched=0))
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
