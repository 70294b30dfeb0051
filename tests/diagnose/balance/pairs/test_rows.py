from __future__ import annotations

import torch

from helpers import seeded
from separatrix.diagnose.balance.pairs.rows import Part, RowView


def test_rows_of_a_flattened_layer_are_grouped_by_channel() -> None:
    weight = torch.arange(12.0).reshape(2, 6)  # two outputs; inputs are three channels of two positions
    rows = RowView((Part("w", axis=1, start=0, count=3, block=2),)).read({"w": weight})
    assert rows[1].sort().values.tolist() == [2.0, 3.0, 8.0, 9.0]


def test_writing_what_was_read_changes_nothing_and_writing_more_changes_only_the_part() -> None:
    tensors = {"w": torch.randn(4, 6, generator=seeded(0)), "b": torch.arange(4.0)}
    before = {name: value.clone() for name, value in tensors.items()}
    view = RowView((Part("w", 0, 1, 2), Part("b", 0, 1, 2)))
    rows = view.read(tensors)
    assert rows.shape == (2, 7)
    view.write_(tensors, rows)
    assert all(torch.equal(tensors[name], before[name]) for name in tensors)
    view.write_(tensors, 2 * rows)
    assert torch.equal(tensors["w"][1:3], 2 * before["w"][1:3])
    assert torch.equal(tensors["w"][[0, 3]], before["w"][[0, 3]])
    assert tensors["b"].tolist() == [0, 2, 4, 3]
