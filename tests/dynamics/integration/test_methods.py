from __future__ import annotations

import numpy
import pytest
import torch
from scipy.integrate import RK23, RK45, solve_ivp
from torch import Tensor

from attention_cases import clustering_flow
from separatrix.dynamics import AbstractFlow, ScaledControl, integrate, random_tokens
from separatrix.dynamics.integration.driver import Run
from separatrix.dynamics.integration.methods.base import Start
from separatrix.dynamics.integration.methods.named import METHODS, find_method
from separatrix.dynamics.integration.methods.runge_kutta import RungeKutta
from separatrix.dynamics.integration.methods.tableau import BS32, DP54, TSIT5
from separatrix.dynamics.integration.plan import Plan
from separatrix.dynamics.integration.stopping import Until
from stranger_flows import Forced, Lorenz, VanDerPol


def solved(flow: AbstractFlow, x: Tensor, time: float) -> Tensor:
    def field(_: float, y: numpy.ndarray) -> numpy.ndarray:
        return flow.velocity(torch.as_tensor(y).reshape(x.shape)).reshape(-1).numpy()

    end = solve_ivp(field, (0, time), x.reshape(-1).numpy(), "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    return torch.as_tensor(end).reshape(x.shape)


def fixed_steps(flow: AbstractFlow, x: Tensor, time: float, count: int, name: str) -> Tensor:
    """The state after equal steps, whatever their error."""
    method, h = find_method(name), torch.tensor([time / count], dtype=torch.float64)
    state, velocity, t = x.unsqueeze(0), flow.velocity(x.unsqueeze(0)), torch.zeros(1, dtype=torch.float64)
    for _ in range(count):
        attempt = method.attempt(flow, Start(state, velocity, t, h))
        state, velocity, t = attempt.state, attempt.velocity, t + h
    return state[0]


@pytest.mark.sampled(1, each="name")
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("space", ["sphere", "free"])
def test_methods_have_the_order_they_claim(name: str, space: str, generator: torch.Generator) -> None:
    if space == "sphere":
        flow: AbstractFlow = clustering_flow()
        starts, time = random_tokens(4, 3, 6, generator=generator), 2.0
    else:
        flow, time = VanDerPol(torch.tensor(1.0).double()), 2.0
        starts = torch.tensor([[[1.5, 0.4]]], dtype=torch.float64)
    targets, order = [solved(flow, x, time) for x in starts], find_method(name).order
    counts = torch.tensor([6, 8, 11, 16] if order == 8 else [12, 17, 24, 34, 48])
    # The largest over some starts: at one of them the leading term of the error may happen to vanish.
    errors = [
        max(
            float((fixed_steps(flow, x, time, int(n), name) - y).abs().max())
            for x, y in zip(starts, targets, strict=True)
        )
        for n in counts
    ]
    slope = numpy.polyfit(numpy.log(counts.numpy()), numpy.log(errors), 1)[0]
    assert order - 0.5 < -slope < order + 1.6, errors


@pytest.mark.parametrize(("tableau", "theirs"), [(BS32, RK23), (DP54, RK45)], ids=["bs32", "dp54"])
def test_dense_output_is_that_of_scipy(tableau: object, theirs: type) -> None:
    numpy.testing.assert_allclose(tableau.dense, theirs.P, rtol=1e-14, atol=1e-15)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("tableau", "order"), [(BS32, 3), (DP54, 4), (TSIT5, 4)], ids=["bs32", "dp54", "tsit5"])
def test_dense_output_has_its_order_inside_a_step(tableau: object, order: int) -> None:
    flow, x = Lorenz(), torch.tensor([[[1.0, 2.0, 20.0]]], dtype=torch.float64)
    method = RungeKutta(tableau)  # type: ignore[arg-type]
    sizes, errors = (0.04, 0.02, 0.01), []
    for size in sizes:
        h = torch.tensor([size], dtype=torch.float64)
        attempt = method.attempt(flow, Start(x, flow.velocity(x), 0 * h, h))
        inside = [(share, method.between(x, attempt, h, 0 * h + share)) for share in (0.3, 0.7)]
        errors.append(max(float((y[0] - solved(flow, x[0], share * size)).abs().max()) for share, y in inside))
    slope = numpy.polyfit(numpy.log(sizes), numpy.log(errors), 1)[0]
    assert order + 0.6 < slope < order + 2.5  # one step: the order of the error plus one


def test_a_stiff_oscillator_needs_the_implicit_method_and_gets_it() -> None:
    flow, x = VanDerPol(torch.tensor(1000.0).double()), torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    implicit = integrate(flow, x, t_max=500.0, method="rodas4", rtol=1e-6, atol=1e-8)
    assert implicit.ok
    assert int(implicit.steps) < 300
    explicit = integrate(flow, x, t_max=500.0, method="tsit5", max_steps=400)
    assert not explicit.ok
    chosen = integrate(flow, x, t_max=500.0, max_steps=300)
    assert chosen.ok
    torch.testing.assert_close(chosen.final[0, 0], implicit.final[0, 0], rtol=1e-4, atol=0)
    # on the slow branch dt/dx = mu (1 - x^2) / x, up to 1/mu
    a, mu = float(implicit.final[0, 0]), 1000.0
    elapsed = mu * (torch.tensor(a).log() - a**2 / 2 - torch.tensor(2.0).log() + 2)
    assert float(elapsed) == pytest.approx(500.0, rel=1e-3)


def test_steps_end_exactly_on_the_last_time() -> None:
    limit = torch.tensor([0.1, 0.3, 1 / 3], dtype=torch.float64)
    x = torch.ones(3, 1, 3, dtype=torch.float64)
    run = Run(Lorenz(), (3,), x, Plan(find_method("dop853"), ScaledControl(1e-8, 1e-10), Until(), 1000), limit, None)
    run.run()
    assert torch.equal(run.books.time, limit)


def riding(rate: float) -> tuple[Forced, list[float], float]:
    """Prothero and Robinson 1974: x' = rate (x - cos t) - sin t, whose solution from 1 is cos t."""
    return Forced(lambda x, t: rate * (x - t.cos()) - t.sin()), [1.0], 3.0


def driven() -> tuple[Forced, list[float], float]:
    """A stiff Van der Pol oscillator under a periodic force."""

    def field(x: Tensor, t: Tensor) -> Tensor:
        a, b = x.unbind(-1)
        return torch.stack([b, 30 * (1 - a * a) * b - a + 1.2 * torch.sin(t[..., 0])], dim=-1)

    return Forced(field), [1.3, 0.0], 6.0  # past the fold and over


def layered() -> tuple[Forced, list[float], float]:
    """A rate that grows from nothing to a hundred thousand while the state follows a moving place."""
    return Forced(lambda x, t: -1e5 * t * (x - torch.sin(3 * t))), [0.7], 2.0


def reacting() -> tuple[Forced, list[float], float]:
    """Robertson's reaction with a first rate that varies in time."""

    def field(x: Tensor, t: Tensor) -> Tensor:
        a, b, c = x.unbind(-1)
        first = -0.04 * (1 + 0.5 * torch.cos(t[..., 0])) * a + 1e4 * b * c
        return torch.stack([first, -first - 3e7 * b * b, 3e7 * b * b], dim=-1)

    return Forced(field), [1.0, 0.0, 0.0], 40.0


STIFF = {"riding": lambda: riding(-1e6), "driven": driven, "layered": layered, "reacting": reacting}


@pytest.mark.sampled(1, each="method")
@pytest.mark.parametrize("name", STIFF)
@pytest.mark.parametrize("method", ["rodas4", None])
def test_stiff_flows_that_vary_in_time_agree_with_another_implicit_method(name: str, method: str | None) -> None:
    flow, start, end = STIFF[name]()
    x = torch.tensor([start], dtype=torch.float64)
    run = integrate(flow, x, t_max=end, method=method, rtol=1e-5, atol=1e-8, max_steps=800)
    assert run.ok

    def field(t: float, y: numpy.ndarray) -> numpy.ndarray:
        time = torch.tensor([t], dtype=torch.float64)
        return flow.velocity(torch.as_tensor(y).reshape(1, *x.shape), time).reshape(-1).numpy()

    theirs = solve_ivp(field, (0, end), start, "Radau", rtol=1e-6, atol=1e-10).y[:, -1]
    # the errors of 1e-5 a step add up over some hundred steps
    numpy.testing.assert_allclose(run.final[0].numpy(), theirs, rtol=1e-3, atol=1e-6)


def test_the_implicit_method_keeps_its_order_when_the_flow_varies_in_time() -> None:
    flow = Forced(lambda x, t: -x * t.cos() + torch.sin(2 * t))  # solution 2 (sin t - 1) + 3 exp(-sin t)
    counts, errors = (12, 24, 48), []
    for count in counts:
        h, t = torch.tensor([2.0 / count], dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
        x = torch.ones(1, 1, 1, dtype=torch.float64)
        for _ in range(count):
            attempt = find_method("rodas4").attempt(flow, Start(x, flow.velocity(x, t), t, h))
            x, t = attempt.state, t + h
        exact = 2 * (numpy.sin(2.0) - 1) + 3 * numpy.exp(-numpy.sin(2.0))
        errors.append(abs(float(x) - exact))
    slope = numpy.polyfit(numpy.log(counts), numpy.log(errors), 1)[0]
    assert 3.5 < -slope < 6.0, errors  # here a term of the error is small: fourth order and better
