from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from check_recipes.networks import Former, mlp
from separatrix.core import InvalidInput
from separatrix.diagnose import watch


def run(model: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int, every: int | None, **options: Any) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    watcher = watch(model, optimizer, every=every, **options)
    for step in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())
        loss.backward()
        watcher.note(loss)
        optimizer.step()
        yield step, watcher
    watcher.close()


def drained(*args: Any, **options: Any) -> Any:
    return [watcher for _, watcher in run(*args, **options)][-1]


X, Y = torch.randn(24, 6), torch.randint(0, 3, (24,))


def test_a_visit_sees_gradients_steps_units_and_the_head() -> None:
    watcher = drained(mlp([6, 16, 3]), X, Y, 9, 3)
    assert [visit.step for visit in watcher.visits] == [0, 3, 6]
    visit = watcher.visits[-1]
    assert set(visit.gradients) == {"0.weight", "2.weight"}
    assert 0 < visit.step_ratio < 1
    assert visit.head_spread > 0
    assert visit.dead is not None
    assert watcher.findings == []


def test_watching_does_not_change_the_training() -> None:
    weights = []
    for every in (1, None):
        torch.manual_seed(0)
        model = mlp([6, 16, 3])
        drained(model, X, Y, 6, every)
        weights.append(model[0].weight.detach().clone())
        assert not model._forward_hooks
        assert not model._forward_pre_hooks
    assert torch.equal(*weights)


def test_units_that_die_are_told_after_two_visits() -> None:
    torch.manual_seed(0)
    model = mlp([6, 16, 3])
    told = []
    for step, watcher in run(model, X, Y, 12, 1):
        if step == 5:
            model[0].bias.data.fill_(-30.0)
        told.append([finding.id for finding in watcher.findings])
    assert told[6] == []  # once is not enough
    assert "dead_units" in told[7]


def test_numbers_that_are_not_finite_are_told_at_once() -> None:
    model = mlp([6, 16, 3])
    for step, watcher in run(model, X, Y, 6, 1):
        if step == 3:
            model[2].weight.data[0, 0] = torch.nan
        last = watcher
    assert last.findings[0].severity == "fault"
    assert last.findings[0].id == "nonfinite_gradient"


def test_attention_is_seen_and_scalars_are_written() -> None:
    class Writer:
        def __init__(self) -> None:
            self.rows: list[tuple[str, float, int]] = []

        def add_scalar(self, name: str, value: float, step: int) -> None:
            self.rows.append((name, value, step))

    writer = Writer()
    x = torch.randint(0, 40, (4, 8))
    watcher = drained(Former(16, 1, causal=True), x, x, 2, 1, writer=writer)
    assert 0.9 < watcher.visits[0].entropy <= 1.0
    assert {"separatrix/entropy", "separatrix/step_ratio", "separatrix/gradient/head.weight"} <= {
        name for name, _, _ in writer.rows
    }


class Bill:
    """A clock that training and visits push on, with an account of its own; also what a visit writes to."""

    def __init__(self, price: Callable[[int], float]) -> None:
        self.now, self.trained, self.spent, self.visits, self.price = 0.0, 0.0, 0.0, 0, price
        self.shares: list[float] = []
        """At the beginning of every visit, what those before it cost."""

    def __call__(self) -> float:
        return self.now

    def train(self, seconds: float) -> None:
        self.now += seconds
        self.trained += seconds

    def add_scalar(self, name: str, value: float, step: int) -> None:
        if name == "separatrix/step_ratio":  # once a visit
            self.shares.append(self.spent / self.trained)
            self.now += self.price(self.visits)
            self.spent += self.price(self.visits)
            self.visits += 1


def billed(price: Callable[[int], float], n_steps: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Bill]:
    bill = Bill(price)
    monkeypatch.setattr(time, "process_time", bill)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    watcher = watch(model, optimizer, writer=bill)
    model.weight.grad = torch.ones_like(model.weight)
    for _ in range(n_steps):
        bill.train(1.0)
        optimizer.step()
    return watcher, bill


@pytest.mark.parametrize(
    ("price", "n_visits"),
    [
        (lambda k: 1.0, 28),
        (lambda k: 0.5 + (k % 10 == 9), 18),  # every tenth measures more
        (lambda k: 1.0 if k < 12 else 8.0, 13),  # dearer from some day on
        (lambda k: 3.0 if k == 5 else 1.0, 15),  # once disturbed
        (lambda k: 1e-4, 950),
    ],
)
def test_visits_stay_below_a_twentieth_of_the_steps(
    price: Callable[[int], float], n_visits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher, bill = billed(price, 1000, monkeypatch)
    assert bill.visits >= n_visits  # it does look
    assert max(bill.shares[2:]) <= 0.03  # none begins before those before it are paid
    assert bill.spent / bill.trained < 0.05
    assert watcher.share == pytest.approx(bill.spent / bill.trained, rel=0.1)


def test_a_dear_visit_is_followed_by_a_longer_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher, _ = billed(lambda k: 10.0 if k == 4 else 1.0, 2000, monkeypatch)
    steps = [visit.step for visit in watcher.visits]
    assert steps[:4] == pytest.approx([0, 10, 100, 133], abs=2)
    assert steps[5] - steps[4] > 10 * (steps[4] - steps[3])
    assert watcher.every == 34  # forgotten after eleven more


def test_a_step_that_waits_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine: the wall clock runs ten times as fast during visits, processor time does not."""
    monkeypatch.setattr(time, "perf_counter", lambda: pytest.fail("asked for the wall clock"))
    watcher, _ = billed(lambda k: 1.0, 100, monkeypatch)
    assert watcher.every == 34


def test_what_cannot_be_watched_is_refused() -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(InvalidInput, match="every"):
        watch(model, optimizer, every=0)
    with pytest.raises(InvalidInput, match="writer must have add_scalar"):
        watch(model, optimizer, writer="log")


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.core, self.head = nn.RNN(3, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.core(x)[0][:, -1])


def test_a_recurrent_layer_that_begins_to_explode_is_told() -> None:
    torch.manual_seed(0)
    model = _Recurrent()
    nn.init.orthogonal_(model.core.weight_hh_l0, 0.5)
    nn.init.zeros_(model.core.bias_hh_l0)
    nn.init.zeros_(model.core.bias_ih_l0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x, y = torch.randn(6, 12, 3) * 1e-5, torch.randint(0, 2, (6,))
    with watch(model, optimizer, every=1) as watcher:
        for step in range(31):
            if step == 5:
                model.core.weight_hh_l0.data.mul_(4.0)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    rates = [visit.rate for visit in watcher.visits if visit.rate is not None]
    assert len(rates) == 4
    assert rates[0] == pytest.approx(math.log(0.5), abs=0.1)
    assert 0.3 < rates[1] < math.log(2.0) + 0.1  # tanh bends once the state has grown
    assert "time_growth" in [finding.id for finding in watcher.findings]
