from __future__ import annotations

import math

import pytest
import torch

from helpers import checks, seeded
from separatrix.core import InvalidInput
from separatrix.matrices import balanced_pair
from separatrix.theory import BalancedFlow, Regime, classify_regime, lazy_product, ntk_distance, plateau_loss

F64 = torch.float64


def network(n_hidden: int, balance: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = seeded(seed)
    corr = torch.randn(5, 2, dtype=F64, generator=generator)
    product = 0.3 * torch.randn(5, 2, dtype=F64, generator=generator)
    return *balanced_pair(balance, 2, n_hidden, 5, product=product, generator=generator), corr


@checks(lazy_product, by="the exact flow of a square network")
def test_lazy_networks_approach_exponentially_with_error_one_over_balance_squared(generator: torch.Generator) -> None:
    corr, product = (torch.randn(3, 3, dtype=F64, generator=generator) for _ in range(2))
    scaled = []
    for balance in (100.0, 1000.0):
        flow = BalancedFlow(*balanced_pair(balance, 3, 3, 3, product=product, generator=generator), corr)
        gap = flow.product(1 / balance) - lazy_product(1 / balance, product, corr, balance)
        scaled.append(float(gap.abs().max()) * balance**2)
    assert scaled[1] == pytest.approx(scaled[0], rel=0.05)


@checks(plateau_loss, by="the exact flow at balance 1000")
def test_the_plateau_is_what_the_heavy_layer_cannot_express() -> None:
    w1, w2, corr = network(3, 1000.0)
    flow = BalancedFlow(w1, w2, corr)
    assert float(flow.loss(0.03)) == pytest.approx(float(plateau_loss(w1, w2, corr, 1000.0)), rel=2e-3)
    mirrored = plateau_loss(w2.mT, w1.mT, corr.mT, -1000.0)
    torch.testing.assert_close(mirrored, plateau_loss(w1, w2, corr, 1000.0))


def test_large_balance_is_lazy_only_if_the_heavy_layer_is_onto() -> None:
    white = torch.eye(2, dtype=F64)
    for n_hidden, regime in ((3, Regime.DELAYED_RICH), (5, Regime.LAZY)):
        w1, w2, corr = network(n_hidden, 1000.0)
        flow = BalancedFlow(w1, w2, corr)
        moved = float(ntk_distance(*flow.representations(0.0), *flow.representations(1e9), white))
        assert (moved > 0.05) == (regime is Regime.DELAYED_RICH)
        assert classify_regime(2, n_hidden, 5, 1000.0, torch.linalg.svdvals(corr)).regime is regime


def test_the_delay_grows_with_the_balance_and_the_lazy_time_shrinks() -> None:
    times = torch.logspace(-4, 5, 400, dtype=F64)
    reached = {}
    for n_hidden in (3, 5):
        for balance in (10.0, 100.0, 1000.0):
            w1, w2, corr = network(n_hidden, balance)
            loss = BalancedFlow(w1, w2, corr).loss(times)
            reached[n_hidden, balance] = float(times[(loss < 1e-3 * loss[0]).nonzero()[0, 0]])
    assert reached[3, 1000.0] / reached[3, 100.0] == pytest.approx(10, rel=0.15)
    assert reached[5, 1000.0] / reached[5, 100.0] == pytest.approx(0.1, rel=0.15)


@checks(classify_regime, by="the exact flow at late times")
def test_the_delay_constant_is_the_rate_of_the_slowest_mode() -> None:
    w1, w2, corr = network(3, 1000.0)
    flow = BalancedFlow(w1, w2, corr)
    s = float(torch.linalg.svdvals(corr)[-1])
    late = classify_regime(2, 3, 5, 1000.0, torch.linalg.svdvals(corr)).delayed_time
    assert late == pytest.approx(1000.0 / (2 * s**2))
    # the loss of the slowest mode falls like exp(-t / delayed_time) once the others are learned
    first, second = float(flow.loss(6 * late)), float(flow.loss(7 * late))
    assert second / first == pytest.approx(math.exp(-1), rel=0.01)


@pytest.mark.parametrize(
    ("balance", "regime"),
    [(0.01, Regime.RICH), (2.0, Regime.INTERMEDIATE), (100.0, Regime.LAZY), (-100.0, Regime.LAZY)],
)
def test_square_networks_go_from_rich_to_lazy(balance: float, regime: Regime) -> None:
    found = classify_regime(3, 3, 3, balance, [3.0, 2.0, 1.0])
    assert found.regime is regime
    assert found.plateau == 0.0


def test_bottlenecks_leave_a_loss_and_zero_modes_take_for_ever() -> None:
    found = classify_regime(3, 2, 3, 100.0, [3.0, 2.0, 1.0])
    assert found.final == pytest.approx(0.5)
    assert classify_regime(3, 3, 4, 100.0, [3.0, 2.0, 0.0]).delayed_time == float("inf")


def test_bad_tasks_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one above zero"):
        classify_regime(2, 2, 2, 1.0, [0.0])
    with pytest.raises(InvalidInput, match="start must be positive"):
        classify_regime(2, 2, 2, 1.0, [1.0], start=0.0)


@pytest.mark.parametrize("start", [0.3, 1.0, 10.0])
def test_a_large_start_is_not_rich_at_balance_zero(start: float) -> None:
    assert classify_regime(3, 3, 3, 0.0, [3.0, 2.0, 1.0], start=start).regime is Regime.INTERMEDIATE
    assert classify_regime(3, 3, 3, 0.0, [3.0, 2.0, 1.0], start=0.01).regime is Regime.RICH


@checks(classify_regime, by="the kernel along the exact flow of random networks")
@pytest.mark.parametrize("n_networks", [200, pytest.param(600, marks=pytest.mark.slow)])
def test_the_start_decides_as_the_exact_kernel_does(n_networks: int) -> None:
    """Lazy means that the kernel stays, rich that it grows, whatever made it so."""
    generator, seen = seeded(5), dict.fromkeys(Regime, 0)
    white = torch.eye(3, dtype=F64)
    for trial in range(n_networks):
        n_hidden, n_out = ((3, 3), (3, 5), (5, 5))[trial % 3]
        corr = torch.linalg.qr(torch.randn(n_out, 3, dtype=F64, generator=generator))[0]
        corr = corr @ torch.diag(1 + torch.rand(3, dtype=F64, generator=generator))
        noise = torch.randn(n_out, 3, dtype=F64, generator=generator)
        size, near = 10 ** (4 * float(torch.rand((), generator=generator)) - 3), trial % 4 == 0
        product = corr + 0.05 * size * noise if near else size * noise
        balance = 0.0 if trial % 5 == 0 else 10 ** (5 * float(torch.rand((), generator=generator)) - 2)
        w1, w2 = balanced_pair(balance, 3, n_hidden, n_out, product=product, generator=generator, row_space=True)
        found = classify_regime(3, n_hidden, n_out, balance, corr, product)
        flow = BalancedFlow(w1, w2, corr, balance=balance)
        start, end = flow.ntk(0.0, white), flow.ntk(1e9, white)
        moved = float((end - start).norm() / start.norm())
        seen[found.regime] += 1
        if found.regime is Regime.LAZY:
            assert moved < 0.2, (found, moved)
        elif found.regime is Regime.RICH:
            assert moved > 5, (found, moved)  # the kernel grows with the modes
        elif found.regime is Regime.DELAYED_RICH:
            assert moved > 0.05, (found, moved)
    assert min(seen[regime] for regime in (Regime.LAZY, Regime.RICH, Regime.INTERMEDIATE)) >= n_networks // 30


def test_a_heavy_layer_that_holds_the_task_need_not_turn() -> None:
    corr = torch.zeros(5, 2, dtype=F64)
    corr[0, 0], corr[1, 1] = 2.0, 1.0
    inside, outside = 0.01 * corr, 0.01 * corr.roll(2, 0)
    assert classify_regime(2, 3, 5, 1000.0, corr, inside).regime is Regime.LAZY
    found = classify_regime(2, 3, 5, 1000.0, corr, outside)
    assert found.regime is Regime.DELAYED_RICH
    plateaus = [
        float(plateau_loss(*balanced_pair(1000.0, 2, 3, 5, product=outside, generator=seeded(seed)), corr, 1000.0))
        for seed in range(300)
    ]
    mean, error = sum(plateaus) / 300, torch.tensor(plateaus).std().item() / 300**0.5
    assert found.plateau == pytest.approx(mean, abs=4 * error)


def test_a_start_at_the_task_has_nothing_to_learn_and_shapes_are_checked() -> None:
    corr = torch.eye(2, dtype=F64)
    assert "nothing is left" in classify_regime(2, 2, 2, 0.0, corr, corr).why
    with pytest.raises(InvalidInput, match="the task as a matrix too"):
        classify_regime(2, 2, 2, 0.0, [1.0, 1.0], corr)
    with pytest.raises(InvalidInput, match="the task as a matrix too"):
        classify_regime(2, 2, 2, 0.0, corr, torch.ones(3, 2))
