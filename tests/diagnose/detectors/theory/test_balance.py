from __future__ import annotations

import pytest
import torch
from torch import nn

import separatrix
from separatrix.diagnose import balance_profile


def test_the_note_is_the_profile_of_the_model() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16, bias=False), nn.ReLU(), nn.Linear(16, 3, bias=False))
    note = separatrix.check(model, torch.randn(12, 6)).find("balance")
    assert note is not None
    first, second = model[0].weight.detach(), model[2].weight.detach()
    assert note.value == pytest.approx(float((second.T @ second - first @ first.T).trace()) / 16, rel=1e-5)
    assert note.value == pytest.approx(balance_profile(model).pairs[0].balance, rel=1e-5)
    assert "Theorem 4.5.1" in note.theory


def test_a_network_without_pairs_is_skipped_with_a_reason() -> None:
    found = separatrix.check(nn.Linear(6, 3), torch.randn(12, 6))
    assert found.find("balance") is None
    assert any(item.id == "balance" for item in found.skipped)
