"""Flows drawn at random whose end is known beforehand, seen through random coordinates.

A core in the plane (a cycle, a focus, a saddle, a circle or a line of equilibria) drives up to two more coordinates
that decay; then everything is sheared by sines and mixed by a matrix, so that no coordinate is special.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from separatrix.dynamics import AbstractFlow

Field = Callable[[Tensor], Tensor]
Draws = numpy.random.Generator


@dataclasses.dataclass
class Core:
    """What the first two coordinates do, and how it ends."""

    field: Field
    period: float | None = None
    """Of the cycle it ends in; none if it comes to rest."""
    stable: bool = True
    is_line: bool = False
    """Whether the third coordinate has no equilibrium of its own."""
    drift: float = 0.0
    """Of a line: the integral of the first coordinate over all time, by which the third is carried."""
    end: Tensor | None = None
    """Of a line: where the flow ends."""


def _between(draws: Draws, low: float, high: float) -> float:
    return float(math.exp(draws.uniform(math.log(low), math.log(high))))


def _squared(y: Tensor) -> Tensor:
    return (y**2).sum(-1, keepdim=True)


def _turned(y: Tensor, speed: Tensor | float) -> Tensor:
    return speed * torch.stack([-y[..., 1], y[..., 0]], -1)


def _to_radius(start: numpy.ndarray, radius: float) -> None:
    start[:2] *= radius / numpy.hypot(*start[:2])


def hopf(draws: Draws, start: numpy.ndarray) -> Core:
    """A round cycle whose speed may depend on the radius."""
    mu, speed, twist = _between(draws, 0.1, 10), _between(draws, 0.3, 5), float(draws.choice([0, draws.uniform()]))
    field = lambda y: (mu - _squared(y)) * y + _turned(y, speed + twist * _squared(y))  # noqa: E731
    return Core(field, 2 * math.pi / (speed + twist * mu))


def van_der_pol(draws: Draws, start: numpy.ndarray) -> Core:
    """Its period is SciPy's."""
    mu = _between(draws, 0.1, 10)

    def rises(t: float, y: Any) -> float:
        return float(y[0])

    rises.direction = 1  # type: ignore[attr-defined]
    times = solve_ivp(
        lambda t, y: [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]], (0, 90 + 12 * mu), [2.0, 0.0],
        "Radau" if mu > 5 else "DOP853", rtol=1e-10, atol=1e-12, events=rises,
    ).t_events[0]  # fmt: skip
    field = lambda y: torch.stack([y[..., 1], mu * (1 - y[..., 0] ** 2) * y[..., 1] - y[..., 0]], -1)  # noqa: E731
    return Core(field, float(times[-1] - times[-2]))


def _two_rings(draws: Draws, start: numpy.ndarray, *, outside: bool) -> Core:
    inner, rate, speed = draws.uniform(0.3, 0.8), _between(draws, 0.05, 2), _between(draws, 0.3, 3)
    _to_radius(start, draws.uniform(1.15 * inner, 1.6) if outside else draws.uniform(0.2, 0.85) * inner)
    field = lambda y: rate * (_squared(y) - inner**2) * (1 - _squared(y)) * y + _turned(y, speed)  # noqa: E731
    return Core(field, 2 * math.pi / speed if outside else None)


def outside_an_unstable_ring(draws: Draws, start: numpy.ndarray) -> Core:
    """Ends on the stable ring around it."""
    return _two_rings(draws, start, outside=True)


def inside_an_unstable_ring(draws: Draws, start: numpy.ndarray) -> Core:
    """Ends at the centre."""
    return _two_rings(draws, start, outside=False)


def neutral(draws: Draws, start: numpy.ndarray) -> Core:
    """Every radius has its orbit, and its period."""
    speed, twist = _between(draws, 0.3, 3), draws.uniform(0, 1)
    period = 2 * math.pi / (speed + twist * float((start[:2] ** 2).sum()))
    return Core(lambda y: _turned(y, speed + twist * _squared(y)), period, stable=False)


def _focus(draws: Draws, start: numpy.ndarray, least: float, most: float, *, is_line: bool = False) -> Core:
    rate, speed = _between(draws, least, most), _between(draws, 0.5, 3)
    drift = float(rate * start[0] - speed * start[1]) / (rate**2 + speed**2)  # the first entry of -A^-1 y
    return Core(lambda y: -rate * y + _turned(y, speed), is_line=is_line, drift=drift)


def spiral(draws: Draws, start: numpy.ndarray) -> Core:
    """A focus."""
    return _focus(draws, start, 0.05, 1)


def slow_spiral(draws: Draws, start: numpy.ndarray) -> Core:
    """A focus that is reached after up to a million turns."""
    return _focus(draws, start, 1e-5, 1e-2)


def line(draws: Draws, start: numpy.ndarray) -> Core:
    """A focus in the plane, under a coordinate that stays where it is left: a line of equilibria."""
    return _focus(draws, start, 0.02, 1, is_line=True)


def saddle(draws: Draws, start: numpy.ndarray) -> Core:
    """Begins on, or hardly beside, the way into a saddle."""
    start[0], rate = float(draws.choice([0.0, 1e-8, -1e-4, 0.1])), draws.uniform(0.3, 3)
    return Core(lambda y: torch.stack([y[..., 0] - y[..., 0] ** 3, -rate * y[..., 1]], -1))


def circle(draws: Draws, start: numpy.ndarray) -> Core:
    """A circle of equilibria."""
    return Core(lambda y: (1 - _squared(y)) * y)


def pendulum(draws: Draws, start: numpy.ndarray) -> Core:
    """With friction."""
    friction = _between(draws, 0.02, 0.5)
    _to_radius(start, 1.2)
    return Core(lambda y: torch.stack([y[..., 1], -y[..., 0].sin() - friction * y[..., 1]], -1))


KINDS = (
    hopf, van_der_pol, outside_an_unstable_ring, inside_an_unstable_ring, neutral, spiral, slow_spiral, line, saddle,
    circle, pendulum,
)  # fmt: skip


class Disguised(AbstractFlow):
    """A field seen through ``x = A g(y)``, where g adds sines of some coordinates to others."""

    def __init__(self, field: Field, mixing: Tensor, shears: list[tuple[int, int, float, float]]) -> None:
        self.field, self.mixing, self.shears = field, mixing, shears
        self.inverse = torch.linalg.inv(mixing)

    def disguise(self, y: Tensor) -> Tensor:
        """From plain coordinates to those of the flow."""
        parts = list(y.unbind(-1))
        for to, of, size, speed in self.shears:
            parts[to] = parts[to] + size * torch.sin(speed * parts[of])
        return torch.stack(parts, -1) @ self.mixing.mT

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        """By the chain rule."""
        parts = list((x @ self.inverse.mT).unbind(-1))
        for to, of, size, speed in reversed(self.shears):
            parts[to] = parts[to] - size * torch.sin(speed * parts[of])
        moves = list(self.field(torch.stack(parts, -1)).unbind(-1))
        for to, of, size, speed in self.shears:
            moves[to] = moves[to] + size * speed * torch.cos(speed * parts[of]) * moves[of]
            parts[to] = parts[to] + size * torch.sin(speed * parts[of])
        return torch.stack(moves, -1) @ self.mixing.mT

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        """By forward differentiation."""
        shape = torch.broadcast_shapes(x.shape, u.shape)
        along: Tensor = torch.func.jvp(self.velocity, (x.expand(shape).clone(),), (u.expand(shape).clone(),))[1]
        return along

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Disguised:
        """One flow for all."""
        return self

    def to(self, dtype: torch.dtype) -> Disguised:
        """Double precision."""
        return self


def drawn(kind: Callable[[Draws, numpy.ndarray], Core], seed: tuple[int, ...]) -> tuple[Disguised, Tensor, Core]:
    """A flow of a kind, a start and what is known of its end; the period is that of the flow."""
    draws = numpy.random.default_rng(list(seed))
    size, pace = int(draws.integers(3 if kind is line else 2, 5)), _between(draws, 0.1, 10)
    start = draws.normal(size=size)
    while not 0.3 < numpy.hypot(*start[:2]) < 2.5:
        start[:2] = draws.normal(size=2)
    core = kind(draws, start)
    rates, drives = draws.uniform(0.3, 3, 2).tolist(), draws.uniform(-1, 1, 2).tolist()

    def field(y: Tensor) -> Tensor:
        parts = [core.field(y[..., :2])]
        if size > 2:
            drive = y[..., 0] if core.is_line else torch.tanh(y[..., 0]) - (rates[0] / drives[0]) * y[..., 2]
            parts.append((drives[0] * drive).unsqueeze(-1))
        if size > 3:
            parts.append((drives[1] * torch.tanh(y[..., 0] * y[..., 1]) - rates[1] * y[..., 3]).unsqueeze(-1))
        return pace * torch.cat(parts, -1)

    mixing = draws.normal(size=(size, size))
    while numpy.linalg.cond(mixing) > 20:
        mixing = draws.normal(size=(size, size))
    shears = []
    for _ in range(int(draws.integers(0, 4))):
        to, of = draws.permutation(size)[:2].tolist()
        shears.append((to, of, float(draws.uniform(-0.6, 0.6)), float(draws.uniform(0.5, 1.2))))
    flow = Disguised(field, torch.tensor(mixing), shears)
    core.period = None if core.period is None else core.period / pace
    if core.is_line:
        plain = torch.zeros(1, size, dtype=torch.float64)
        plain[0, 2] = start[2] + drives[0] * core.drift
        core.end = flow.disguise(plain)
    return flow, flow.disguise(torch.tensor(start).unsqueeze(0)), core
