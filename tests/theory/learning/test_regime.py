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


def kernel_moved(
    n_hidden: int, balance: float, corr: torch.Tensor, product: torch.Tensor, time: float = 80.0, step: float = 0.02
) -> float:
    """Relative change of the tangent kernel along descent of a network, step by step."""
    u, s, vh = torch.linalg.svd(product)
    root = torch.hypot(torch.tensor(balance, dtype=F64), 2 * s[:n_hidden])
    w1 = torch.diag(((root - balance) / 2).sqrt()) @ vh[:n_hidden]
    w2 = u[:, :n_hidden] @ torch.diag(((root + balance) / 2).sqrt())

    def kernel(w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
        eye_in, eye_out = (torch.eye(size, dtype=F64) for size in (w1.shape[1], w2.shape[0]))
        return torch.kron(w2 @ w2.mT, eye_in) + torch.kron(eye_out, w1.mT @ w1)

    start, step = kernel(w1, w2), step / (1 + abs(balance))
    for _ in range(round(time / step)):
        error = corr - w2 @ w1
        w1, w2 = w1 + step * w2.mT @ error, w2 + step * error @ w1.mT
    return float((kernel(w1, w2) - start).norm() / start.norm())


@pytest.mark.sampled(1, each="balance")
@checks(classify_regime, by="the kernel along gradient descent of bottlenecks")
@pytest.mark.parametrize("sizes", [(3, 2, 3), (4, 2, 3), (3, 1, 2), (3, 2, 5)])
@pytest.mark.parametrize("balance", [0.0, 3.0])
def test_what_a_bottleneck_cannot_learn_does_not_count(sizes: tuple[int, int, int], balance: float) -> None:
    n_in, n_hidden, n_out = sizes
    generator = seeded(7)
    u, _, vh = torch.linalg.svd(torch.randn(n_out, n_in, dtype=F64, generator=generator), full_matrices=False)
    s = torch.tensor([2.0, 1.5, 0.01])[-len(u.mT) :] if n_hidden == 2 else torch.tensor([1.5, 0.01])
    corr = u @ torch.diag(s.to(F64)) @ vh
    best = (u[:, :n_hidden] * s[:n_hidden].to(F64)) @ vh[:n_hidden]
    near = classify_regime(n_in, n_hidden, n_out, balance, corr, 0.99 * best)
    assert kernel_moved(n_hidden, balance, corr, 0.99 * best) < 0.05
    assert near.regime is Regime.LAZY
    if balance == 0:
        noise = torch.randn(n_out, n_in, dtype=F64, generator=generator)
        left, size, right = torch.linalg.svd(noise, full_matrices=False)
        small = 1e-3 * (left[:, :n_hidden] * size[:n_hidden]) @ right[:n_hidden]
        assert kernel_moved(n_hidden, balance, corr, small) > 50
        assert classify_regime(n_in, n_hidden, n_out, balance, corr, small).regime is Regime.RICH


def test_a_task_of_few_modes_is_rich_from_a_small_start_of_many() -> None:
    generator = seeded(3)
    noise, left, right = (torch.randn(3, k, dtype=F64, generator=generator) for k in (3, 1, 1))
    corr, small = 2 * left @ right.mT / (left.norm() * right.norm()), 1e-3 * noise
    assert kernel_moved(3, 0.0, corr, small) > 50
    found = classify_regime(3, 3, 3, 0.0, corr, small)
    assert found.regime is Regime.RICH
    assert found.lazy_time == pytest.approx(1 / 4)  # not that of the zeros of its spectrum, which rounding moves
    assert classify_regime(3, 3, 3, 0.0, torch.linalg.svdvals(corr), 1e-3).regime is Regime.RICH


@pytest.mark.parametrize("sizes", [(3, 2, 3), (4, 2, 3), (3, 1, 2)])
def test_a_strong_mode_that_a_bottleneck_cannot_learn_does_not_make_it_turn(sizes: tuple[int, int, int]) -> None:
    n_in, n_hidden, n_out = sizes
    corr = torch.zeros(n_out, n_in, dtype=F64)
    for k in range(min(n_in, n_out)):
        corr[k, k] = 2.0 - 0.4 * k
    best = corr.clone()
    best[n_hidden:] = 0
    assert kernel_moved(n_hidden, 3.0, corr, 0.99 * best) < 0.05
    assert classify_regime(n_in, n_hidden, n_out, 3.0, corr, 0.99 * best).regime is Regime.LAZY
    found = classify_regime(n_in, n_hidden, n_out, 1000.0, corr, 0.01 * corr.roll(1, 0) * (best != 0).roll(1, 0))
    assert found.regime is Regime.DELAYED_RICH


def test_a_bottleneck_turns_to_the_strongest_of_modes_that_are_nearly_equal() -> None:
    """Little is gained by it, but the kernel does not stay."""
    corr = torch.diag(torch.tensor([1.5, 1.47, 1.4], dtype=F64))
    start = torch.zeros(3, 3, dtype=F64)
    start[:2, 0] = 1e-3  # the heavy layer lies between the first two modes
    assert kernel_moved(1, 20.0, corr, start, time=1000.0, step=1.0) > 0.5
    assert classify_regime(3, 1, 3, 20.0, corr, start).regime is Regime.DELAYED_RICH


@pytest.mark.parametrize("balance", [math.nan, math.inf, True, "large"])
def test_a_balance_that_is_no_number_has_no_regime(balance: float) -> None:
    with pytest.raises(InvalidInput, match="balance"):
        classify_regime(2, 2, 2, balance, [2.0, 1.0])


def test_tasks_and_starts_that_the_sizes_do_not_allow_are_refused() -> None:
    eye = torch.eye(3, dtype=F64)
    with pytest.raises(InvalidInput, match="at most 2 singular values"):
        classify_regime(2, 2, 3, 1.0, [3.0, 2.0, 1.0])
    with pytest.raises(InvalidInput, match=r"shape \(n_out, n_in\) = \(3, 2\)"):
        classify_regime(2, 2, 3, 1.0, eye)
    with pytest.raises(InvalidInput, match="rank 3, and 2 hidden units"):
        classify_regime(3, 2, 3, 1.0, eye, eye)
