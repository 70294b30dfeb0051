from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from separatrix.theory.free_probability import AbstractLaw, Discrete, MarchenkoPastur, Semicircle, free_product
from separatrix.theory.free_probability.search import distance_at_level, minimum


def real(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("power", [-0.5, -1.0, -2.0])
def test_powers_are_straight_lines_and_need_no_second_step(power: float) -> None:
    calls = 0

    def function(distance: Tensor) -> tuple[Tensor, Tensor]:
        nonlocal calls
        calls += 1
        return distance**power, power * distance ** (power - 1)

    level = real(1e-3, 0.7, 40.0)
    found = distance_at_level(function, level, torch.full_like(level, 1e-20), torch.full_like(level, 1e9))
    torch.testing.assert_close(found, level ** (1 / power), rtol=1e-13, atol=0)
    assert calls <= 5  # both ends, the first step, and two to see that it was right


def test_a_derivative_that_misleads_costs_time_and_not_the_answer() -> None:
    level = real(0.2, 0.5, 2.0)

    def function(distance: Tensor) -> tuple[Tensor, Tensor]:
        return 1 / distance, -1e-3 / distance**2

    found = distance_at_level(function, level, torch.full_like(level, 1e-15), torch.full_like(level, 1e6))
    torch.testing.assert_close(found, 1 / level, rtol=1e-12, atol=0)


def test_a_level_that_is_not_taken_is_nan_and_keeps_no_other_waiting() -> None:
    def function(distance: Tensor) -> tuple[Tensor, Tensor]:
        return torch.exp(-distance), -torch.exp(-distance)

    found = distance_at_level(function, real(2.0, 0.5, 1e-9), real(1e-12, 1e-12, 1e-12), real(3.0, 3.0, 3.0))
    assert found.isnan().tolist() == [True, False, True]
    assert float(found[1]) == pytest.approx(math.log(2), rel=1e-14)


LAWS = {
    "semicircle": Semicircle(2.0),
    "marchenko-pastur": MarchenkoPastur(0.5),
    "atoms": Discrete([0.3, 1.0, 2.0]),
    "product": free_product(MarchenkoPastur(0.25), Discrete([1.0, 2.0])),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_search_returns_to_the_points_it_was_given(law: AbstractLaw) -> None:
    low, high = law.edges()
    for z in (high + real(1e-3, 0.1, 1.0, 30.0), low - real(1e-3, 0.1, 1.0, 30.0)):
        g = law.stieltjes(torch.complex(z, torch.zeros_like(z))).real
        torch.testing.assert_close(AbstractLaw.inverse_stieltjes(law, g), z, rtol=1e-9, atol=0)
    y = law.moment_transform(torch.complex(high + real(0.1, 3.0), real(0.0, 0.0)))[0].real
    torch.testing.assert_close(AbstractLaw.inverse_moment(law, y), high + real(0.1, 3.0), rtol=1e-9, atol=0)


def test_the_valley_is_found_to_rounding_inside_and_at_an_end() -> None:
    offset = real(0.3, -2.0, 9.0)
    found = minimum(lambda x: 1 + (x - offset[..., None]) ** 2, torch.full_like(offset, -2), torch.full_like(offset, 5))
    assert found.tolist() == pytest.approx([1.0, 1.0, 17.0], rel=1e-15)
