from __future__ import annotations

import pytest
import torch

from helpers import checks
from separatrix.core import InvalidInput, ShapeError
from separatrix.dynamics import LinearNetworkFlow, integrate_layers
from separatrix.matrices import balanced_factors, balanced_pair
from separatrix.tasks import white_regression
from separatrix.theory import BalancedFlow, TaskSequence, best_stopping_time, converged_forgetting, loss_rate, task_loss

F64 = torch.float64
OLD = torch.diag(torch.tensor([1.0, 2.0], dtype=F64))
NEW = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=F64)
START = torch.tensor([[0.3, -0.2], [0.1, 0.4]], dtype=F64)


def after_old(balance: float) -> BalancedFlow:
    w1, w2 = balanced_factors(START, balance, 2)
    return BalancedFlow(*BalancedFlow(w1, w2, OLD).factors(1e3), NEW)


@checks(TaskSequence.product, TaskSequence.losses, TaskSequence.forgetting, by="DOP853 from task to task")
def test_a_sequence_of_tasks_follows_integration(generator: torch.Generator) -> None:
    tasks = torch.randn(3, 3, 2, dtype=F64, generator=generator)
    w1, w2 = balanced_pair(1.0, 2, 3, 3, scale=0.5, generator=generator)
    sequence = TaskSequence(w1, w2, tasks, [1.0, 2.0, 1.5])
    state = (w1, w2)
    products = []
    for task, length in zip(tasks, (1.0, 2.0, 1.5), strict=True):
        path = integrate_layers(LinearNetworkFlow(task), state, [0.5, length], rtol=1e-12, atol=1e-14)
        state = tuple(layer[-1] for layer in path.layers)
        products.append(path.product)
    expected = torch.cat(products)
    found = sequence.product([0.5, 1.0, 1.5, 3.0, 3.5, 4.5])
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)
    increase = task_loss(expected[-1], tasks) - task_loss(expected[1], tasks)
    torch.testing.assert_close(sequence.forgetting(4.5, learned=0), increase, atol=1e-9, rtol=0)
    losses = sequence.losses([0.5, 4.5])
    assert losses.shape == (3, 2)
    torch.testing.assert_close(losses[1, 1], task_loss(expected[-1], tasks[1]), atol=1e-10, rtol=0)


@checks(converged_forgetting, by="the exact sequence after long training")
def test_forgetting_between_converged_tasks(generator: torch.Generator) -> None:
    tasks = torch.randn(2, 3, 3, dtype=F64, generator=generator)
    w1, w2 = balanced_pair(2.0, 3, 3, 3, generator=generator)
    forgotten = TaskSequence(w1, w2, tasks, 200.0).forgetting(400.0, learned=0)
    assert float(forgotten[0]) == pytest.approx(float(converged_forgetting(tasks[0], tasks[0], tasks[1])), abs=1e-9)
    assert float(forgotten[1]) == pytest.approx(float(converged_forgetting(tasks[1], tasks[0], tasks[1])), abs=1e-9)


@checks(loss_rate, by="central differences")
@pytest.mark.parametrize(("shape", "balance"), [((3, 3, 3), 5.0), ((2, 3, 4), 1.0), ((4, 2, 3), -2.0)])
def test_rates_are_derivatives_of_the_loss(
    shape: tuple[int, int, int], balance: float, generator: torch.Generator
) -> None:
    n_in, n_hidden, n_out = shape
    task, other = (torch.randn(n_out, n_in, dtype=F64, generator=generator) for _ in range(2))
    flow = BalancedFlow(*balanced_pair(balance, n_in, n_hidden, n_out, scale=0.5, generator=generator), task, 2.0)
    width = 1e-5
    ahead, behind = (task_loss(flow.product(0.4 + step), other) for step in (width, -width))
    rate = loss_rate(flow.product(0.4), *flow.representations(0.4), task, other, 2.0)
    assert float(rate) == pytest.approx(float((ahead - behind) / (2 * width)), rel=1e-7)


@checks(task_loss, by="the loss of the samples")
def test_loss_from_correlations_is_that_of_the_samples(generator: torch.Generator) -> None:
    task = white_regression(3, 2, 9, generator=generator)
    product = torch.randn(2, 3, dtype=F64, generator=generator)
    sampled = (task.inputs @ product.mT - task.targets).square().sum() / 18
    constant = task.targets.square().sum() / 18 - task.corr_yx.square().sum() / 2
    assert float(task_loss(product, task.corr_yx) + constant) == pytest.approx(float(sampled))


@pytest.mark.parametrize(
    ("balance", "time", "loss"), [(0.0, 0.43357, 2.77988), (2.0, 0.24838, 2.75715), (-2.0, 0.24838, 2.75715)]
)
def test_known_stopping_times(balance: float, time: float, loss: float) -> None:
    found = best_stopping_time(after_old(balance), OLD)
    assert float(found.best_time) == pytest.approx(time, abs=2e-5)
    assert float(found.best_loss) == pytest.approx(loss, abs=2e-5)


def test_lazy_networks_reach_the_bound_and_stop_at_log_two_over_the_balance() -> None:
    found = best_stopping_time(after_old(1000.0), OLD)
    assert float(found.best_loss) == pytest.approx(float((OLD - NEW).square().sum() / 4), rel=1e-4)
    assert float(found.best_time) == pytest.approx(0.6931 / 1000, rel=0.01)


def test_a_batch_of_networks_has_its_own_times() -> None:
    flows = [after_old(balance) for balance in (2.0, 50.0)]
    starts = [flow.factors(0.0) for flow in flows]
    both = BalancedFlow(torch.stack([s[0] for s in starts]), torch.stack([s[1] for s in starts]), NEW)
    found = best_stopping_time(both, OLD, budget=1.0)
    for index, flow in enumerate(flows):
        alone = best_stopping_time(flow, OLD, budget=1.0)
        assert float(found.best_time[index]) == pytest.approx(float(alone.best_time), rel=1e-5)
        assert float(found.budget_time[index]) == pytest.approx(float(alone.budget_time), rel=1e-9)
        spent = task_loss(flow.product(float(alone.budget_time)), OLD)
        assert float(spent) == pytest.approx(1.0, abs=1e-9)
        equal = flow.product(float(alone.equal_time))
        assert float(task_loss(equal, OLD)) == pytest.approx(float(task_loss(equal, NEW)), abs=1e-9)


def test_without_a_budget_it_is_never_spent() -> None:
    assert float(best_stopping_time(after_old(2.0), OLD).budget_time) == float("inf")


def test_bad_sequences_are_refused() -> None:
    w1, w2 = balanced_factors(START, 1.0, 2)
    with pytest.raises(ShapeError, match="tasks must have shape"):
        TaskSequence(w1, w2, OLD, 1.0)
    with pytest.raises(InvalidInput, match="durations must be positive"):
        TaskSequence(w1, w2, torch.stack([OLD, NEW]), [1.0, -1.0])
    with pytest.raises(InvalidInput, match="t must not be negative"):
        TaskSequence(w1, w2, torch.stack([OLD, NEW]), 1.0).product(-1.0)
    with pytest.raises(InvalidInput, match="weights must not be negative"):
        best_stopping_time(after_old(1.0), OLD, weights=(-1.0, 1.0))
    with pytest.raises(ShapeError, match="old_task must be"):
        best_stopping_time(after_old(1.0), torch.ones(3, 3))
