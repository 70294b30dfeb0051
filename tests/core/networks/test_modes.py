"""Evaluation mode for a while."""

from __future__ import annotations

import pytest
import torch

from separatrix.core.networks.modes import evaluation_mode


def test_every_module_gets_its_own_mode_back_also_after_an_error() -> None:
    model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(2))
    model[1].eval()  # a part that its owner froze
    with evaluation_mode(model):
        assert not model.training
        assert not model[0].training
    assert [part.training for part in (model, *model)] == [True, True, False]
    with pytest.raises(ZeroDivisionError), evaluation_mode(model):
        1 / 0  # noqa: B018
    assert [part.training for part in (model, *model)] == [True, True, False]
