"""Motions that nearly come back: slow spirals, families of cycles, tori, jumps."""

from __future__ import annotations

import math

import numpy
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from separatrix.core import Outcome, spawn
from separatrix.dynamics import AttentionFlow, integrate, random_tokens
from separatrix.dynamics.integration.orbits.closing import close_orbits
from stranger_flows import Lorenz, Radial, VanDerPol

MIX = torch.tensor([[1.0, 0.2, 3.0], [-0.4, 1.0, 2.0], [0.3, 0.1, 4.0]], dtype=torch.float64)
"""Coordinates in which every variable is seen in every entry."""


def state(*entries: float) -> Tensor:
    return torch.tensor([entries], dtype=torch.float64)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rate", [3e-2, 1e-3, 1e-6])
def test_a_slow_spiral_ends_at_its_focus_after_a_few_turns(rate: float) -> None:
    run = integrate(Radial(lambda s: -rate + 0 * s), state(1.0, 0.3))
    assert int(run.outcome) == Outcome.CONVERGED
    assert float(run.final.abs().max()) < 1e-12
    assert int(run.steps) < 200  # at 1e-3 it was all of 20000


@pytest.mark.slow
def test_a_slender_spiral_ends_at_its_focus() -> None:
    # where it is slow its speed says little of how far the focus is: Newton's method found it, and it was not believed
    slender = torch.tensor([[-12.8795, -8.6990], [17.4043, 11.3055]], dtype=torch.float64)

    class Slender(Radial):
        def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
            return x @ slender.mT

    for turn in torch.linspace(0, math.pi, 9).tolist():
        run = integrate(Slender(lambda s: s), state(math.cos(turn), math.sin(turn)))
        assert int(run.outcome) == Outcome.CONVERGED
        assert float(run.final.abs().max()) < 1e-12
        assert int(run.steps) < 130  # 161 where the speed alone was believed


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("rate", "start"), [(1e-3, 1.0), (-1e-3, 0.0)], ids=["grows", "falls ever slower"])
def test_a_spiral_that_does_not_contract_to_the_centre_is_not_said_to_rest(rate: float, start: float) -> None:
    # away from the origin; to it as 1/sqrt(t), which no linear rate shows
    run = integrate(Radial(lambda s: rate * (s if start == 0.0 else 1 + 0 * s)), state(0.5, 0.0), max_steps=250)
    assert int(run.outcome) == Outcome.OUT_OF_STEPS
    assert not run.cycles
    assert int(run.returns) > 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("radius", "end"), [(0.4, 0.0), (0.6, 1.0), (1.3, 1.0)])
def test_nested_cycles_part_the_starts_however_slow(radius: float, end: float) -> None:
    # a stable focus, an unstable cycle of radius 1/2, a stable one of radius 1
    run = integrate(Radial(lambda s: 0.05 * (s - 0.25) * (1 - s)), state(radius, 0.0))
    assert int(run.outcome) == (Outcome.CYCLE if end else Outcome.CONVERGED)
    assert float(torch.linalg.vector_norm(run.final)) == pytest.approx(end, abs=1e-6)
    assert all(floquet.stable for floquet in run.cycles.values())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_a_neutral_orbit_is_the_one_on_which_the_motion_settles(rate: float) -> None:
    # (a, b) turn at a speed that depends on their radius for ever; c falls to what they drive it to, and is seen in all
    class Settling(Radial):
        def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
            a, b, c = (x @ torch.linalg.inv(MIX).mT).unbind(-1)
            speed = 1 + (a * a + b * b) / 5
            return torch.stack([-speed * b, speed * a, torch.tanh(a) - rate * c], dim=-1) @ MIX.mT

    run = integrate(Settling(torch.zeros_like), state(1.0, 1.5, -1.0) @ MIX.mT)
    assert int(run.outcome) == Outcome.CYCLE
    assert run.cycles[0].marginal
    assert float(run.period) == pytest.approx(2 * math.pi / 1.65, rel=1e-4)  # was off by 6e-2


def test_a_spiral_to_a_line_of_equilibria_rests_where_the_method_gets_no_nearer() -> None:
    class ToLine(Radial):
        def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
            a, b, _ = (x @ torch.linalg.inv(MIX).mT).unbind(-1)
            return torch.stack([-1.1 * a - 15 * b, 15 * a - 1.1 * b, 6 * a], dim=-1) @ MIX.mT

    run = integrate(ToLine(torch.zeros_like), state(1.0, 0.5, -3.0) @ MIX.mT, max_steps=600)
    assert int(run.outcome) == Outcome.CONVERGED  # errors of steps at the limit of stability kept it from its rest
    # 6 a integrated over all times from the start: 6 Re (1 + i / 2) / (1.1 - 15 i)
    end = -3 + (6 * (1 + 0.5j) / (1.1 - 15j)).real
    torch.testing.assert_close(run.final, end * MIX[:, 2].unsqueeze(0), rtol=1e-4, atol=1e-4)


def test_a_motion_on_a_torus_is_neither_at_rest_nor_periodic() -> None:
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    matrix = torch.block_diag(turn, math.sqrt(2) * turn)

    class Torus(Lorenz):
        def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
            return x @ matrix.mT

        def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
            return u @ matrix.mT

    run = integrate(Torus(), state(1.0, 0.0, 0.7, 0.2), max_steps=800)
    assert int(run.outcome) == Outcome.OUT_OF_STEPS
    assert not run.cycles
    assert int(run.returns) > 0  # what was seen: it comes back, and does not repeat itself


@pytest.mark.slow
def test_looking_for_cycles_in_chaos_costs_little() -> None:
    class Counted(Lorenz):
        calls = 0

        def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
            Counted.calls += 1
            return super().velocity(x, t)

        def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
            Counted.calls += 1
            return super().jvp(x, u, t)

    run = integrate(Counted(), state(1.0, 1.0, 20.0), max_steps=1500)
    watched, Counted.calls = Counted.calls, 0
    integrate(Counted(), state(1.0, 1.0, 20.0), t_max=float(run.time))
    assert int(run.outcome) == Outcome.OUT_OF_STEPS
    assert watched < 1.5 * Counted.calls  # it was 9 times


def relaxation_period(mu: float) -> float:
    """Between two crossings of zero, upwards, by another implicit method."""

    def field(_: float, y: numpy.ndarray) -> list[float]:
        return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]

    def crossing(_: float, y: numpy.ndarray) -> float:
        return float(y[0])

    crossing.direction = 1  # type: ignore[attr-defined]
    found = solve_ivp(field, (0, 6 * mu), [2.0, 0.0], "Radau", rtol=1e-9, atol=1e-10, events=crossing).t_events[0]
    return float(found[-1] - found[-2])


@pytest.mark.slow
@pytest.mark.parametrize("mu", [20.0, 50.0, 200.0])
def test_relaxation_oscillations_have_their_period(mu: float) -> None:
    run = integrate(VanDerPol(torch.tensor(mu).double()), state(2.0, 0.0))
    assert int(run.outcome) == Outcome.CYCLE
    assert run.cycles[0].stable
    assert float(run.period) == pytest.approx(relaxation_period(mu), rel=1e-5)


@pytest.mark.slow
def test_jumps_of_a_millionth_of_the_period_are_met() -> None:
    mu = 1000.0
    run = integrate(VanDerPol(torch.tensor(mu).double()), state(2.0, 0.0))
    assert int(run.outcome) == Outcome.CYCLE
    assert run.cycles[0].stable
    # Dorodnitsyn 1947: the first zero of the Airy function is -2.33811
    assert float(run.period) == pytest.approx((3 - 2 * math.log(2)) * mu + 3 * 2.33811 * mu ** (-1 / 3), rel=1e-4)


def test_a_stable_orbit_that_the_motion_was_not_near_is_no_end_of_it() -> None:
    flow = Radial(lambda s: 0.05 * (1 - s))  # an unstable cycle may part the state from an orbit that Newton jumps to
    period = torch.full((2,), 2 * math.pi, dtype=torch.float64)
    found = close_orbits(flow, torch.cat([state(0.8, 0.0), state(0.999, 0.0)])[:, None], period)
    assert set(found.certificates) == {0, 1}
    assert all(floquet.stable for floquet in found.certificates.values())
    assert found.reached == {1}


@pytest.mark.parametrize(("preset", "rtol"), [("default", 1e-3), ("reference", 1e-5)])
def test_a_marginal_orbit_of_masked_attention_is_the_motions_own_up_to_the_tolerance(preset: str, rtol: float) -> None:
    """Under a causal mask and V = S + 1 the first token turns about the axis of S and keeps its height for ever."""
    turning = torch.tensor([[0.0, -1.0, 0.4], [1.0, 0.0, -0.7], [-0.4, 0.7, 0.0]], dtype=torch.float64)
    axis = torch.tensor([0.7, 0.4, 1.0], dtype=torch.float64) / math.sqrt(1.65)
    coupling = [[1, 0.3, 0], [-0.2, 0.5, 0.4], [0.1, 0, -0.6]]
    flow = AttentionFlow.from_coupling(coupling, turning + torch.eye(3, dtype=torch.float64), mask="causal")
    starts = random_tokens(2, 3, 8, generator=spawn(3)).double()
    run = integrate(flow, starts, preset)
    assert bool((run.outcome == Outcome.CYCLE).all())
    assert all(run.cycles[place].marginal for place in range(8))
    risen = ((run.final - starts)[:, 0] @ axis).abs()
    way = run.time * math.sqrt(1.65) * (1 - (starts[:, 0] @ axis) ** 2).sqrt()
    assert bool((risen <= rtol * way).all())
    assert float(risen.max()) > 1e-4 * rtol  # it is the error of the steps, not of the closing
