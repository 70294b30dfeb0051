from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from separatrix.core import InvalidInput, ShapeError
from separatrix.matrices import antisymmetric_, gaussian_, goe_, haar_

ALL = (gaussian_, haar_, goe_, antisymmetric_)


@pytest.mark.parametrize("fill", ALL)
def test_layer_is_filled_in_place_at_the_given_scale(fill: Callable[..., Any], generator: torch.Generator) -> None:
    layer = nn.Linear(200, 200)
    weight = layer.weight
    assert fill(layer, 0.5, generator=generator) is layer
    assert layer.weight is weight
    assert weight.requires_grad
    assert weight.dtype == torch.float32
    assert float(weight.detach().square().mean()) * 200 == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("fill", ALL)
def test_parameters_and_batches_of_matrices_can_be_filled(fill: Callable[..., Any], generator: torch.Generator) -> None:
    parameter = nn.Parameter(torch.zeros(3, 6, 6, dtype=torch.float64))
    fill(parameter, generator=generator)
    assert bool((parameter[0] != parameter[1]).any())


def test_symmetry_is_what_the_name_says(generator: torch.Generator) -> None:
    symmetric, skew = torch.empty(5, 5, dtype=torch.float64), torch.empty(5, 5, dtype=torch.float64)
    goe_(symmetric, generator=generator)
    antisymmetric_(skew, generator=generator)
    assert torch.equal(symmetric, symmetric.mT)
    assert torch.equal(skew, -skew.mT)


@pytest.mark.parametrize("fill", [goe_, antisymmetric_])
def test_rectangular_weight_never_falls_back(fill: Callable[..., Any], generator: torch.Generator) -> None:
    layer = nn.Linear(4, 6)
    before = layer.weight.detach().clone()
    with pytest.raises(ShapeError, match=r"must be square for the \w+ family; got shape \(6, 4\)"):
        fill(layer, generator=generator)
    assert torch.equal(layer.weight, before)


def test_tall_orthogonal_weight_keeps_the_fan_in_variance(generator: torch.Generator) -> None:
    layer = nn.Linear(50, 200)
    haar_(layer, 1.0, generator=generator)
    gram = layer.weight.mT @ layer.weight
    torch.testing.assert_close(gram, 4 * torch.eye(50), atol=1e-5, rtol=0)  # 200 / 50


def test_target_without_a_weight_is_refused(generator: torch.Generator) -> None:
    with pytest.raises(InvalidInput, match="module with a weight; got ReLU"):
        gaussian_(nn.ReLU(), generator=generator)
    with pytest.raises(ShapeError, match=r"must be a matrix \(rows, columns\); got shape \(3,\)"):
        gaussian_(torch.zeros(3), generator=generator)
