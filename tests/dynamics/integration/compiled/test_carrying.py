"""Trajectories by the compiled loop end as those by torch do, and the same in every bit whatever their company."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch

from separatrix.core import Outcome, use_backend
from separatrix.core.arithmetic.backend import has_numba
from separatrix.dynamics import AttentionFlow, Trajectory, find_clusters, integrate, random_tokens
from separatrix.dynamics.integration.compiled import carrying

pytestmark = pytest.mark.skipif(not has_numba(), reason="needs numba: install separatrix[fast]")


def fixed(number: int) -> torch.Generator:
    """The same cases whatever ``--seed`` is: beside a separatrix a rounding decides, and two loops may differ."""
    return torch.Generator().manual_seed(number)


def both(flow: AttentionFlow, x: torch.Tensor, preset: str = "default", **options: Any) -> tuple[Trajectory, ...]:
    runs = []
    for name in ("numba", "torch"):
        with use_backend(name):  # type: ignore[arg-type]
            runs.append(integrate(flow, x, preset, **options))
    assert [run.backend for run in runs] == ["numba", "torch"]
    return tuple(runs)


def drawn(d: int, seed: int, *, kind: str = "any", beta: float = 1.0) -> AttentionFlow:
    generator = fixed(seed)
    coupling, value = (torch.randn(d, d, generator=generator, dtype=torch.float64) for _ in range(2))
    if kind == "symmetric":  # and a coupling under which no motion turns for long
        coupling, value = torch.eye(d, dtype=torch.float64), (value + value.mT) / 2
    return AttentionFlow.from_coupling(coupling, value, beta)


@pytest.mark.parametrize("preset", ["fast", "default", "reference"])
def test_ends_and_partitions_are_those_of_torch(preset: str) -> None:
    for d, n, beta in ((2, 1, 1.0), (2, 2, 5.0), (3, 10, 0.1), (4, 7, 30.0), (6, 20, 1000.0)):
        flow = drawn(d, 10 * d + n, kind="symmetric", beta=beta)
        ours, theirs = both(flow, random_tokens(n, d, 3, generator=fixed(n)), preset)
        assert torch.equal(ours.outcome, theirs.outcome)
        assert (ours.final - theirs.final).abs().max() <= 1e-6
        labels = [find_clusters(run.final).labels for run in (ours, theirs)]
        assert torch.equal(*labels)


def test_a_rotation_ends_in_the_same_cycle() -> None:
    value = torch.tensor([[1.0, 2.0, 0.3], [-2.0, 1.0, 0.1], [0.0, 0.0, -0.5]], dtype=torch.float64)
    flow = AttentionFlow.from_coupling(torch.eye(3, dtype=torch.float64), value)
    ours, theirs = both(flow, random_tokens(4, 3, 2, generator=fixed(5)))
    assert ours.outcome.tolist() == theirs.outcome.tolist() == [int(Outcome.CYCLE)] * 2
    assert torch.allclose(ours.period, theirs.period, rtol=1e-6)


@pytest.mark.parametrize("preset", ["fast", "default"])
def test_states_at_a_time_agree_to_the_tolerance(preset: str) -> None:
    for seed in range(4):
        flow = drawn(4, seed)
        x = random_tokens(9, 4, 3, generator=fixed(seed))
        exact = integrate(flow, x, "reference", t_max=1.0, tol=0.0, finishing=False, rtol=1e-8)
        for run in both(flow, x, preset, t_max=1.0, tol=0.0, finishing=False):
            assert (run.final - exact.final).abs().max() <= (2e-2 if preset == "fast" else 1e-3)
            assert torch.equal(run.time, torch.ones(3, dtype=torch.float64))


@pytest.mark.slow
def test_steps_and_costs_are_counted_as_by_torch() -> None:
    flow, x = drawn(3, 1, kind="symmetric"), random_tokens(5, 3, 4, generator=fixed(1))
    for options in ({"finishing": False}, {}):
        ours, theirs = both(flow, x, "reference", merging=False, **options)
        assert (ours.steps - theirs.steps).abs().max() <= 2  # a rounding may cost a rejection
        assert torch.equal(ours.evaluations, 6 * ours.steps)
        assert (ours.rejected_steps <= ours.steps).all()
    capped, _ = both(flow, x, max_steps=3)
    assert capped.steps.tolist() == [3] * 4
    assert capped.outcome.tolist() == [int(Outcome.OUT_OF_STEPS)] * 4


def test_bits_do_not_depend_on_batch_or_threads() -> None:
    generator = fixed(2)
    coupling, value = (torch.randn(3, 1, 3, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    flow = AttentionFlow.from_coupling(coupling, value)
    x = random_tokens(30, 3, 3, 7, generator=generator)
    before, runs = torch.get_num_threads(), []
    try:
        for n_threads in (1, 3):
            torch.set_num_threads(n_threads)
            with use_backend("numba"):
                runs.append(integrate(flow, x, finishing=False, tol=1e-3))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(runs[0].final, runs[1].final)
    assert torch.equal(runs[0].steps, runs[1].steps)
    with use_backend("numba"):
        for i, j in ((0, 0), (1, 4), (2, 6)):
            own = AttentionFlow.from_coupling(coupling[i, 0], value[i, 0])
            alone = integrate(own, x[i, j], finishing=False, tol=1e-3)
            assert torch.equal(alone.final, runs[0].final[i, j])
            assert float(alone.time) == float(runs[0].time[i, j])


@pytest.mark.slow
def test_a_trajectory_that_must_be_looked_at_does_not_send_the_others_back(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = fixed(0)
    coupling, value = (torch.randn(3, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    beta = torch.tensor([1.0, 300.0, 1.0], dtype=torch.float64)  # the second has small steps
    flow = AttentionFlow.from_coupling(coupling, value @ value.mT, beta)
    x = random_tokens(8, 3, 3, generator=generator)
    kernels, carried = carrying.loops(), []
    carry = kernels.carry

    def counted(first: int, last: int, *rest: Any) -> None:
        carried.append(last - first)
        carry(first, last, *rest)

    monkeypatch.setattr(kernels, "carry", counted)
    with use_backend("numba"):
        together = integrate(flow, x, finishing=False, tol=1e-2)
        assert carried[0] == 3
        assert len(carried) > 2  # it was looked at
        assert set(carried[1:]) == {1}
        for i in range(3):
            own = AttentionFlow.from_coupling(coupling, value @ value.mT, beta[i])
            alone = integrate(own, x[i], finishing=False, tol=1e-2)
            for name in ("final", "outcome", "residual", "time", "steps", "rejected_steps", "evaluations"):
                assert torch.equal(getattr(together, name)[i], getattr(alone, name)), name


def test_threads_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    used: list[int] = []

    class Counted(carrying.ThreadPoolExecutor):
        def __init__(self, n: int) -> None:
            used.append(n)
            super().__init__(n)

    monkeypatch.setattr(carrying, "ThreadPoolExecutor", Counted)
    with use_backend("numba"):
        assert integrate(drawn(3, 4), random_tokens(40, 3, 8, generator=fixed(3)), finishing=False).backend == "numba"
    assert used
    assert set(used) <= {2, 3}


def test_special_starts_end_as_by_torch() -> None:
    flow = AttentionFlow.from_coupling(torch.eye(3), torch.diag(torch.tensor([2.0, 1.0, -1.0]))).to(torch.float64)
    e = torch.eye(3, dtype=torch.float64)
    beside = flow.project(e[0] + 1e-5 * torch.randn(6, 3, generator=fixed(8), dtype=torch.float64))
    for x in (
        e[:1].expand(6, 3),  # equal, at rest
        torch.stack([e[0], -e[0]]).repeat(3, 1),  # antipodal, at rest
        beside,  # merged after a few steps
        beside[:1],
        torch.stack([e[1], flow.project((e[0] + 0.1 * e[1])[None])[0]]),
    ):
        ours, theirs = both(flow, x.clone())
        assert torch.equal(ours.outcome, theirs.outcome)
        assert (ours.final - theirs.final).abs().max() <= 1e-8


@pytest.mark.slow
def test_values_of_zero_and_of_any_unit_are_followed() -> None:
    x = random_tokens(5, 3, generator=fixed(9))
    still = AttentionFlow.from_coupling(torch.eye(3).double(), torch.zeros(3, 3).double())
    ours, theirs = both(still, x, finishing=False)
    assert (ours.final - x).abs().max() <= 1e-15
    assert torch.equal(ours.outcome, theirs.outcome)
    value = torch.diag(torch.tensor([2.0, 1.0, -1.0], dtype=torch.float64))
    for unit in (1e-12, 1e12):
        flow = AttentionFlow.from_coupling(torch.eye(3).double(), unit * value)
        ours, theirs = both(flow, x)
        assert torch.equal(ours.outcome, theirs.outcome)
        assert (ours.final - theirs.final).abs().max() <= 1e-6


def test_weights_without_a_number_in_float32_are_reported_as_lost() -> None:
    flow = AttentionFlow.from_coupling(1e37 * torch.eye(3).double(), torch.eye(3).double(), 100.0)
    x = random_tokens(4, 3, 2, generator=fixed(4))
    ours, theirs = both(flow, x, finishing=False, max_steps=50)
    assert ours.outcome.tolist() == theirs.outcome.tolist() == [int(Outcome.NON_FINITE)] * 2
    assert torch.isnan(ours.final).all()
    assert torch.isnan(ours.residual).all()


def test_rows_that_stand_for_several_tokens_move_as_by_torch() -> None:
    sizes = torch.tensor([3.0, 1.0, 0.0, 5.0], dtype=torch.float64)
    flow = drawn(3, 21, kind="symmetric").with_sizes(sizes)
    x = random_tokens(4, 3, 2, generator=fixed(21))
    for options in ({}, {"finishing": False, "tol": 1e-3}):
        ours, theirs = both(flow, x, "reference", **options)
        assert torch.equal(ours.outcome, theirs.outcome)
        live = sizes > 0
        assert (ours.final - theirs.final)[:, live].abs().max() <= 1e-5


def test_starts_in_single_precision_are_taken() -> None:
    flow = drawn(3, 2, kind="symmetric").to(torch.float32)
    x = random_tokens(6, 3, 2, generator=fixed(1), dtype=torch.float32)
    ours, theirs = both(flow, x)
    assert torch.equal(ours.outcome, theirs.outcome)
    assert (ours.final - theirs.final).abs().max() <= 1e-5  # one of them is slow, and stops at the limit of time


def test_merged_tokens_share_a_row_and_keep_their_labels() -> None:
    recorded: list[numpy.ndarray] = []
    true = carrying.Carrier.carry

    def carry(self: Any, cargo: Any) -> None:
        true(self, cargo)
        recorded.append(cargo.counts[:, cargo.kernels.ROWS].copy())

    flow = AttentionFlow.from_coupling(torch.eye(4).double(), torch.diag(torch.tensor([2.0, 1.0, 0.5, -1.0])).double())
    x = random_tokens(40, 4, 2, generator=fixed(6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carrying.Carrier, "carry", carry)
        ours, theirs = both(flow, x)
    assert min(rows.min() for rows in recorded) < 20
    assert (ours.final - theirs.final).abs().max() <= 1e-8
    assert ours.final.shape == x.shape


@pytest.mark.parametrize("finishing", [False, True])
def test_only_the_shares_of_sizes_matter(finishing: bool) -> None:
    x = random_tokens(4, 3, generator=fixed(12))
    sizes = torch.tensor([1.0, 3.0, 2.0, 5.0], dtype=torch.float64)
    rough: dict[str, Any] = {"t_max": 0.8, "tol": 0.0, "finishing": finishing}
    exact = integrate(drawn(3, 12).with_sizes(sizes), x, "reference", **rough)
    for factor in (1e-300, 1e-60, 1e-40, 1e60):  # in float32 these would be nothing, or infinite
        for run in both(drawn(3, 12).with_sizes(factor * sizes), x, **rough):
            assert (run.final - exact.final).abs().max() <= 1e-3
    sizes[1] = 1e-50  # too small for float32, and still a token that moves
    for run in both(drawn(3, 12).with_sizes(sizes), x, **rough):
        assert (run.final - x).norm(dim=-1).min() > 1e-2
