from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from helpers import checks
from separatrix.core.networks.activations import find_activation
from separatrix.theory.equilibrium_networks.field_averages import FieldAverages, hardtanh_averages, quadrature_averages

NUMBERS = ("phi", "phi_square", "response", "response_square", "slope", "slope_square")


def t(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def brute_force(name: str, a: float, mean: float, variance: float) -> dict[str, float]:
    """A dense grid of y, each field found by interpolation of h - a phi(h)."""
    activation = find_activation(name)
    h = torch.linspace(-200, 200, 4_000_001, dtype=torch.float64)
    y = h - a * activation.phi(h)
    grid = mean + math.sqrt(variance) * torch.linspace(-9, 9, 400_001, dtype=torch.float64)
    index = torch.searchsorted(y, grid).clamp(1, len(h) - 1)
    share = (grid - y[index - 1]) / (y[index] - y[index - 1])
    field = h[index - 1] + share * (h[index] - h[index - 1])
    weights = torch.exp(-((grid - mean) ** 2) / (2 * variance))
    weights = weights / weights.sum()
    phi, d = activation.phi(field), activation.dphi(field)
    gain = d / (1 - a * d)
    values = dict(zip(NUMBERS, (phi, phi * phi, gain, gain * gain, d, d * d), strict=True))
    return {key: float((weights * value).sum()) for key, value in values.items()}


@pytest.mark.sampled(2)
@checks(quadrature_averages, hardtanh_averages, by="a dense grid of fields")
@pytest.mark.parametrize(
    ("name", "a", "mean", "variance"),
    [("tanh", 0.3, 0.0, 0.8), ("tanh", -0.5, 0.7, 4.0), ("hardtanh", 0.4, 0.2, 1.5), ("relu", 0.5, -0.3, 1.0)],
)
def test_averages_match_brute_force(name: str, a: float, mean: float, variance: float) -> None:
    expected = brute_force(name, a, mean, variance)
    found = quadrature_averages(find_activation(name), t(a), t(mean), t(variance))
    closed = hardtanh_averages(t(a), t(mean), t(variance)) if name == "hardtanh" else None
    for key, value in expected.items():
        # the grid misplaces jumps of the slope by its spacing, 5e-5 standard deviations
        assert float(getattr(found, key)) == pytest.approx(value, abs=1e-4)
        assert closed is None or float(getattr(closed, key)) == pytest.approx(value, abs=1e-4)


@checks(hardtanh_averages, by="quadrature split at the kinks")
@settings(max_examples=40, deadline=None)
@given(a=st.floats(-2, 0.9), mean=st.floats(-2, 2), log_variance=st.floats(-8, 4))
def test_closed_form_and_quadrature_agree(a: float, mean: float, log_variance: float) -> None:
    arguments = (t(a), t(mean), t(math.exp(log_variance)))
    closed = hardtanh_averages(*arguments)
    split = quadrature_averages(find_activation("hardtanh"), *arguments)
    for key in NUMBERS:
        assert float(getattr(closed, key)) == pytest.approx(float(getattr(split, key)), rel=1e-9, abs=1e-10)


@settings(max_examples=25, deadline=None)
@given(a=st.floats(-1, 0.8), mean=st.floats(-1, 1), variance=st.floats(1e-3, 50))
def test_weights_are_probabilities_and_response_is_gaussian_integration_by_parts(
    a: float, mean: float, variance: float
) -> None:
    def averages(shift: float) -> FieldAverages:
        return quadrature_averages(find_activation("tanh"), t(a), t(mean + shift), t(variance))

    assert float(averages(0).weights.sum()) == pytest.approx(1, abs=1e-10)
    step = 1e-5  # dE[phi]/d mean is the response
    slope = float(averages(step).phi - averages(-step).phi) / (2 * step)
    # truncation: step^2 times the third derivative, which grows like a power of 1 / (1 - a)
    assert float(averages(0).response) == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_batches_are_independent() -> None:
    variances = torch.tensor([0.1, 1.0, 30.0], dtype=torch.float64)
    zeros = torch.zeros(3, dtype=torch.float64)
    together = quadrature_averages(find_activation("tanh"), zeros + 0.2, zeros, variances)
    alone = quadrature_averages(find_activation("tanh"), t(0.2), t(0.0), variances[1])
    assert float(together.phi_square[1]) == pytest.approx(float(alone.phi_square), rel=1e-13)
