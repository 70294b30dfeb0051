from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput
from separatrix.core.networks.activations import ACTIVATIONS, Activation, find_activation


def unseen(activation: Activation) -> float:
    """The slope of a bounded function at the ends of what a probe sees: softsign is still rising there."""
    ends = torch.tensor([-30.0, 30.0], dtype=torch.float64)
    return float(activation.dphi(ends).abs().max()) if math.isfinite(activation.bound) else 0.0


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_declared_properties_are_those_a_probe_finds(name: str) -> None:
    known = ACTIVATIONS[name]
    probed = find_activation(lambda h: known.phi(h))
    assert probed.kinks == pytest.approx(known.kinks, abs=1e-9)
    assert probed.max_slope == pytest.approx(known.max_slope, abs=1e-6)
    assert probed.min_slope == pytest.approx(known.min_slope, abs=1e-6 + unseen(known))
    assert probed.bound == pytest.approx(known.bound, abs=1e-6 + 60 * unseen(known))
    h = torch.tensor([-2.3, -0.4, 0.3, 1.7], dtype=torch.float64)
    torch.testing.assert_close(known.dphi(h), probed.dphi(h), atol=1e-12, rtol=0)


def test_unknown_and_unsuitable_activations_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"unknown activation 'tahn'\. Did you mean 'tanh'"):
        find_activation("tahn")
    with pytest.raises(InvalidInput, match="phi must act elementwise"):
        find_activation(lambda h: h.sum())
    with pytest.raises(InvalidInput, match="finite slope"):
        find_activation(lambda h: torch.exp(h * h))


def test_flat_function_has_zero_slope() -> None:
    flat = find_activation(lambda h: torch.zeros_like(h))
    assert (flat.max_slope, flat.min_slope) == (0, 0)


def test_monotone_is_told_from_the_slope() -> None:
    assert find_activation("tanh").is_monotone
    assert not find_activation("gelu").is_monotone
    assert not find_activation(lambda h: torch.sin(h)).is_monotone
    assert math.isinf(find_activation("relu").bound)
