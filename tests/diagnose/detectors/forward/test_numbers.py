from __future__ import annotations

import pytest
import torch
from torch import nn

import separatrix


@pytest.mark.parametrize(("factor", "told"), [(1.0, False), (5.0, False), (50.0, True), (3e3, True)])
def test_features_of_very_different_size_are_a_note(factor: float, told: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(48, 6) / factor
    x[:, 2] *= factor
    x[:, 4] = 1.0  # a constant feature has no size to compare
    found = separatrix.check(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)), x)
    note = found.find("uneven_features")
    assert (note is not None) is told
    assert found.verdict == "ok"
    assert note is None or "feature 2" in note.meaning
