"""Activations, the one table of the house: value, slope, where the slope jumps, how steep and how large they get."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import InvalidInput
from ..names import resolve, suggest_options
from ..scalars import in_words

Pointwise: TypeAlias = Callable[[Tensor], Tensor]

_REACH = 30.0
_PROBES = 60001
_JUMP = 0.02
"""A change of slope this large between neighbouring probes (0.001 apart) counts as a kink."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Activation:
    """An elementwise function with what is known of it.

    Args:
        name: for messages and tables.
        phi: the function.
        dphi: its slope.
        kinks: where the slope jumps; integrals are split there.
        min_slope: the least slope; not below zero for a monotone function.
        max_slope: the largest slope.
        bound: the largest absolute value, infinite if there is none.
    """

    name: str
    phi: Pointwise
    dphi: Pointwise
    kinks: tuple[float, ...]
    min_slope: float
    max_slope: float
    bound: float = math.inf

    @property
    def is_monotone(self) -> bool:
        """Whether the slope is never negative."""
        return self.min_slope >= 0


def find_activation(phi: str | Activation | Pointwise) -> Activation:
    """An activation from its name, or from any function of tensors.

    A function is probed on [-30, 30]: its slope by automatic differentiation, jumps of the slope, largest and least
    slope, and whether it stays bounded. What happens only outside that interval is not seen.

    Example:
        >>> find_activation("tanh").max_slope
        1.0
        >>> find_activation(lambda h: h.clamp(-2, 2)).kinks
        (-2.0, 2.0)
    """
    if callable(phi):
        return _probe(phi)
    return resolve("activation", phi, ACTIVATIONS, base=Activation)


@functools.lru_cache(maxsize=64)
def _probe(phi: Pointwise) -> Activation:
    slope = functools.partial(_autodiff_slope, phi)
    points = torch.linspace(-_REACH, _REACH, _PROBES, dtype=torch.float64) + 1e-7
    slopes = slope(points)
    if not bool(torch.isfinite(slopes).all()):
        raise InvalidInput("phi must have a finite slope everywhere on [-30, 30].")
    jumps = ((slopes[1:] - slopes[:-1]).abs() > _JUMP).nonzero().flatten()
    kinks = tuple(_locate(slope, float(points[i]), float(points[i + 1])) for i in jumps)
    ends = torch.tensor([-_REACH, _REACH, -1e4, 1e4], dtype=torch.float64)
    near, far = phi(ends)[:2], phi(ends)[2:]
    bounded = bool(torch.isfinite(far).all()) and bool(((far - near).abs() < 0.05 * (1 + near.abs())).all())
    bound = max(float(phi(points).abs().max()), float(far.abs().max())) if bounded else math.inf
    name = getattr(phi, "__name__", type(phi).__name__)
    least = float(slopes.min())
    return Activation(name, phi, slope, kinks, 0.0 if abs(least) < 1e-12 else least, float(slopes.max()), bound)


def _autodiff_slope(phi: Pointwise, h: Tensor) -> Tensor:
    if not isinstance(phi(h), Tensor):
        raise InvalidInput(f"phi must act elementwise on a tensor and return one; got {in_words(phi(h))}.")
    derivative: Any = torch.func.vjp(phi, h)  # of torch.func, so that the slope can be differentiated in turn
    value, pull = derivative
    if value.shape != h.shape:
        raise InvalidInput("phi must act elementwise: its value must have the shape of its argument.")
    slope: Tensor = pull(torch.ones_like(value))[0]
    return slope


def _locate(slope: Pointwise, low: float, high: float) -> float:
    """The place of a jump, by bisection towards the half that holds it."""
    left = float(slope(torch.tensor([low], dtype=torch.float64)))
    right = float(slope(torch.tensor([high], dtype=torch.float64)))
    while high - low > 1e-13 * (1 + abs(low)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        value = float(slope(torch.tensor([middle], dtype=torch.float64)))
        low, high = (middle, high) if abs(value - left) < abs(value - right) else (low, middle)
    return round((low + high) / 2, 12)


def _indicator(h: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    return (h.abs() < 1).to(h.dtype)


def _gelu_slope(h: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    return torch.special.ndtr(h) + h * torch.exp(-h * h / 2) / math.sqrt(2 * math.pi)


_GELU_LEAST = -0.12890414
"""The slope of GELU at its steepest descent, h = -sqrt(2)."""

ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation("linear", lambda h: h, torch.ones_like, (), 1.0, 1.0),
        Activation("hardtanh", lambda h: h.clamp(-1, 1), _indicator, (-1.0, 1.0), 0.0, 1.0, 1.0),
        Activation("tanh", torch.tanh, lambda h: 1 - torch.tanh(h).square(), (), 0.0, 1.0, 1.0),
        Activation(
            "erf", torch.erf, lambda h: 2 / math.sqrt(math.pi) * torch.exp(-h * h), (), 0.0, 2 / math.sqrt(math.pi), 1.0
        ),
        Activation("relu", torch.relu, lambda h: (h > 0).to(h.dtype), (0.0,), 0.0, 1.0),
        Activation("sigmoid", torch.sigmoid, lambda h: torch.sigmoid(h) * torch.sigmoid(-h), (), 0.0, 0.25, 1.0),
        Activation("softplus", torch.nn.functional.softplus, torch.sigmoid, (), 0.0, 1.0),
        Activation("gelu", torch.nn.functional.gelu, _gelu_slope, (), _GELU_LEAST, 1.12890414),
    )
}
