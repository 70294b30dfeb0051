from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.matrices import delay_line, feedback_line


def test_delay_line_has_one_value_on_each_band() -> None:
    line = delay_line(5, sub=1.05, rest=0.005, diagonal=0.2)
    for i in range(5):
        for j in range(5):
            expected = {0: 0.2, 1: 1.05}.get(i - j, 0.005 if i > j else 0.0)
            assert line[i, j].item() == expected


def test_delay_line_without_diagonal_forgets_after_its_last_unit() -> None:
    line = delay_line(7, sub=1.3, rest=0.4)
    assert torch.linalg.matrix_power(line, 6).abs().max() > 0
    assert torch.equal(torch.linalg.matrix_power(line, 7), torch.zeros(7, 7, dtype=torch.float64))


def test_feedback_line_feeds_both_neighbours() -> None:
    assert feedback_line(3, 2.0, 0.5).tolist() == [[0.0, 0.5, 0.0], [2.0, 0.0, 0.5], [0.0, 2.0, 0.0]]


@pytest.mark.parametrize("size", [1, 2])
def test_smallest_lines_have_the_right_shape(size: int) -> None:
    assert delay_line(size, 1.0, 1.0, 0.5).shape == (size, size)
    assert feedback_line(size, 1.0, 1.0).shape == (size, size)


def test_lines_refuse_bad_arguments() -> None:
    with pytest.raises(InvalidInput, match="n_units must be an integer of at least 1; got 0"):
        delay_line(0)
    with pytest.raises(InvalidInput, match="sup must be a finite number; got nan"):
        feedback_line(3, 1.0, math.nan)


def test_lines_follow_the_dtype_asked_for() -> None:
    assert delay_line(3, dtype=torch.float32).dtype == torch.float32
