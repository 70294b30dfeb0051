"""Agents in small and large environments: judged by intervals, and only where they were run."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest
from matplotlib.figure import Figure

from separatrix.experiments import find
from separatrix.experiments.kerg2022.relevance.tables.grid_runs import PAIRS, environment
from separatrix.lab import Verdict
from separatrix.sources.kerg2022.screening import MINIGRID

SMALL = {"corridor_frames": 8, "n_episodes": 2, "n_steps": 4, "n_environments": 2, "n_hidden": 4, "batch_frames": 8}
has_minigrid = all(importlib.util.find_spec(name) is not None for name in ("minigrid", "gymnasium"))


def summary_of(**changes: Any) -> Any:
    experiment = find("kergB-table1")
    cells = experiment.cells(experiment.params("smoke", **{**SMALL, **changes}))
    made = experiment.summarise([(cell, experiment.run(cell)) for cell in cells])
    return experiment.summary.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False)))


def test_claims_turn_with_the_numbers_and_tell_nothing_of_what_was_not_run() -> None:
    experiment, summary = find("kergB-table1"), summary_of()
    for claim in experiment.claims:
        assert claim.judge(claim.counterfeit(summary)).verdict is Verdict.REFUTED, claim.id
        assert claim.genuine is not None
        assert claim.judge(claim.genuine(summary)).verdict is Verdict.CONFIRMED, claim.id
        if claim.id != "screening-corridor":
            assert claim.judge(summary).verdict is not Verdict.CONFIRMED
    assert all(isinstance(figure, Figure) for figure in experiment.draw(summary).values())


def test_an_agent_that_did_not_learn_the_small_environment_tells_nothing_of_the_large_one() -> None:
    experiment, summary = find("kergB-table1"), summary_of()
    transfer = next(claim for claim in experiment.claims if claim.id.endswith("DoorKey-transfer"))
    learned = next(claim for claim in experiment.claims if claim.id.endswith("table1-DoorKey"))
    assert transfer.genuine is not None
    failed = learned.counterfeit(transfer.genuine(summary))
    assert transfer.judge(failed).verdict is Verdict.UNDECIDED


def test_pairs_are_the_printed_ones_and_ours() -> None:
    printed = {name.removesuffix("-N2").removesuffix("-N3") for pair in PAIRS.values() for name in pair}
    assert set(MINIGRID) <= printed
    assert len(printed - set(MINIGRID)) == 2


@pytest.mark.skipif(not has_minigrid, reason="needs minigrid: install separatrix[rl]")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_all_environments_exist_and_an_agent_acts_in_one() -> None:
    for pair in PAIRS.values():
        for name in pair:
            environment(name)().reset(seed=0)
    experiment = find("kergB-table1")
    changes = {**SMALL, "pairs": ("DoorKey",), "models": ("RelLSTM",), "n_frames": 16, "seeds": (0,), "n_episodes": 1}
    cell = next(iter(experiment.cells(experiment.params("smoke", **changes))))
    args = {**cell.args, "pair": "GoToDoor"}  # its episodes are short
    payload = experiment.run(type(cell)(cell.experiment, cell.version, args, cell.seed, cell.entry))
    assert payload["ending"] == "finished"
    assert 0 <= payload["test"][0] <= 1
