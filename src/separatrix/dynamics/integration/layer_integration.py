"""Batched integration of a chain of layers: DOP853 with a step size and an error test of its own for every network.

The Butcher table is that of ``scipy.integrate.DOP853`` (Hairer, Norsett, Wanner). Steps end exactly on the requested
times, so no interpolation error enters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from scipy.integrate import DOP853
from torch import Tensor

from separatrix.core import InvalidInput, Outcome, require_positive

from ..flows.layer_trajectory import LayerTrajectory

_ORDER = 8
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 10.0


def integrate_layers(
    velocity: Callable[[Sequence[Tensor]], Sequence[Tensor]],
    loss: Callable[[Sequence[Tensor]], Tensor],
    layers: Sequence[Tensor],
    times: Tensor,
    rtol: float,
    atol: float,
    max_steps: int,
) -> LayerTrajectory:
    """Follow ``d layers/dt = velocity(layers)`` from time zero through the given times."""
    require_positive(rtol, "rtol")
    require_positive(atol, "atol")
    times = times.reshape(-1)
    if times.numel() and (bool((times < 0).any()) or bool((times[1:] < times[:-1]).any())):
        raise InvalidInput("times must not be negative and must not descend.")
    batch = layers[0].shape[:-2]
    shapes = [layer.shape[-2:] for layer in layers]
    start = torch.cat(
        [layer.to(torch.float64).reshape(-1, shape.numel()) for layer, shape in zip(layers, shapes, strict=True)], -1
    )

    def rate(state: Tensor) -> Tensor:
        parts = velocity(_split(state.reshape(*batch, -1), shapes))
        return torch.cat(
            [part.expand(*batch, *shape).reshape(*batch, -1) for part, shape in zip(parts, shapes, strict=True)], -1
        ).reshape(state.shape)

    stepper = _Stepper(rate, start, rtol, atol, max_steps)
    states = [stepper.advance(float(time)) for time in times]
    path = torch.stack(states) if states else start.new_empty(0, *start.shape)
    pieces = _split(path.reshape(times.shape[0], *batch, -1), shapes)
    dtype = layers[0].dtype
    losses = loss(pieces) if states else start.new_empty(0, *batch)
    return LayerTrajectory(
        times,
        tuple(piece.to(dtype) for piece in pieces),
        losses.to(dtype),
        stepper.outcome.reshape(batch),
        stepper.evaluations.reshape(batch),
    )


def _split(flat: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    parts = flat.split([shape.numel() for shape in shapes], dim=-1)
    return [part.reshape(*flat.shape[:-1], *shape) for part, shape in zip(parts, shapes, strict=True)]


class _Stepper:
    """State (n, size) of n independent systems, advanced together, each with its own step."""

    def __init__(
        self, rate: Callable[[Tensor], Tensor], start: Tensor, rtol: float, atol: float, max_steps: int
    ) -> None:
        self.rate, self.rtol, self.atol, self.max_steps = rate, rtol, atol, max_steps
        self.nodes_a = start.new_tensor(DOP853.A)
        self.weights_b = start.new_tensor(DOP853.B)
        self.error_3, self.error_5 = (start.new_tensor(e) for e in (DOP853.E3, DOP853.E5))
        n = start.shape[0]
        self.state, self.slope = start, rate(start)
        self.time = start.new_zeros(n)
        self.step = self._first_step()
        self.steps = torch.zeros(n, dtype=torch.int64, device=start.device)
        self.evaluations = torch.full((n,), 2, dtype=torch.int64, device=start.device)
        self.outcome = torch.full((n,), int(Outcome.CONVERGED), dtype=torch.int64, device=start.device)
        self._fail(~torch.isfinite(self.slope).all(-1), Outcome.NON_FINITE)

    def advance(self, goal: float) -> Tensor:
        """The state at a time not before the present one; NaN where the integration failed."""
        while True:
            going = (self.time < goal) & (self.outcome == Outcome.CONVERGED)
            if not bool(going.any()):
                break
            self._attempt(going, goal)
        failed = (self.outcome != Outcome.CONVERGED)[:, None]
        return torch.where(failed, float("nan"), self.state)

    def _attempt(self, going: Tensor, goal: float) -> None:
        left = goal - self.time
        last = self.step >= left
        step = torch.where(last, left, self.step)[:, None]
        k = self.state.new_empty(13, self.state.numel())
        k[0] = self.slope.reshape(-1)
        for index in range(1, 12):
            mixed = (self.nodes_a[index, :index] @ k[:index]).reshape(self.state.shape)
            k[index] = self.rate(self.state + step * mixed).reshape(-1)
        state = self.state + step * (self.weights_b @ k[:12]).reshape(self.state.shape)
        slope = self.rate(state)
        k[12] = slope.reshape(-1)
        error = self._error(k, step, state)
        accepted = going & (error <= 1)
        factor = _SAFETY * error.clamp_min(1e-300) ** (-1 / _ORDER)
        factor = torch.where(accepted, factor.clamp(_SHRINK, _GROW), factor.clamp(_SHRINK, 1.0))
        # a step cut short to end on a requested time says nothing against the longer one tried before
        proposed = torch.where(accepted & last, torch.maximum(self.step, step[:, 0] * factor), step[:, 0] * factor)
        self.step = torch.where(going, torch.nan_to_num(proposed, nan=0.0), self.step)
        self.state = torch.where(accepted[:, None], state, self.state)
        self.slope = torch.where(accepted[:, None], slope, self.slope)
        self.time = torch.where(accepted, torch.where(last, goal, self.time + step[:, 0]), self.time)
        self.steps = self.steps + going
        self.evaluations = self.evaluations + 12 * going
        self._fail(going & (self.step <= 1e-15 * self.time.clamp_min(1e-280)), Outcome.NON_FINITE)
        self._fail(going & (self.steps >= self.max_steps) & (self.time < goal), Outcome.OUT_OF_STEPS)

    def _error(self, k: Tensor, step: Tensor, state: Tensor) -> Tensor:
        """The combined fifth and third order estimate, relative to the tolerances, per system; infinite for NaN."""
        scale = self.atol + self.rtol * torch.maximum(self.state.abs(), state.abs())
        fifth = ((self.error_5 @ k).reshape(state.shape) / scale).square().sum(-1)
        third = ((self.error_3 @ k).reshape(state.shape) / scale).square().sum(-1)
        norm = (fifth + 0.01 * third).clamp_min(1e-300)
        error = step[:, 0].abs() * fifth / (norm * scale.shape[-1]).sqrt()
        return torch.nan_to_num(error, nan=float("inf"))

    def _first_step(self) -> Tensor:
        scale = self.atol + self.rtol * self.state.abs()
        size = (self.state / scale).square().mean(-1).sqrt()
        speed = (self.slope / scale).square().mean(-1).sqrt()
        guess = torch.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / speed.clamp_min(1e-300))
        bend = self.rate(self.state + guess[:, None] * self.slope) - self.slope
        bend = (bend / scale).square().mean(-1).sqrt() / guess
        most = torch.maximum(speed, bend)
        again = torch.where(
            most <= 1e-15, (guess * 1e-3).clamp_min(1e-6), (0.01 / most.clamp_min(1e-300)) ** (1 / _ORDER)
        )
        return torch.nan_to_num(torch.minimum(100 * guess, again), nan=1e-6)

    def _fail(self, where: Tensor, outcome: Outcome) -> None:
        self.outcome = torch.where(where & (self.outcome == Outcome.CONVERGED), int(outcome), self.outcome)
