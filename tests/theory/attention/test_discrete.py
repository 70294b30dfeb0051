from __future__ import annotations

import numpy
import pytest
import torch

import reference_attention as ref
from helpers import checks
from separatrix.theory.attention import (
    bipartite_layer_multipliers,
    bipartite_spectrum,
    euler_multipliers,
    layer_multipliers,
)


def layer_map(attention, value: torch.Tensor, step: float):
    def step_map(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(x + step * attention(x) @ x @ value.mT, dim=-1)

    return step_map


@checks(layer_multipliers, bipartite_layer_multipliers, by="autodiff Jacobian of the map")
def test_layer_multipliers_are_those_of_the_map(generator: torch.Generator) -> None:
    for index in range(20):
        value = 0.3 * ref.random_value(3, generator, symmetric=index % 2 == 0)
        coupling = torch.randn(3, 3, dtype=torch.float64, generator=generator)
        k, n1, n2 = ref.real_eigenvectors(value)[-1], 1 + index % 3, index % 4
        signs = torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64)
        attention = ref.softmax_attention(coupling)
        x = ref.pattern(value, k, signs)
        dense = ref.map_multipliers(layer_map(attention, value, 0.5), x)
        general = layer_multipliers(value, k, signs, attention(x), 0.5)
        blocks = bipartite_layer_multipliers(coupling, value, k, n1, n2, 0.5)
        assert not bool(general.flips.any())
        assert ref.spectral_distance(general.quotient, dense) < 1e-10
        assert float(blocks.spectral_radius) == pytest.approx(abs(dense).max(), abs=1e-10)
        assert bool(blocks.stable) is bool(general.stable) is bool(abs(dense).max() < 1)


@checks(euler_multipliers, by="autodiff Jacobian of the renormalised Euler step")
def test_euler_multipliers_are_those_of_the_map(generator: torch.Generator) -> None:
    value, coupling = ref.random_value(3, generator, symmetric=True), torch.eye(3, dtype=torch.float64)
    flow = ref.velocity_of(ref.softmax_attention(coupling), value)
    x = ref.pattern(value, 0, torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64))

    def step_map(y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.normalize(y + 0.2 * flow(y), dim=-1)

    found = euler_multipliers(bipartite_spectrum(coupling, value, 0, 2, 1), 0.2)
    dense = ref.map_multipliers(step_map, x)
    assert float(found.spectral_radius) == pytest.approx(abs(dense).max(), abs=1e-12)


def test_a_negative_factor_flips_tokens_and_is_reported() -> None:
    found = bipartite_layer_multipliers(numpy.eye(2), numpy.diag([1.0, -3.0]), 1, 4, 0, 1.0)
    assert bool(found.flips.all())
    assert not bool(found.stable)
