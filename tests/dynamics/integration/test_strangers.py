"""A four-method flow of a stranger gets everything: integration, equilibria, cycles, exponents."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from separatrix.core import InvalidInput, Outcome, ShapeError
from separatrix.dynamics import (
    OjaFlow,
    census,
    classify,
    cluster_flow,
    find_equilibria,
    find_periods,
    find_polygonal,
    integrate,
    limit_cycle,
    lyapunov_exponents,
    metastability_record,
    polish,
    random_tokens,
)
from separatrix.dynamics.integration.orbits.shooting import shoot
from stranger_flows import Lorenz, LotkaVolterra, Ring, VanDerPol

WINGS = math.sqrt(8 / 3 * 27)


def vdp(mu: float = 1.0) -> VanDerPol:
    return VanDerPol(torch.tensor(mu, dtype=torch.float64))


class Decay(VanDerPol):
    """Van der Pol backwards in sign of the damping: everything inside the cycle falls to the origin."""

    def __init__(self, mu: torch.Tensor | None = None) -> None:
        super().__init__(torch.tensor(-0.5, dtype=torch.float64) if mu is None else mu)


def test_a_motion_that_decays_ends_at_its_equilibrium() -> None:
    run = integrate(Decay(), torch.tensor([[[0.5, 0.0]], [[0.0, -1.0]]]).double())
    assert run.outcome.tolist() == [Outcome.CONVERGED] * 2
    assert run.final.abs().max() < 1e-12
    assert int(run.steps.max()) < 200


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rest_does_not_depend_on_the_units(scale: float) -> None:
    class Scaled(Lorenz):
        def velocity(self, x: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
            return -0.7 * (x - scale) - 0.1 * (x - scale).flip(-1)

        def jvp(self, x: torch.Tensor, u: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
            return -0.7 * u - 0.1 * u.flip(-1)

    start = torch.tensor([[3.0, -2.0, 0.5]]).double() * scale
    run = integrate(Scaled(), start, atol=1e-9 * scale)
    assert int(run.outcome) == Outcome.CONVERGED
    assert (run.final / scale - 1).abs().max() < 1e-10


class Line(Lorenz):
    """A velocity of one variable with its derivative."""

    def __init__(self, field: Callable[[torch.Tensor], torch.Tensor], slope: Callable[..., torch.Tensor]) -> None:
        self.field, self.slope = field, slope

    def velocity(self, x: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
        return self.field(x)

    def jvp(self, x: torch.Tensor, u: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
        return self.slope(x) * u


@pytest.mark.parametrize("scale", [1e-20, 1e-10, 1.0, 1e10])
@pytest.mark.parametrize("rate", [1e-12, 1.0, 1e12])
def test_growth_from_a_small_start_does_not_depend_on_the_units(scale: float, rate: float) -> None:
    # x' = rate x (1 - x / scale): at 1e-10 the start was called stalled, because its speed was small in no unit
    flow = Line(lambda x: rate * x * (1 - x / scale), lambda x: rate * (1 - 2 * x / scale))
    run = integrate(flow, torch.full((1, 1), 1e-2 * scale).double())
    assert int(run.outcome) == Outcome.CONVERGED
    assert float(run.final / scale) == pytest.approx(1.0, abs=1e-10)
    assert int(run.steps) < 100


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "flow",
    [
        Line(torch.ones_like, torch.zeros_like),
        Line(lambda x: (1 + x) ** -2, lambda x: -2 * (1 + x) ** -3),
        Line(lambda x: 0.3 * x + 1, lambda x: torch.full_like(x, 0.3)),
    ],
    ids=["constant", "ever slower", "exponential"],
)
def test_a_motion_without_end_has_diverged(flow: Line) -> None:
    run = integrate(flow, torch.zeros(1, 1).double())
    assert int(run.outcome) == Outcome.DIVERGED
    assert bool(torch.isfinite(run.final).all())
    assert not run.ok
    far = integrate(flow, torch.zeros(1, 1).double(), t_max=1000.0)  # a time that was asked for is reached
    assert int(far.outcome) == Outcome.COMPLETED


def test_a_start_on_a_saddle_leaves_it() -> None:
    run = integrate(vdp(), torch.zeros(1, 2).double())
    assert int(run.saddles) == 1
    assert int(run.outcome) == Outcome.CYCLE


def test_an_oscillator_ends_in_its_cycle() -> None:
    run = integrate(vdp(), torch.tensor([[[0.1, 0.0]], [[3.0, 1.0]]]).double())
    assert run.outcome.tolist() == [Outcome.CYCLE] * 2
    # period of the Van der Pol oscillator at mu = 1, to nine digits
    torch.testing.assert_close(run.period, torch.full((2,), 6.66328686, dtype=torch.float64), rtol=0, atol=1e-8)
    assert all(floquet.stable for floquet in run.cycles.values())


def test_limit_cycles_have_a_period_and_multipliers() -> None:
    point = integrate(vdp(), torch.tensor([[1.0, 0.0]]).double(), t_max=30.0).final
    cycle = limit_cycle(vdp(), point)
    assert cycle.outcome == Outcome.CYCLE
    assert cycle.stable
    assert cycle.period == pytest.approx(6.66328686, abs=1e-8)
    # Liouville: the product of the multipliers is the exponential of the divergence along the orbit.
    times = torch.linspace(0, cycle.period, 101, dtype=torch.float64)
    states = integrate(vdp(), cycle.point, rtol=1e-8, times=times).states
    assert states is not None
    divergence = torch.trapezoid(1 - states[:, 0, 0].square(), times)
    assert float(cycle.multipliers.prod().real) == pytest.approx(float(divergence.exp()), rel=1e-4)
    assert find_periods(vdp(), point.unsqueeze(0)).tolist() == pytest.approx([cycle.period], abs=1e-8)


def test_states_are_classified() -> None:
    cycle = integrate(vdp(), torch.tensor([[1.0, 0.0]]).double(), t_max=30.0).final
    states = torch.stack([torch.full((1, 2), 1e-4).double(), cycle])
    origin, turning = classify(vdp(), states)
    assert (origin.kind, origin.stable, origin.index) == ("equilibrium", False, 2)
    assert (turning.kind, turning.stable) == ("cycle", True)


def test_equilibria_of_the_lorenz_flow_are_found(generator: torch.Generator) -> None:
    starts = 20 * torch.randn(6, 1, 3, generator=generator, dtype=torch.float64)
    found = find_equilibria(Lorenz(), starts=starts)
    points = sorted([round(value, 6) for value in item.clusters.flatten().tolist()] for item in found)
    wing = WINGS
    expected = sorted([[-wing, -wing, 27.0], [0.0, 0.0, 0.0], [wing, wing, 27.0]])
    assert [pytest.approx(point, abs=1e-6) for point in expected] == points
    assert {item.index for item in found} == {1, 2}
    assert not find_equilibria(Lorenz(), starts=starts, known=found)


def test_newton_finds_the_equilibrium_beside_a_state() -> None:
    polished = polish(Lorenz(), torch.tensor([[[8.0, 8.0, 26.0]], [[0.1, 0.2, -0.1]]]).double())
    assert bool(polished.found.all())
    assert float(polished.point[0, 0, 0]) == pytest.approx(WINGS, abs=1e-10)
    near = polish(Lorenz(), torch.tensor([[8.0, 8.0, 26.0]]).double(), max_displacement=0.1)
    assert not bool(near.found)


@pytest.mark.slow
def test_chaos_has_the_known_exponents() -> None:
    point = integrate(Lorenz(), torch.tensor([[1.0, 1.0, 20.0]]).double(), t_max=10.0).final
    exponents = lyapunov_exponents(Lorenz(), point, n_exponents=3, duration=20.0, interval=0.5)
    # Known: 0.9056, 0, -14.5721. Of 192 windows of 20 time units on the attractor, by a Runge-Kutta method of fourth
    # order written for it, the means are (0.889, -0.054, -14.502), since the first frame is arbitrary, with standard
    # deviations (0.083, 0.072, 0.071): 0.36 is the bias and four of them. The sum is the divergence, always.
    assert exponents.tolist() == pytest.approx([0.9056, 0.0, -14.5721], abs=0.36)
    assert float(exponents.sum()) == pytest.approx(-(10 + 1 + 8 / 3), abs=1e-3)
    assert float(exponents.sum()) == pytest.approx(-(10 + 1 + 8 / 3), rel=1e-4)  # the divergence is constant


@pytest.mark.slow
def test_long_averages_come_near_the_known_exponents() -> None:
    point = integrate(Lorenz(), torch.tensor([[1.0, 1.0, 20.0]]).double(), t_max=10.0).final
    exponents = lyapunov_exponents(Lorenz(), point, n_exponents=3, duration=300.0, interval=0.5)
    # The standard deviations of 20 time units over the root of 15, four times: 0.09; the first frame adds 0.005.
    assert exponents.tolist() == pytest.approx([0.9056, 0.0, -14.5721], abs=0.095)


def test_what_needs_the_sphere_says_so(generator: torch.Generator) -> None:
    x = torch.eye(3).double()
    refusals = {
        "census": lambda: census([Lorenz()], n_tokens=2, n_starts=2, seed=0),
        "cluster_flow": lambda: cluster_flow(Lorenz(), torch.ones(2)),
        "find_polygonal": lambda: find_polygonal(Lorenz(), x),
        "metastability_record": lambda: metastability_record(Lorenz(), x, t_max=1.0),
        "polish with sizes": lambda: polish(Lorenz(), x, torch.ones(3)),
    }
    for name, call in refusals.items():
        with pytest.raises(InvalidInput, match=f"{name} needs a flow on the sphere .*got Lorenz"):
            call()
    with pytest.raises(InvalidInput, match=r"off the sphere needs starts \(batch, n, d\)"):
        find_equilibria(Lorenz(), 3, generator=generator)


def test_a_neutral_centre_is_a_cycle_that_is_not_stable_and_ends_early() -> None:
    start = torch.tensor([[[1.5, 0.7]], [[3.0, 1.0]]], dtype=torch.float64)
    orbit = limit_cycle(LotkaVolterra(), start[0])
    assert orbit.outcome == Outcome.CYCLE
    assert not orbit.stable
    run = integrate(LotkaVolterra(), start)
    assert run.outcome.tolist() == [Outcome.CYCLE] * 2
    assert int(run.steps.max()) < 200  # it was the limit of 20000
    energy = start - start.log()
    for place, floquet in run.cycles.items():
        assert floquet.marginal
        assert not floquet.stable
        assert floquet.index == 0
        assert floquet.margin < 1e-5
        # the orbit is the one of the start: what is conserved was conserved
        kept = run.final[place] - run.final[place].log()
        assert float(kept.sum()) == pytest.approx(float(energy[place].sum()), rel=1e-4)


@pytest.mark.parametrize("radius", [pytest.param(0.1, marks=pytest.mark.slow), 0.03])
def test_a_slow_fall_in_turns_is_no_cycle(radius: float) -> None:
    # slower and slower to the origin: every turn nearly returns
    run = integrate(Ring(0.0, 1.0), torch.tensor([[[radius, 0.0]]]).double(), max_steps=400)
    assert not run.cycles


def test_a_state_that_comes_to_rest_on_a_ring_is_on_no_cycle() -> None:
    angles = torch.linspace(0, 6, 40).double()
    radii = torch.linspace(0.5, 1.5, 40).double()
    starts = (radii * torch.stack([angles.cos(), angles.sin()])).mT.unsqueeze(1)
    run = integrate(Ring(), starts)
    assert not run.cycles
    assert run.outcome.tolist() == [Outcome.CONVERGED] * 40


class Populations(Lorenz):
    """Three species of which each drives out the next (May and Leonard, 1975): saddle after saddle, ever slower."""

    def velocity(self, x: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
        return x * (1 - self.pressure(x))

    def jvp(self, x: torch.Tensor, u: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
        return u * (1 - self.pressure(x)) - x * self.pressure(u)

    @staticmethod
    def pressure(x: torch.Tensor) -> torch.Tensor:
        return x + 0.8 * x.roll(-1, -1) + 1.3 * x.roll(1, -1)


@pytest.mark.slow
def test_a_motion_past_saddles_does_not_cross_what_it_cannot_cross() -> None:
    start = torch.tensor([[[0.4, 0.3, 0.2]], [[0.9, 0.05, 0.02]]], dtype=torch.float64)
    run = integrate(Populations(), start)
    assert run.outcome.tolist() == [Outcome.STALLED] * 2
    assert run.saddles.tolist() == [5, 5]
    assert bool((run.final > 0).all())
    assert float(run.final.amax()) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e-12])
def test_states_at_times_do_not_depend_on_the_units(scale: float) -> None:
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    flow = Line(lambda x: x @ turn.mT, lambda x: torch.full_like(x, torch.nan))  # no derivative is asked for
    times = torch.linspace(0, 20, 5, dtype=torch.float64)
    run = integrate(flow, scale * torch.tensor([[1.0, 0.0]]).double(), times=times)
    assert run.states is not None
    torch.testing.assert_close(run.states[:, 0, 0] / scale, times.cos(), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_velocities_of_closed_orbits_are_counted() -> None:
    counted = 0

    class Counted(VanDerPol):
        def velocity(self, x: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
            nonlocal counted
            counted += x.shape[:-2].numel()
            return super().velocity(x, t)

        def jvp(self, x: torch.Tensor, u: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
            nonlocal counted
            counted += torch.broadcast_shapes(x.shape, u.shape)[:-2].numel()
            return super().jvp(x, u)

        def select(self, batch_shape: tuple[int, ...], index: torch.Tensor) -> Counted:
            return self

        def to(self, dtype: torch.dtype) -> Counted:
            return self

    flow = Counted(torch.tensor(1.0).double())
    run = integrate(flow, torch.tensor([[2.0, 0.0]]).double())
    assert int(run.outcome) == Outcome.CYCLE
    assert 0.5 < int(run.evaluations) / counted < 2
    counted = 0
    closed = shoot(flow, run.final.unsqueeze(0), run.period.reshape(1))
    assert bool(closed.found)
    assert 0.5 < int(closed.evaluations) / counted < 2


class Written(Lorenz):
    """A velocity of any shape, differentiated automatically."""

    def __init__(self, field: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.field = field

    def velocity(self, x: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
        return self.field(x)

    def jvp(self, x: torch.Tensor, u: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
        shape = torch.broadcast_shapes(x.shape, u.shape)
        along: torch.Tensor = torch.func.jvp(self.field, (x.expand(shape).clone(),), (u.expand(shape).clone(),))[1]
        return along


def state(*entries: float) -> torch.Tensor:
    return torch.tensor([entries], dtype=torch.float64)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("place", "start"), [(1.0, 3.0), (10.0, 20.0)])
def test_an_equilibrium_that_attracts_from_one_side_is_neither_stable_nor_lost(place: float, start: float) -> None:
    # x' = -(x - c)^2 never crosses c; tolerances did, and what follows from below is a blow-up
    flow = Written(lambda x: -((x - place) ** 2))
    run = integrate(flow, state(start))
    assert int(run.outcome) == Outcome.CONVERGED
    assert float(run.final) == pytest.approx(place, rel=1e-6)
    (end,) = classify(flow, run.final)
    assert (end.kind, end.stable, end.marginal) == ("equilibrium", False, True)


@pytest.mark.slow
def test_folds_are_marginal_on_the_sphere_and_off_it(generator: torch.Generator) -> None:
    shear = OjaFlow([[1.0, 1.0], [0.0, 1.0]])
    run = integrate(shear, random_tokens(4, 2, 3, generator=generator))
    assert {(end.stable, end.marginal) for end in classify(shear, run.final)} == {(False, True)}
    flow = Written(lambda x: 1 - torch.sin(x))
    (end,) = classify(flow, integrate(flow, state(0.0)).final)
    assert (end.stable, end.marginal) == (False, True)
    found = find_equilibria(
        Written(lambda x: -((x - 1) ** 2) * (x + 1)), starts=torch.linspace(-3, 3, 9).double()[:, None, None]
    )
    assert sorted((round(float(item.clusters), 6), item.stable, item.marginal) for item in found) == [
        (-1.0, True, False),
        (1.0, False, True),
    ]


@pytest.mark.slow
def test_a_stiff_reaction_is_not_at_rest_while_it_moves() -> None:
    # Robertson: the only equilibrium with a + b + c = 1 is (0, 0, 1)
    def field(x: torch.Tensor) -> torch.Tensor:
        a, b, c = x.unbind(-1)
        first, second = -0.04 * a + 1e4 * b * c, 3e7 * b * b
        return torch.stack([first, -first - second, second], dim=-1)

    run = integrate(Written(field), state(1.0, 0.0, 0.0))
    assert int(run.outcome) != Outcome.CONVERGED or float(run.final[0, 0]) < 1e-6


@pytest.mark.slow
def test_an_orbit_that_is_approached_from_side_to_side_is_passed_once() -> None:
    # Rossler, c = 2.5: multiplier -0.77, so that two turns return nearer than one
    def field(x: torch.Tensor) -> torch.Tensor:
        a, b, c = x.unbind(-1)
        return torch.stack([-b - c, a + 0.2 * b, 0.2 + c * (a - 2.5)], dim=-1)

    run = integrate(Written(field), state(1.0, 1.0, 1.0))
    assert int(run.outcome) == Outcome.CYCLE
    assert float(run.period) == pytest.approx(5.74899, abs=1e-4)
    assert float(run.cycles[0].quotient.real.min()) == pytest.approx(-0.7697, abs=1e-3)


def test_closing_an_orbit_keeps_what_the_motion_conserves() -> None:
    # Van der Pol with its damping as a third entry that stands still
    def field(x: torch.Tensor) -> torch.Tensor:
        a, b, mu = x.unbind(-1)
        return torch.stack([b, mu * (1 - a * a) * b - a, 0 * mu], dim=-1)

    run = integrate(Written(field), state(0.1, 0.1, 1.0))
    assert int(run.outcome) == Outcome.CYCLE
    assert float(run.final[0, 2]) == pytest.approx(1.0, abs=1e-9)
    assert float(run.period) == pytest.approx(6.66328686, abs=1e-6)


def test_a_half_stable_cycle_is_not_called_stable() -> None:
    def field(x: torch.Tensor) -> torch.Tensor:
        a, b = x.unbind(-1)
        inward = (torch.sqrt(a * a + b * b) - 1) ** 2
        return torch.stack([-a * inward - b, a - b * inward], dim=-1)

    run = integrate(Written(field), state(1.5, 0.0), max_steps=600)
    assert not any(floquet.stable for floquet in run.cycles.values())


@pytest.mark.parametrize("rate", [-30.0, pytest.param(-100.0, marks=pytest.mark.slow)])
def test_exponents_do_not_depend_on_the_interval(rate: float) -> None:
    rates = torch.tensor([-1.0, rate, 0.5], dtype=torch.float64)
    found = lyapunov_exponents(
        Written(lambda x: x * rates), state(1.0, 1.0, 1.0), n_exponents=3, duration=2.0, interval=1.0
    )
    torch.testing.assert_close(found, rates.sort(descending=True).values, rtol=1e-5, atol=0)


@pytest.mark.slow
def test_states_at_times_are_followed_past_a_saddle() -> None:
    flow = OjaFlow(torch.diag(torch.tensor([2.0, 1.0], dtype=torch.float64)))
    start = flow.project(state(1e-6, 1.0))
    times = torch.tensor([5.0, 14.0, 20.0], dtype=torch.float64)
    run = integrate(flow, start, times=times, finishing=False, rtol=1e-9, atol=1e-14)
    assert run.states is not None
    angle = torch.atan2(run.states[:, 0, 0], run.states[:, 0, 1])
    torch.testing.assert_close(angle, torch.atan(1e-6 * times.exp()), rtol=1e-4, atol=1e-6)


def test_a_derivative_of_one_direction_only_is_named() -> None:
    class Plain(Written):
        def jvp(self, x: torch.Tensor, u: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
            along: torch.Tensor = torch.func.jvp(self.field, (x,), (u,))[1]
            return along

    with pytest.raises(ShapeError, match="jvp of Plain must take directions u with further leading axes"):
        integrate(Plain(lambda x: -x), state(1.0, 2.0))

    class Broken(Written):
        def jvp(self, x: torch.Tensor, u: torch.Tensor, t: torch.Tensor | None = None) -> torch.Tensor:
            raise KeyError("mine")

    with pytest.raises(InvalidInput, match="the jvp of Broken fails"):
        integrate(Broken(lambda x: -x), state(1.0, 2.0))
