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
from stranger_flows import Lorenz, VanDerPol


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
    explicit = integrate(flow, x, t_max=500.0, method="tsit5", max_steps=2000)
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
