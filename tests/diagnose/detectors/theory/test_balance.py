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


def test_a_pair_with_a_frozen_layer_is_not_said_to_keep_its_balance() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    model[0].requires_grad_(False)
    found = separatrix.check(model, torch.randn(12, 6))
    assert found.find("balance") is None
    assert "no pair of layers whose balance training keeps" in str(list(found.skipped))


def test_an_optimiser_that_does_not_keep_the_balance_is_named() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    batch = torch.randn(12, 6)
    for optimiser, said in (
        (torch.optim.AdamW(model.parameters()), "under AdamW it is not kept at any lr"),
        (torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1), "under SGD it decays with the weight decay"),
    ):
        note = separatrix.check(model, batch, optimizer=optimiser).find("balance")
        assert note is not None
        assert said in note.meaning
        assert "keeps its balance" not in note.meaning
    note = separatrix.check(model, batch, optimizer=torch.optim.SGD(model.parameters(), lr=0.1)).find("balance")
    assert note is not None
    assert "keeps its balance" in note.meaning
