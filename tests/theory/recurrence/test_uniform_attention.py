"""Gradients under even attention: a real network differentiated, fractions, and the limit of long times."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
import torch
from torch import Tensor

from helpers import checks, seeded
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.theory import (
    uniform_attention_asymptote,
    uniform_attention_coefficients,
    uniform_attention_constant,
    uniform_attention_curve,
    uniform_attention_exponent,
    uniform_attention_gradient,
    uniform_attention_jacobian,
    uniform_attention_norm,
)

MIXES = [(1.0, 1.0), (0.5, 0.5), (0.3, 0.9)]


def differentiated(matrix: Tensor, t: int, k: int, mix: tuple[float, float]) -> Tensor:
    """ds_{t+k}/dh_t of a linear network with even attention, by autograd."""

    def end(h: Tensor) -> Tensor:
        states = [torch.ones_like(h)] * (t - 1) + [h]
        for time in range(t, t + k + 1):
            s = mix[0] * states[-1] + mix[1] * sum(states) / time
            states.append(matrix @ s)
        return s

    return torch.autograd.functional.jacobian(end, torch.zeros(len(matrix), dtype=matrix.dtype))


@checks(
    uniform_attention_gradient,
    uniform_attention_curve,
    uniform_attention_norm,
    uniform_attention_jacobian,
    uniform_attention_coefficients,
    by="autograd of a linear network whose attention is even",
)
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("t", [1, 2, 5])
def test_gradients_are_those_of_a_network(t: int, mix: tuple[float, float]) -> None:
    matrix = 0.4 * torch.randn(4, 4, generator=seeded(t), dtype=torch.float64)
    normal = (matrix + matrix.mT) / 2
    for k in (0, 1, 7, 12):
        found = differentiated(matrix, t, k, mix)
        torch.testing.assert_close(uniform_attention_jacobian(matrix, t, k, mix), found, rtol=1e-12, atol=1e-13)
        powers = [torch.linalg.matrix_power(matrix, s) for s in range(k + 1)]
        summed = sum(c * power for c, power in zip(uniform_attention_coefficients(t, k, mix), powers, strict=True))
        torch.testing.assert_close(summed, found, rtol=1e-12, atol=1e-13)
        expected = torch.linalg.eigvals(found)
        by_formula = uniform_attention_gradient(torch.linalg.eigvals(matrix), t, k, mix)
        distance = (expected.unsqueeze(0) - by_formula.unsqueeze(1)).abs()
        assert float(distance.amin(0).max()) < 1e-10
        assert float(uniform_attention_norm(torch.linalg.eigvals(matrix), t, k, mix)) <= float(found.norm()) + 1e-12
        exact = uniform_attention_norm(torch.linalg.eigvalsh(normal), t, k, mix)
        torch.testing.assert_close(exact, differentiated(normal, t, k, mix).norm(), rtol=1e-12, atol=1e-13)


def test_coefficients_are_sums_over_paths_in_fractions() -> None:
    def by_paths(t: int, k: int, degree: int) -> Fraction:
        def hop(start: int, end: int) -> Fraction:
            return Fraction(1, t + end) + (start == end)

        total = Fraction(0)
        for times in itertools.combinations(range(k), degree):  # h -> s at these times, then a recurrent step
            ends = [*times, k]
            starts = [0, *[time + 1 for time in times]]
            total += math.prod((hop(start, end) for start, end in zip(starts, ends, strict=True)), start=Fraction(1))
        return total

    for t, k in ((1, 4), (3, 5), (2, 6)):
        expected = [float(by_paths(t, k, degree)) for degree in range(k + 1)]
        torch.testing.assert_close(
            uniform_attention_coefficients(t, k), torch.tensor(expected).double(), rtol=1e-6, atol=0
        )
        torch.testing.assert_close(
            uniform_attention_coefficients(t, k), torch.tensor(expected, dtype=torch.float64), rtol=1e-14, atol=0
        )


def test_values_that_are_known() -> None:
    curve = uniform_attention_curve(0.5, 1, 200)
    torch.testing.assert_close(curve, torch.full((201,), 2.0, dtype=torch.float64))
    assert abs(float(uniform_attention_gradient(-0.5, 1, 10)) - 77 / 5184) < 1e-15
    chi = uniform_attention_coefficients(1, 4)
    expected = [1 / 5, 13 / 15, 127 / 60, 37 / 10, 6]
    torch.testing.assert_close(chi, torch.tensor(expected, dtype=torch.float64), rtol=1e-14, atol=0)


@pytest.mark.sampled(3)
@checks(
    uniform_attention_exponent,
    uniform_attention_constant,
    uniform_attention_asymptote,
    by="slope and level of the exact recursion between 20,000 and 200,000 steps",
)
@pytest.mark.parametrize(
    ("eigenvalue", "mix", "printed"),
    [
        (0.2, (1.0, 1.0), -0.8),
        (0.5, (1.0, 1.0), -0.5),
        (-0.5, (1.0, 1.0), -1.0),
        (-0.9, (1.0, 1.0), -1.0),
        (0.3 + 0.6j, (1.0, 1.0), -0.7),
        (0.9, (0.5, 0.5), -0.1),
        (0.9j, (0.5, 0.5), -1.0),
    ],
)
def test_the_limit_of_long_times(eigenvalue: complex, mix: tuple[float, float], printed: float) -> None:
    t, early, late = 2, 20_000, 200_000
    curve = uniform_attention_curve(eigenvalue, t, late, mix)
    slope = math.log(float(curve[late].abs() / curve[early].abs())) / math.log((t + late) / (t + early))
    assert abs(slope - float(uniform_attention_exponent(eigenvalue, mix))) < 1e-3
    assert abs(slope - printed) > 0.03  # what the document has
    ratio = curve[late] / uniform_attention_asymptote(eigenvalue, t, late, mix)
    assert abs(complex(ratio) - 1) < 1e-3


def test_negative_spectra_refute_the_printed_bound() -> None:
    """T times the norm would stay away from zero if gradients were at least of the order of 1/T."""
    spectrum = torch.tensor([-0.5, -0.3, -0.8], dtype=torch.float64)
    scaled = [k * float(uniform_attention_norm(spectrum, 1, k - 1)) for k in (50, 200, 800)]
    assert [round(value, 3) for value in scaled] == [0.203, 0.146, 0.104]


def test_the_range_of_exponents() -> None:
    radius, angle = torch.rand(2, 4000, generator=seeded(0), dtype=torch.float64)
    disc = torch.polar(radius.sqrt() * 0.999, 2 * math.pi * angle)
    assert float(uniform_attention_exponent(disc).min()) > -1.5
    half = uniform_attention_exponent(disc, (0.5, 0.5))
    assert -4 / 3 < float(half.min()) < float(half.max()) < 0
    inside = (disc - 0.5).abs() <= 0.5
    assert torch.equal(uniform_attention_exponent(disc) >= -1, inside)


def test_outside_the_circle_there_is_no_power_law() -> None:
    for function in (lambda: uniform_attention_exponent(1.0), lambda: uniform_attention_constant(1.2, 1)):
        with pytest.raises(OutsideTheory, match="inside the unit circle"):
            function()
    assert float(uniform_attention_exponent(1.0, (0.5, 0.5))) == 0
    with pytest.raises(InvalidInput, match="t must be an integer of at least 1; got 0"):
        uniform_attention_gradient(0.5, 0, 3)


def test_a_constant_too_small_for_a_number_is_refused_and_one_that_is_zero_is_not() -> None:
    for eigenvalue in (0.99, 0.999):
        with pytest.raises(OutsideTheory, match="below 1e-290"):
            uniform_attention_constant(eigenvalue, 1)
        with pytest.raises(OutsideTheory, match="exact uniform_attention_gradient"):
            uniform_attention_asymptote(eigenvalue, 1, 3000)
    assert float(uniform_attention_constant(0.5, 2, (1.0, 0.0))) == 0.0  # without attention there is no power law
