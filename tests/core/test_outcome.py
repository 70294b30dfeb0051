from __future__ import annotations

import pytest
import torch

from separatrix.core import Outcome


def test_codes_are_stable_because_records_hold_them() -> None:
    assert {outcome.name: int(outcome) for outcome in Outcome} == {
        "CONVERGED": 0,
        "OUT_OF_STEPS": 1,
        "DIVERGED": 2,
        "NON_FINITE": 3,
        "CYCLE": 4,
        "STALLED": 5,
        "COMPLETED": 6,
        "NO_EQUILIBRIUM": 7,
    }


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_reads_well_and_says_what_to_try(outcome: Outcome) -> None:
    assert "_" not in outcome.label
    assert outcome.label == outcome.label.lower()
    assert outcome.advice.endswith(".")


def test_codes_live_in_tensors() -> None:
    codes = torch.tensor([Outcome.CONVERGED, Outcome.CYCLE])
    assert [Outcome(int(code)) for code in codes] == [Outcome.CONVERGED, Outcome.CYCLE]
