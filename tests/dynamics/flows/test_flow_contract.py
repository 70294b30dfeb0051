"""Promises that every flow keeps, on the sphere or not. A new flow adds one line to CASES."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from attention_cases import clustering_flow
from separatrix.core import InvalidInput, Outcome
from separatrix.dynamics import (
    AbstractFlow,
    AbstractSphereFlow,
    AttentionFlow,
    LinearNetworkFlow,
    OjaFlow,
    TimeVaryingFlow,
    VariationalFlow,
    integrate,
    lyapunov_exponents,
)
from stranger_flows import CubicMean, Lorenz, Pendulum, VanDerPol


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def turning(t: Tensor) -> AttentionFlow:
    """Attention whose value matrix turns in time."""
    turn = torch.stack([torch.stack([t.cos(), t.sin()], -1), torch.stack([-t.sin(), t.cos()], -1)], -2)
    return AttentionFlow.from_coupling(torch.eye(2, dtype=t.dtype), turn + torch.eye(2, dtype=t.dtype))


class Case(NamedTuple):
    flow: Callable[[], AbstractFlow]
    shape: tuple[int, int]


NETWORK = LinearNetworkFlow(normal(2, 3, seed=1), widths=(3, 2, 2))
TANH = LinearNetworkFlow(inputs=normal(5, 3, seed=2), targets=normal(5, 2), activation="tanh", widths=(3, 4, 2))

CASES: dict[str, Case] = {
    "attention": Case(clustering_flow, (4, 3)),
    "oja": Case(lambda: OjaFlow(normal(3, 3)), (4, 3)),
    "linear network": Case(lambda: NETWORK, (1, 10)),
    "tanh network": Case(lambda: TANH, (1, 20)),
    "time-varying": Case(lambda: TimeVaryingFlow(turning), (3, 2)),
    "variational": Case(lambda: VariationalFlow(clustering_flow(), 2), (9, 3)),
    "variational of a network": Case(lambda: VariationalFlow(NETWORK, 1), (2, 10)),
    "variational in time": Case(lambda: VariationalFlow(TimeVaryingFlow(turning), 1), (4, 2)),
    "stranger's Lorenz": Case(Lorenz, (1, 3)),
    "stranger's Van der Pol": Case(lambda: VanDerPol(torch.tensor(1.5).double()), (1, 2)),
    "stranger's instances": Case(lambda: VanDerPol(torch.tensor([0.5, 1.0, 1.5]).double()), (1, 2)),
    "stranger's forced pendulum": Case(Pendulum, (1, 2)),
    "stranger's on the sphere": Case(lambda: CubicMean(normal(3, 3)), (4, 3)),
}


pytestmark = pytest.mark.sampled(3, across="case")


@pytest.fixture(params=CASES, ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def flow(case: Case) -> AbstractFlow:
    return case.flow()


@pytest.fixture
def state(case: Case, flow: AbstractFlow) -> Tensor:
    return flow.project(normal(3, *case.shape, seed=4))


TIME = torch.tensor([0.0, 0.3, 0.9], dtype=torch.float64)


def jvp(flow: AbstractFlow, x: Tensor, u: Tensor, t: Tensor) -> Tensor:
    return flow.jvp(x, u) if flow.autonomous else flow.jvp(x, u, t)


def test_a_flow_says_what_it_is_on_one_line(flow: AbstractFlow, state: Tensor) -> None:
    words = repr(flow)
    assert words.startswith(f"{type(flow).__name__}(")
    assert "\n" not in words
    assert "tensor(" not in words
    assert " at 0x" not in words
    assert len(words) < 160


def test_projection_is_idempotent(flow: AbstractFlow, state: Tensor) -> None:
    torch.testing.assert_close(flow.project(state), state, rtol=0, atol=1e-15)


def test_jvp_agrees_with_central_differences(flow: AbstractFlow, state: Tensor) -> None:
    u, h = normal(*state.shape, seed=9), 1e-4
    # Richardson extrapolation of central differences: truncation h^4, rounding 1e-16 / h.
    coarse = (flow.velocity(state + 2 * h * u, TIME) - flow.velocity(state - 2 * h * u, TIME)) / (4 * h)
    fine = (flow.velocity(state + h * u, TIME) - flow.velocity(state - h * u, TIME)) / (2 * h)
    torch.testing.assert_close(jvp(flow, state, u, TIME), (4 * fine - coarse) / 3, rtol=1e-6, atol=1e-8)


def test_extra_leading_axes_of_directions_broadcast(flow: AbstractFlow, state: Tensor) -> None:
    u = normal(2, *state.shape, seed=9)
    both = jvp(flow, state, u, TIME)
    torch.testing.assert_close(both[1], jvp(flow, state, u[1], TIME), rtol=0, atol=1e-13)


def test_dense_jacobian_agrees_with_jvp(flow: AbstractFlow, state: Tensor) -> None:
    if not flow.autonomous:
        pytest.skip("a Jacobian at no time is not asked for")
    u = normal(*state.shape, seed=8)
    along = (flow.jacobian(state, "ambient") @ u.flatten(-2).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(along.reshape(state.shape), flow.jvp(state, u), rtol=1e-10, atol=1e-10)


def test_batches_are_independent(flow: AbstractFlow, state: Tensor) -> None:
    alone = [flow.select((3,), torch.tensor([i])).velocity(state[i : i + 1], TIME[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(flow.velocity(state, TIME), torch.cat(alone), rtol=0, atol=1e-13)


def test_selected_elements_keep_their_flow(flow: AbstractFlow, state: Tensor) -> None:
    index = torch.tensor([2, 0])
    chosen = flow.select((3,), index).velocity(state[index], TIME[index])
    torch.testing.assert_close(chosen, flow.velocity(state, TIME)[index], rtol=0, atol=1e-13)


def test_precision_changes_only_rounding(flow: AbstractFlow, state: Tensor) -> None:
    single = flow.to(torch.float32).velocity(state.float(), TIME.float())
    torch.testing.assert_close(single.double(), flow.velocity(state, TIME), rtol=0, atol=1e-3)


def exact(flow: AbstractFlow, x: Tensor, times: Tensor) -> Tensor:
    """States by SciPy's eighth-order method, one trajectory at a time, off any constraint but the flow's own."""

    def field(t: float, y: object) -> object:
        now = torch.tensor([t], dtype=torch.float64)
        return flow.velocity(flow.project(torch.as_tensor(y).reshape(1, *x.shape)), now).reshape(-1).numpy()

    span = (0, float(times[-1]))
    solution = solve_ivp(field, span, x.reshape(-1).numpy(), "DOP853", times.numpy(), rtol=1e-12, atol=1e-13)
    return torch.as_tensor(solution.y.T).reshape(len(times), *x.shape)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", [pytest.param("tsit5", marks=pytest.mark.slow), "dop853"])
def test_integration_agrees_with_scipy(method: str, flow: AbstractFlow, state: Tensor) -> None:
    times = torch.tensor([0.0, 0.37, 0.9, 1.3], dtype=torch.float64)
    run = integrate(flow, state, "reference", method=method, rtol=1e-9, times=times, t_max=1.3)
    assert run.states is not None
    truth = exact(flow.select((3,), torch.tensor([1])), state[1], times)  # SciPy calls the flow one state at a time
    # Local errors of 1e-9 grow with the motion, by at most a factor of 100 in this time (Lorenz).
    torch.testing.assert_close(run.states[1], truth, rtol=1e-6, atol=1e-7)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("preset", ["default", "reference"])
def test_one_trajectory_is_the_same_alone_and_in_a_batch(flow: AbstractFlow, state: Tensor, preset: str) -> None:
    """But for rounding: BLAS rounds a product of one matrix otherwise than one of three, on some processors."""
    together = integrate(flow, state, preset, t_max=1.0)
    own = flow.select((3,), torch.tensor([1]))
    alone = integrate(own, state[1:2], preset, t_max=1.0)
    assert int(alone.steps) == int(together.steps[1])
    single = preset == "default" and isinstance(flow, AbstractSphereFlow)  # its way is made in single precision
    room = 100 * torch.finfo(torch.float32).eps if single else 1e-9  # about as many evaluations are rounded
    torch.testing.assert_close(alone.final[0], together.final[1], rtol=0, atol=room)


@pytest.mark.sampled(5)
def test_lyapunov_exponents_are_those_of_the_linearisation(flow: AbstractFlow, state: Tensor) -> None:
    if not flow.autonomous or flow.instances:
        pytest.skip("one instance with constant weights")
    x = state[0]
    short = 1e-3
    # Over a short time the sum of all exponents is the trace of the tangent Jacobian.
    count = x.shape[0] * flow.basis(x).shape[-1]
    total = lyapunov_exponents(flow, x, n_exponents=count, duration=short, interval=short).sum()
    trace = flow.jacobian(x).diagonal().sum()
    assert float(total) == pytest.approx(float(trace), rel=2e-2, abs=2e-2)


def test_a_flow_that_varies_in_time_says_what_it_needs(flow: AbstractFlow, state: Tensor) -> None:
    if flow.autonomous:
        assert integrate(flow, state, t_max=0.1).final.shape == state.shape
        return
    assert integrate(flow, state, t_max=0.1).outcome.tolist() == [Outcome.COMPLETED] * 3
    with pytest.raises(InvalidInput, match="never rests: give t_max or times"):
        integrate(flow, state)
    explicit, implicit = (integrate(flow, state, t_max=0.1, method=method) for method in ("tsit5", "rodas4"))
    torch.testing.assert_close(explicit.final, implicit.final, rtol=1e-5, atol=1e-7)


def test_smooth_weights_are_followed_exactly() -> None:
    # One token under diag(1 + t, 0): the angle obeys tan(theta) = tan(theta_0) exp(-integral of 1 + t).
    flow = TimeVaryingFlow(lambda t: OjaFlow(torch.diag_embed(torch.stack([1 + t, 0 * t], dim=-1))))
    end = integrate(flow, [[0.6, 0.8]], "reference", t_max=2.0).final
    assert float(end[0, 1] / end[0, 0]) == pytest.approx(0.8 / 0.6 * math.exp(-4.0), rel=1e-8)
