from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import separatrix
from separatrix.diagnose.recording import observed


def test_a_first_pass_that_loads_things_does_not_cost_the_rest_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = observed.recorded_forward

    def cold(subject: Any) -> Any:
        found = recorded(subject)
        found.seconds += 5.0  # seventy passes of it would not fit into the default of 120 seconds
        return found

    monkeypatch.setattr(observed, "recorded_forward", cold)
    x, target = torch.randn(12, 4, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    found = separatrix.check(model, x, loss="cross_entropy", target=target)
    assert "sharpness" in {finding.id for finding in found.findings}
    assert not [skipped for skipped in found.skipped if skipped.reason == "no time left"]
