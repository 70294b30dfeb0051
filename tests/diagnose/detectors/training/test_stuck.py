from __future__ import annotations

import pytest

from check_recipes import faults, healthy, scores
from check_recipes.cases import RECIPES

_ = (faults, healthy)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["residual_rezero", "residual_zero_last", "residual_zero_last_zero_head", "lora"])
def test_a_zero_gradient_now_is_a_note_if_it_wakes_up(name: str) -> None:
    """Zeros in series need three steps: after one virtual step the last of these would still be accused."""
    found = scores.examine(RECIPES[name].case(0))
    start = found.find("zero_start")
    assert start is not None
    assert start.severity == "note"
    assert found.find("stuck_weights") is None


def test_two_zeros_in_series_stay_stuck() -> None:
    found = scores.examine(RECIPES["rezero_and_zero_last"].case(0)).find("stuck_weights")
    assert found is not None
    assert found.severity == "fault"
    assert found.value == 6  # three blocks of two matrices
