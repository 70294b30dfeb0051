"""Weights that are constant by layers: tokens sent through a stack, and what each layer does to them.

Such a stack has no equilibria. What is reported per layer is where the tokens are, how fast neighbouring states part
(finite-time Lyapunov exponents), and the principal eigenvector that the layer alone would lead to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import Result, ShapeError, require_integer, require_positive
from separatrix.core.arithmetic.eigenvalues import eig
from separatrix.core.names import suggest_options

from ..flows.base import AbstractSphereFlow
from ..flows.sphere import check_tokens
from .integrate import integrate
from .variational import tangential, transport


@final
@suggest_options
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
        x = integrate(double, x, "reference", t_max=duration, tol=0.0, finishing=False).final
        states.append(x)
        alignments.append(_alignment(double, x))
    return LayerRun(torch.stack(states), torch.stack(alignments), torch.tensor(exponents, dtype=torch.float64))


def _exponent(flow: AbstractSphereFlow, x: Tensor, duration: float, count: int) -> float:
    directions = torch.block_diag(*flow.basis(x)).mT[:count].reshape(-1, *x.shape)
    end, moved = transport(flow, x, directions, duration)
    growth = torch.linalg.matrix_norm(tangential(flow, end, moved).flatten(1), ord=2)
    return float(growth.log()) / duration


def _alignment(flow: AbstractSphereFlow, x: Tensor) -> Tensor:
    values, vectors = eig(flow.value_sum)
    top = values.real.argmax()
    if abs(float(values[top].imag)) > 1e-9 * float(values.abs().max()):
        return torch.full(x.shape[:-2], torch.nan, dtype=x.dtype)
    principal = vectors[:, top].real
    return (x @ (principal / principal.norm())).square().mean(dim=-1)


def layers_of(flows: Sequence[AbstractSphereFlow], duration: float = 1.0) -> Layers:
    """A stack of layers of equal duration."""
    return Layers(tuple(flows), (duration,) * len(flows))
