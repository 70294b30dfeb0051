from __future__ import annotations

import math

import pytest
import scipy.integrate
import torch
from hypothesis import given, settings, strategies as st

from helpers import checks
from separatrix.core import InvalidInput, OutsideTheory
from separatrix.dynamics import LinearNetworkFlow, integrate_layers
from separatrix.matrices import aligned_balanced_pair
from separatrix.theory import (
    BalancedFlow,
    aligned_mode,
    aligned_sides,
    aligned_strength,
    deep_time_to_reach,
    shallow_product,
    time_to_reach,
    zero_balanced_strength,
)

F64 = torch.float64


def integrate(sides: list[float], s: float, times: list[float]) -> torch.Tensor:
    """A chain of scalars, one per layer: (times, layers)."""
    layers = [torch.tensor([[side]], dtype=F64) for side in sides]
    path = integrate_layers(LinearNetworkFlow(torch.tensor([[s]], dtype=F64)), layers, times, rtol=1e-12, atol=1e-14)
    return torch.stack([layer[:, 0, 0] for layer in path.layers], dim=1)


@pytest.mark.sampled(6)
@checks(aligned_mode, aligned_strength, by="DOP853 at rtol 1e-12")
@pytest.mark.parametrize(
    "balance",
    [0.0, 1e-3, -0.5, 3.0, -40.0, *(pytest.param(b, marks=pytest.mark.slow) for b in (-1e-3, 0.5, -3.0, 40.0))],
)
@pytest.mark.parametrize(("start", "s"), [(0.1, 2.0), (-0.3, 1.0), (0.4, 0.0), (2.5, 1.0)])
def test_both_sides_of_a_mode_follow_integration(balance: float, start: float, s: float) -> None:
    sides = [float(side) for side in aligned_sides(start, balance)]
    times = [0.1, 0.7, 2.0]
    found = torch.stack(aligned_mode(times, *sides, s), dim=1)
    size = max(1.0, abs(balance) ** 0.5)
    assert (found - integrate(sides, s, times)).abs().max() < 1e-9 * size  # the integrator's error


@pytest.mark.parametrize(
    ("balance", "early", "late"),
    [
        (0.0, 0.250321995997, 1.483682674321),
        (0.5, 0.409095111834, 1.708439763236),
        (-4.0, 1.364241150267, 1.989262163417),
    ],
)
def test_known_strengths(balance: float, early: float, late: float) -> None:
    found = aligned_strength([0.25, 1.0], 0.1, 2.0, balance)
    assert found.tolist() == pytest.approx([early, late], abs=1e-11)


def test_inputs_that_are_not_white_but_aligned_only_rescale_each_mode() -> None:
    found = aligned_strength(0.4, [0.1, 0.2], [3 / 2, 1 / 0.5], 0.7, tau=[1 / 2, 1 / 0.5])
    assert found.tolist() == pytest.approx([1.024525578, 0.5290680324], abs=1e-9)
    w1, w2 = (torch.diag(side) for side in aligned_sides([0.1, 0.2], 0.7))
    inputs = torch.diag(torch.tensor([2.0, 0.5], dtype=F64))
    path = integrate_layers(LinearNetworkFlow(torch.diag(torch.tensor([3.0, 1.0], dtype=F64)), inputs), (w1, w2), [0.4])
    torch.testing.assert_close(path.product[0].diagonal(), found, atol=1e-8, rtol=0)


@checks(aligned_sides, by="the two equations that define them")
@pytest.mark.parametrize("balance", [0.0, 1e-6, -1e-6, 2.0, -2.0, 1e4, -1e4])
def test_sides_have_the_strength_and_the_balance(balance: float) -> None:
    strength = torch.tensor([-3.0, -1e-3, 0.0, 1e-3, 3.0], dtype=F64)
    c, d = aligned_sides(strength, balance)
    assert bool((d >= 0).all())
    torch.testing.assert_close(c * d, strength, atol=1e-14, rtol=1e-12)
    torch.testing.assert_close(d**2 - c**2, torch.full_like(c, balance), atol=1e-12, rtol=1e-12)


def test_late_times_and_large_balances_reach_the_task_exactly() -> None:
    assert float(aligned_strength(1e6, 0.1, 2.0, 1e3)) == pytest.approx(2.0, abs=1e-15)
    assert float(aligned_strength(1e300, 0.1, 2.0, -1e3)) == pytest.approx(2.0, abs=1e-15)


def test_aligned_networks_are_the_diagonal_of_the_general_solution(generator: torch.Generator) -> None:
    corr = torch.randn(4, 3, dtype=F64, generator=generator)
    w1, w2 = aligned_balanced_pair(-0.8, corr, 3, scale=0.5, generator=generator)
    u, s, vh = torch.linalg.svd(corr, full_matrices=False)
    start = (u.mT @ w2 @ w1 @ vh.mT).diagonal()
    turned = u.mT @ BalancedFlow(w1, w2, corr).product(0.9) @ vh.mT
    torch.testing.assert_close(turned, torch.diag(aligned_strength(0.9, start, s, -0.8)), atol=1e-12, rtol=0)


@checks(zero_balanced_strength, by="DOP853 at rtol 1e-12")
def test_zero_balance_grows_like_a_sigmoid() -> None:
    times = [0.25, 1.0, 3.0]
    for start, s in ((0.1, 2.0), (0.5, 0.0), (3.0, 1.0)):
        expected = integrate([math.sqrt(start)] * 2, s, times).prod(dim=1)
        torch.testing.assert_close(zero_balanced_strength(times, start, s), expected, atol=1e-10, rtol=0)
    assert float(zero_balanced_strength(5.0, 0.0, 2.0)) == 0.0


@checks(time_to_reach, by="quadrature of the rate")
@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 0.9), st.floats(0.01, 0.95), st.floats(0.2, 4.0), st.sampled_from([0.0, 0.3, -0.3, 5.0, -5.0]))
def test_time_to_reach_is_the_integral_of_one_over_speed(a: float, b: float, s: float, balance: float) -> None:
    start, goal = sorted((a * s, b * s))
    expected = scipy.integrate.quad(lambda x: 1 / (math.hypot(balance, 2 * x) * (s - x)), start, goal, epsabs=1e-13)[0]
    assert float(time_to_reach(start, goal, s, balance)) == pytest.approx(expected, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(
    ("balance", "expected"),
    [(0.0, 1.472219489583), (0.5, 1.291342181057), (-0.5, 1.291342181057), (4.0, 0.601569409650)],
)
def test_known_times(balance: float, expected: float) -> None:
    assert float(time_to_reach(0.1, 1.9, 2.0, balance)) == pytest.approx(expected, abs=1e-11)


def test_time_to_reach_close_to_the_goal_keeps_its_digits() -> None:
    gap = 1e-12
    later = float(time_to_reach(0.1, 2.0 - gap, 2.0, 3.0)) - float(time_to_reach(0.1, 2.0 - 2 * gap, 2.0, 3.0))
    assert later == pytest.approx(math.log(2) / 5.0, rel=1e-3)  # the last stretch is exponential at rate K = 5


@checks(deep_time_to_reach, by="DOP853 at rtol 1e-12")
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_deep_modes_arrive_when_integration_says(depth: int) -> None:
    start, s = 0.125, 2.0
    goal = float(integrate([start ** (1 / depth)] * depth, s, [0.6]).prod())
    assert deep_time_to_reach(start, goal, s, depth) == pytest.approx(0.6, abs=1e-9)


def test_known_deep_numbers() -> None:
    assert deep_time_to_reach(0.125, 1.85211325, 2.0, 3) == pytest.approx(1.0, abs=1e-7)
    chain = integrate([1.5, 0.5, 0.5], 2.0, [0.5, 1.0])
    assert chain.prod(dim=1).tolist() == pytest.approx([1.800540175, 1.9965222017], abs=1e-9)
    assert (chain[:, 0] ** 2 - chain[:, 1] ** 2).tolist() == pytest.approx([2.0, 2.0], abs=1e-10)


@checks(shallow_product, by="DOP853 on one layer")
def test_one_layer_decays_exponentially_for_any_inputs(generator: torch.Generator) -> None:
    weight, corr = (torch.randn(2, 3, dtype=F64, generator=generator) for _ in range(2))
    x = torch.randn(3, 2, dtype=F64, generator=generator)
    for inputs in (None, x @ x.mT):  # the second is singular
        path = integrate_layers(LinearNetworkFlow(corr, inputs), (weight,), [0.5, 2.0], rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(shallow_product([0.5, 2.0], weight, corr, inputs), path.product, atol=1e-10, rtol=0)


def test_impossible_journeys_are_refused() -> None:
    with pytest.raises(OutsideTheory, match="goal must lie between"):
        time_to_reach(0.1, 2.0, 2.0, 1.0)
    with pytest.raises(OutsideTheory, match="balance zero must start above zero"):
        time_to_reach(0.0, 1.0, 2.0, 0.0)
    with pytest.raises(OutsideTheory, match="0 < strength <= goal < task_s"):
        deep_time_to_reach(1.0, 0.5, 2.0, 3)
    with pytest.raises(InvalidInput, match="must not be negative"):
        aligned_strength(-1.0, 0.1, 1.0, 0.0)
    with pytest.raises(OutsideTheory, match="aligned_strength covers a negative start"):
        zero_balanced_strength(1.0, -0.1, 1.0)
