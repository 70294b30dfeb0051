from __future__ import annotations

import math

import numpy
import pytest
import torch
from scipy.integrate import solve_ivp

from separatrix.dynamics import AbstractFlow, AttentionFlow, find_periods, integrate, random_tokens
from separatrix.dynamics.integration.orbits.closing import close_orbits
from separatrix.dynamics.integration.orbits.collocation import collocate
from separatrix.dynamics.integration.orbits.shooting import shoot
from stranger_flows import Hopf, VanDerPol


def returned(flow: AbstractFlow, x: torch.Tensor, period: float) -> torch.Tensor:
    """The state one period later, by SciPy."""

    def field(_: float, y: numpy.ndarray) -> numpy.ndarray:
        return flow.velocity(torch.as_tensor(y).reshape(1, *x.shape)).reshape(-1).numpy()

    end = solve_ivp(field, (0, period), x.reshape(-1).numpy(), "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return torch.as_tensor(end).reshape(x.shape)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mu", [0.1, 1.0, 2.0])
def test_orbits_close_and_agree_with_shooting(mu: float) -> None:
    flow = VanDerPol(torch.full((1,), mu, dtype=torch.float64))
    x = integrate(flow, torch.tensor([[[2.0, 0.1]]], dtype=torch.float64), t_max=60.0).final
    guess = find_periods(flow, x) * 1.003
    ours, theirs = collocate(flow, x, guess)[0], shoot(flow, x, guess)
    assert bool(ours.found)
    torch.testing.assert_close(ours.period, theirs.period, rtol=1e-7, atol=0)
    assert (returned(flow, ours.point[0], float(ours.period)) - ours.point[0]).abs().max() < 1e-6
    allowed = float(ours.error) + float(theirs.error)
    both = [torch.linalg.eigvals(closed.monodromy[0]).abs().min() for closed in (ours, theirs)]
    assert float(both[0]) == pytest.approx(float(both[1]), abs=10 * allowed)


def test_the_monodromy_is_the_derivative_of_the_return(generator: torch.Generator) -> None:
    value = torch.tensor([[1.0, 2.0, 0.3], [-1.0, 0.8, 0.1], [0.2, 0.0, -0.5]], dtype=torch.float64)
    flow = AttentionFlow.from_coupling(torch.eye(3).double(), value)
    run = integrate(flow, random_tokens(3, 3, 1, generator=generator))
    point, period = run.final[:, :1], run.period
    one = flow.with_sizes(torch.tensor([[3.0]]).double())
    closed = collocate(one, point, period)[0]
    basis = one.basis(closed.point)[0, 0]
    for i in range(2):
        ahead, behind = (
            returned(flow, flow.project(closed.point[0] + sign * 1e-5 * basis[:, i]), float(closed.period))
            for sign in (1, -1)
        )
        column = basis.mT @ ((ahead - behind) / 2e-5)[0]
        torch.testing.assert_close(closed.monodromy[0][:, i], column, rtol=0, atol=1e-7)


def test_states_far_from_any_orbit_close_none() -> None:
    flow, x = Hopf(-0.3), torch.tensor([[[1.0, 0.2]]], dtype=torch.float64)  # everything falls to the origin
    assert not bool(collocate(flow, x, torch.tensor([2 * math.pi]).double())[0].found)


def test_an_orbit_with_jumps_is_closed_on_the_steps_that_followed_it() -> None:
    flow = VanDerPol(torch.full((1,), 5.0, dtype=torch.float64))
    x = integrate(flow, torch.tensor([[[2.0, 0.1]]], dtype=torch.float64), t_max=20.0).final
    closed = collocate(flow, x, torch.tensor([11.6], dtype=torch.float64))[0]
    assert bool(closed.found)
    # by SciPy, at a tolerance of 1e-12
    assert float(closed.period) == pytest.approx(11.61223067, abs=1e-7)


@pytest.mark.slow
def test_an_orbit_with_jumps_is_closed_from_its_own_guess_and_is_stable() -> None:
    flow = VanDerPol(torch.full((1,), 5.0, dtype=torch.float64))
    x = integrate(flow, torch.tensor([[[2.0, 0.1]]], dtype=torch.float64), t_max=60.0).final
    orbits = close_orbits(flow, x, find_periods(flow, x))
    assert orbits.certificates[0].period == pytest.approx(11.61223067, abs=1e-7)  # by SciPy, at 1e-12
    assert orbits.certificates[0].stable
