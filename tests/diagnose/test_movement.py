from __future__ import annotations

import math

import torch

from separatrix.diagnose.movement import relative_movement


def test_movement_is_of_all_named_parameters_together() -> None:
    start = {"a": torch.tensor([3.0]), "b": torch.tensor([4.0]), "c": torch.tensor([9.0])}
    end = {"a": torch.tensor([3.0]), "b": torch.tensor([3.0]), "c": torch.tensor([0.0])}
    assert relative_movement(start, end, ["a", "b"]) == 0.2


def test_a_start_at_zero_moves_by_infinity_or_not_at_all() -> None:
    zero, one = {"a": torch.zeros(2)}, {"a": torch.ones(2)}
    assert relative_movement(zero, one, ["a"]) == math.inf
    assert relative_movement(zero, zero, ["a"]) == 0.0
