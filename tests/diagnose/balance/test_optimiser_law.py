"""What each optimiser does to the balance, measured on networks that it trains."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.diagnose import Keeps, optimiser_law

F64 = torch.float64
Make = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


def weights(n_in: int = 3, n_hidden: int = 3, n_out: int = 3) -> list[nn.Parameter]:
    generator = seeded(0)
    shapes = ((n_hidden, n_in), (n_out, n_hidden))
    return [nn.Parameter(0.7 * torch.randn(*shape, generator=generator, dtype=F64)) for shape in shapes]


def train(make: Make, n_steps: int, parameters: list[nn.Parameter] | None = None) -> tuple[Tensor, list[Tensor]]:
    """The balance matrix at the start, and the weights at the end of descent on a random linear task."""
    w1, w2 = parameters or weights()
    corr = torch.randn(w2.shape[0], w1.shape[1], generator=seeded(1), dtype=F64)
    start = (w2.mT @ w2 - w1 @ w1.mT).detach()
    optimiser = make([w1, w2])

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = (w2 @ w1 - corr).square().sum() / 2
        loss.backward()
        return loss

    for _ in range(n_steps):
        optimiser.step(closure)  # type: ignore[arg-type]
    return start, [w1.detach(), w2.detach()]


def drift(make: Callable[[float], Make], lr: float, time: float = 1.0, scales: tuple[float, float] = (1, 1)) -> float:
    w1, w2 = (parameter.detach().clone() for parameter in weights())
    _, (end1, end2) = train(make(lr), round(time / lr))
    change = (end2.mT @ end2 - w2.mT @ w2) / scales[1] - (end1 @ end1.mT - w1 @ w1.mT) / scales[0]
    return float(change.norm() / (w2.mT @ w2 - w1 @ w1.mT).norm())


def muon(lr: float, **options: Any) -> Make:
    if not hasattr(torch.optim, "Muon"):
        return lambda p: pytest.skip("torch before 2.9 has no Muon")
    return lambda p: torch.optim.Muon(p, lr=lr, **options)


def two_rates(lr: float) -> Make:
    return lambda p: torch.optim.SGD([{"params": p[:1], "lr": lr}, {"params": p[1:], "lr": 3 * lr}])


@pytest.mark.parametrize(
    ("make", "keeps", "words"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.1), Keeps.TO_SECOND_ORDER, "exactly lr^2"),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), Keeps.TO_FIRST_ORDER, "momentum"),
        (lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1), Keeps.DECAYS, "exp(-2 g t)"),
        (lambda p: torch.optim.ASGD(p, lr=0.1), Keeps.DECAYS, "exp(-2 g t)"),
        (two_rates(0.1), Keeps.WEIGHTED, "divided by its own learning rate"),
        (
            lambda p: torch.optim.SGD([{"params": p[:1], "weight_decay": 0.1}, {"params": p[1:]}], lr=0.1),
            Keeps.NOT_KEPT,
            "different rates",
        ),
        (lambda p: torch.optim.AdamW(p), Keeps.NOT_KEPT, "entry by entry"),
        (lambda p: torch.optim.Adafactor(p), Keeps.NOT_KEPT, "rows and columns"),
        (lambda p: torch.optim.LBFGS(p), Keeps.NOT_KEPT, "inverse curvature"),
        (muon(0.1), Keeps.NOT_KEPT, "polar factor"),
    ],
)
def test_the_class_and_its_settings_decide(make: Make, keeps: Keeps, words: str) -> None:
    law = optimiser_law(make(weights()))
    assert law.keeps is keeps
    assert words in law.sentence


def groups(lr: float, **options: tuple[float, float]) -> Make:
    """SGD with options of its own for each layer, rates in units of ``lr``."""
    rates = options.pop("rate", (1.0, 1.0))

    def make(p: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(
            [
                {"params": [w], "lr": lr * rates[k], **{name: both[k] for name, both in options.items()}}
                for k, w in enumerate(p)
            ]
        )

    return make


@pytest.mark.parametrize(
    ("options", "scales"),
    [
        ({"momentum": (0.8, 0.0)}, (5.0, 1.0)),
        ({"momentum": (0.5, 0.8)}, (2.0, 5.0)),
        ({"momentum": (0.5, 0.5), "dampening": (0.5, 0.0)}, (1.0, 2.0)),
        ({"momentum": (0.8, 0.0), "rate": (0.2, 1.0)}, (1.0, 1.0)),
    ],
)
def test_momentum_counts_as_a_larger_rate(options: dict[str, tuple[float, float]], scales: tuple[float, float]) -> None:
    def make(lr: float) -> Make:
        return groups(lr, **options)

    weighted = [drift(make, lr, time=0.5, scales=scales) for lr in (0.002, 0.001)]
    assert weighted[0] / weighted[1] == pytest.approx(2, rel=0.15)  # of order lr
    law = optimiser_law(make(0.1)(weights()))
    if scales[0] == scales[1]:
        assert law.keeps is Keeps.TO_FIRST_ORDER
    else:
        own = [drift(make, lr, time=0.5) for lr in (0.002, 0.001)]
        assert own[0] / own[1] == pytest.approx(1, rel=0.1)  # not kept at any rate
        assert law.keeps is Keeps.WEIGHTED
        assert "lr / (1 - momentum)" in law.sentence


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.8])
def test_with_momentum_the_balance_decays_in_a_time_of_its_own(momentum: float) -> None:
    lr, decay, n_steps = 5e-4, 0.4, 1000
    start, (w1, w2) = train(
        lambda p: torch.optim.SGD(p, lr=lr * (1 - momentum), weight_decay=decay, momentum=momentum), n_steps
    )
    end = w2.mT @ w2 - w1 @ w1.mT
    assert torch.allclose(end, start * math.exp(-2 * decay * lr * n_steps), atol=1e-2 * float(start.norm()))
    law = optimiser_law(torch.optim.SGD(weights(), lr=lr, weight_decay=decay, momentum=momentum))
    assert law.keeps is Keeps.DECAYS
    assert ("1 - momentum" in law.sentence) is (momentum > 0)


def test_layers_that_decay_alike_keep_a_decaying_weighted_balance() -> None:
    lr, n_steps = 1e-3, 1000
    first, second = (parameter.detach().clone() for parameter in weights())
    make = groups(lr, rate=(1.0, 2.0), weight_decay=(0.4, 0.2))
    _, (w1, w2) = train(make, n_steps)
    start, end = second.mT @ second / 2 - first @ first.mT, w2.mT @ w2 / 2 - w1 @ w1.mT
    assert torch.allclose(end, start * math.exp(-2 * 0.4 * lr * n_steps), atol=1e-2 * float(start.norm()))
    law = optimiser_law(make(weights()))
    assert law.keeps is Keeps.DECAYS
    assert "divided by its own learning rate" in law.sentence


def test_a_layer_without_a_rate_stands_still_and_nothing_is_kept() -> None:
    own = [drift(lambda lr: groups(lr, rate=(1.0, 0.0)), lr) for lr in (0.01, 0.005)]
    assert own[0] / own[1] == pytest.approx(1, rel=0.1)
    law = optimiser_law(groups(0.1, rate=(1.0, 0.0))(weights()))
    assert law.keeps is Keeps.NOT_KEPT
    assert "stand still" in law.sentence


def test_hooks_and_replaced_steps_are_not_taken_for_the_step_of_the_class() -> None:
    def signs(optimiser: Any, *_: Any) -> None:
        for group in optimiser.param_groups:
            for parameter in group["params"]:
                parameter.grad = parameter.grad.sign()

    hooked, after, replaced, scheduled = (torch.optim.SGD(weights(), lr=0.1) for _ in range(4))
    hooked.register_step_pre_hook(signs)
    after.register_step_post_hook(signs)
    replaced.step = lambda closure=None: None  # type: ignore[method-assign, misc, assignment]
    torch.optim.lr_scheduler.StepLR(scheduled, 5)
    for optimiser in (hooked, after, replaced):
        assert optimiser_law(optimiser).keeps is Keeps.UNKNOWN
    assert optimiser_law(scheduled).keeps is Keeps.TO_SECOND_ORDER


def test_an_optimiser_with_a_step_of_its_own_is_not_taken_for_its_base() -> None:
    class Signs(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.data -= group["lr"] * parameter.grad.sign()

    class Renamed(torch.optim.SGD):
        """The same step under another name."""

    assert optimiser_law(Signs(weights(), lr=0.1)).keeps is Keeps.UNKNOWN
    assert optimiser_law(Renamed(weights(), lr=0.1)).keeps is Keeps.TO_SECOND_ORDER
    with pytest.raises(InvalidInput, match="Did you mean 'adam'"):
        optimiser_law("adm")


def test_descent_drifts_in_proportion_to_the_rate() -> None:
    plain = [drift(lambda lr: lambda p: torch.optim.SGD(p, lr=lr), lr) for lr in (0.01, 0.005)]
    assert plain[0] / plain[1] == pytest.approx(2, rel=0.1)
    assert plain[0] < 0.05


def test_two_rates_keep_the_weighted_balance_and_no_other() -> None:
    weighted = [drift(two_rates, lr, scales=(1, 3)) for lr in (0.01, 0.005)]
    assert weighted[0] / weighted[1] == pytest.approx(2, rel=0.1)  # of order lr, as for one rate
    own = [drift(two_rates, lr) for lr in (0.01, 0.005)]
    assert own[1] > 0.1
    assert own[0] / own[1] == pytest.approx(1, rel=0.1)  # not kept at any rate


@pytest.mark.parametrize("make", [muon, lambda lr: lambda p: torch.optim.Adam(p, lr=lr)])
def test_muon_and_adam_drift_however_small_the_rate(make: Callable[[float], Make]) -> None:
    drifts = [drift(make, lr, time=0.6) for lr in (0.01, 0.005, 0.0025)]
    assert min(drifts) > 0.1
    assert drifts[2] > 0.8 * drifts[0]


def test_lbfgs_does_not_keep_it() -> None:
    start, (w1, w2) = train(lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=1), 60)
    assert float((w2.mT @ w2 - w1 @ w1.mT - start).norm() / start.norm()) > 0.05


def polar(matrix: Tensor) -> Tensor:
    u, s, vh = torch.linalg.svd(matrix, full_matrices=False)
    return (u * (s > 1e-10 * s[0])) @ vh


def n_directions(sizes: tuple[int, int, int], step: Callable[[Tensor], Tensor]) -> int:
    """How many directions of weight space the steps over 200 random errors span, at random weights."""
    n_in, n_hidden, n_out = sizes
    w1, w2 = (parameter.detach() for parameter in weights(n_in, n_hidden, n_out))
    generator = seeded(3)
    rows = []
    for _ in range(200):
        error = torch.randn(n_out, n_in, generator=generator, dtype=F64)
        rows.append(torch.cat([step(w2.mT @ error).flatten(), step(error @ w1.mT).flatten()]))
    return int(torch.linalg.matrix_rank(torch.stack(rows), rtol=1e-9))


@pytest.mark.parametrize("sizes", [(2, 1, 2), (2, 2, 2), (3, 2, 4), (3, 3, 3), (5, 3, 4)])
def test_steps_of_muon_reach_every_direction_so_that_nothing_is_conserved(sizes: tuple[int, int, int]) -> None:
    n_weights = sizes[1] * (sizes[0] + sizes[2])
    assert n_directions(sizes, polar) == n_weights
    assert n_directions(sizes, lambda gradient: gradient) < n_weights  # gradient flow leaves room for its laws


def test_aligned_layers_keep_differences_of_singular_values_under_muon() -> None:
    """Polar steps of equal size on both layers, each mode by itself."""
    c, d, s = (torch.tensor(v, dtype=F64) for v in ([0.3, 0.8], [0.9, 0.2], [2.0, 1.0]))
    u, r, v = (torch.linalg.qr(torch.randn(2, 2, generator=seeded(k), dtype=F64))[0] for k in range(3))
    w1, w2, corr = r @ torch.diag(c) @ v.mT, u @ torch.diag(d) @ r.mT, u @ torch.diag(s) @ v.mT
    for _ in range(300):
        error = w2 @ w1 - corr
        w1, w2 = w1 - 1e-3 * polar(w2.mT @ error), w2 - 1e-3 * polar(error @ w1.mT)
    kept = torch.diag(u.mT @ w2 @ r) - torch.diag(r.mT @ w1 @ v)
    assert torch.allclose(kept, d - c, atol=1e-12)
    squares = torch.diag(u.mT @ w2 @ r) ** 2 - torch.diag(r.mT @ w1 @ v) ** 2
    assert float((squares - (d**2 - c**2)).abs().max()) > 0.1
