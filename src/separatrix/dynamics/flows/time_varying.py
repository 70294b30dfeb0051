"""Weights that change along depth: a stack of layers, or any function of time.

Such a flow has no equilibria. What is reported per layer is where the tokens are, how fast neighbouring states part
(finite-time Lyapunov exponents), and the principal eigenvector that the layer alone would lead to.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, ShapeError, require_integer, require_positive

from ..integration.variational import transport
from .base import AbstractSphereFlow
from .sphere import check_tokens, normalise

FlowAt: TypeAlias = Callable[[float], AbstractSphereFlow]


@final
@dataclasses.dataclass(frozen=True)
class Layers:
    """Piecewise-constant weights: layer k acts for ``durations[k]``."""

    flows: tuple[AbstractSphereFlow, ...]
    durations: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.flows or len(self.flows) != len(self.durations):
            raise ShapeError(
                f"layers must be as many flows as durations; got {len(self.flows)} and {len(self.durations)}."
            )
        if len({flow.dim for flow in self.flows}) > 1:
            raise ShapeError(f"layers must act on tokens of one dimension; got {[flow.dim for flow in self.flows]}.")
        for duration in self.durations:
            require_positive(duration, "durations")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LayerRun(Result):
    """States before the first and after each layer, and per layer what it does.

    ``alignment`` is the mean squared cosine of the tokens, after the layer, with the principal eigenvector of its
    value matrix (NaN if the principal eigenvalue is complex); ``exponents`` the largest finite-time Lyapunov exponent
    over that layer, for the first element of the batch.
    """

    states: Float[Tensor, "depths *batch n d"]
    alignment: Float[Tensor, " layers *batch"]
    exponents: Float[Tensor, " layers"]


def run_layers(layers: Layers, x0: object, *, n_exponents: int = 1) -> LayerRun:
    """Send tokens through a stack of layers.

    Args:
        layers: flows with durations.
        x0: tokens (..., n, d).
        n_exponents: tangent vectors carried along for the exponents; the largest is reported.
    """
    x = check_tokens(x0, "x0").double()
    require_integer(n_exponents, "n_exponents", at_least=1)
    states, alignments, exponents = [x], [], []
    for flow, duration in zip(layers.flows, layers.durations, strict=True):
        double = flow.to(torch.float64)
        first = x.reshape(-1, *x.shape[-2:])[0]
        exponents.append(_exponent(double, first, duration, n_exponents))
        x = follow_weights(lambda t, double=double: double, x, duration)  # type: ignore[misc]
        states.append(x)
        alignments.append(_alignment(double, x))
    return LayerRun(torch.stack(states), torch.stack(alignments), torch.tensor(exponents, dtype=torch.float64))


def follow_weights(
    flow_at: FlowAt, x0: Float[Tensor, "*batch n d"], duration: float, *, steps_per_unit: int = 16
) -> Float[Tensor, "*batch n d"]:
    """State after ``duration`` of a flow whose weights are a function of time, by a fixed-step fourth-order method.

    The weights must be smooth in time; for layers use ``run_layers``, which does not step across a change.
    """
    require_positive(duration, "duration")
    if steps_per_unit < 1:
        raise InvalidInput(f"steps_per_unit must be at least 1; got {steps_per_unit}.")
    count = max(8, math.ceil(steps_per_unit * duration * float(flow_at(0.0).rate.max())))
    x, h = x0, duration / count
    for i in range(count):
        t = i * h
        start, middle, end = flow_at(t), flow_at(t + h / 2), flow_at(t + h)
        k1 = start.velocity(x)
        k2 = middle.velocity(normalise(x + h / 2 * k1))
        k3 = middle.velocity(normalise(x + h / 2 * k2))
        k4 = end.velocity(normalise(x + h * k3))
        x = normalise(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return x


def _exponent(flow: AbstractSphereFlow, x: Tensor, duration: float, count: int) -> float:
    directions = torch.block_diag(*flow.basis(x)).mT[:count].reshape(-1, *x.shape)
    _, moved = transport(flow, x, directions, duration)
    growth = torch.linalg.matrix_norm(moved.flatten(1), ord=2)
    return float(growth.log()) / duration


def _alignment(flow: AbstractSphereFlow, x: Tensor) -> Tensor:
    values, vectors = torch.linalg.eig(flow.value_sum)
    top = values.real.argmax()
    if abs(float(values[top].imag)) > 1e-9 * float(values.abs().max()):
        return torch.full(x.shape[:-2], torch.nan, dtype=x.dtype)
    principal = vectors[:, top].real
    return (x @ (principal / principal.norm())).square().mean(dim=-1)


def layers_of(flows: Sequence[AbstractSphereFlow], duration: float = 1.0) -> Layers:
    """A stack of layers of equal duration."""
    return Layers(tuple(flows), (duration,) * len(flows))
