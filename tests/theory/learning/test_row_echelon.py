from __future__ import annotations

import torch

from separatrix.theory.learning.row_echelon import row_echelon

F64 = torch.float64


def test_dependent_rows_open_no_column_and_batches_are_independent(generator: torch.Generator) -> None:
    rows = torch.randn(3, 5, 4, dtype=F64, generator=generator)
    rows[1, 0] = 0.0
    rows[1, 3] = 2 * rows[1, 2]
    lower, rotation = row_echelon(rows)
    torch.testing.assert_close(lower @ rotation.mT, rows, atol=1e-13, rtol=0)
    torch.testing.assert_close(rotation.mT @ rotation, torch.eye(4, dtype=F64).expand(3, 4, 4), atol=1e-13, rtol=0)
    leaders = [int(column.nonzero()[0]) if column.any() else None for column in lower[1].mT]
    assert leaders == [1, 2, 4, None]
    alone, _ = row_echelon(rows[:1])
    assert torch.equal(alone[0], lower[0])


def test_rows_below_the_threshold_are_dropped(generator: torch.Generator) -> None:
    rows = torch.randn(3, 3, dtype=F64, generator=generator)
    rows[1] *= 1e-14
    lower, _ = row_echelon(rows, zero_below=1e-13)
    assert not lower[1, 1:].any()
