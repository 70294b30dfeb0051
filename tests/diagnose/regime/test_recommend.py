from __future__ import annotations

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput
from separatrix.diagnose import recommend_init


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))


def test_recommended_balances_make_the_function_lazy_or_rich(generator: torch.Generator) -> None:
    model, x = network(), torch.randn(24, 6, generator=generator)
    lazy, rich = (recommend_init(model, target, x) for target in ("lazy", "rich"))
    assert rich.balances == {"0 -> 2": 0.0}
    assert lazy.balances["0 -> 2"] < -1
    assert lazy.pairs[0].alpha < 1
    assert lazy.lr_factor < rich.lr_factor
    assert "alpha" in repr(lazy)


def test_a_linear_bottleneck_cannot_be_made_lazy_by_balance() -> None:
    bottleneck = nn.Sequential(nn.Linear(6, 2, bias=False), nn.Linear(2, 5, bias=False))
    advice = recommend_init(bottleneck, "lazy")
    assert not advice.pairs
    assert "delays" in advice.left[0].reason
    wide_out = recommend_init(nn.Sequential(nn.Linear(6, 5, bias=False), nn.Linear(5, 5, bias=False)), "lazy")
    assert wide_out.balances["0 -> 1"] > 0


def test_an_unknown_regime_is_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown regime 'wealthy'"):
        recommend_init(network(), "wealthy")
