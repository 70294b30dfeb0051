"""Flows and a normalisation as a stranger writes them: from the notes to implementers alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from separatrix.dynamics import AbstractFlow, AbstractNormalisation, AbstractSphereFlow


class Lorenz(AbstractFlow):
    """Four methods and no more."""

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        a, b, c = x.unbind(-1)
        return torch.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], dim=-1)

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        a, b, c = x.unbind(-1)
        p, q, r = u.unbind(-1)
        return torch.stack([10 * (q - p), p * (28 - c) - a * r - q, p * b + a * q - 8 / 3 * r], dim=-1)

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Lorenz:
        return self

    def to(self, dtype: torch.dtype) -> Lorenz:
        return self


class LotkaVolterra(AbstractFlow):
    """Every orbit around (1, 1) is periodic, and neutral."""

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        a, b = x.unbind(-1)
        return torch.stack([a * (1 - b), b * (a - 1)], dim=-1)

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        a, b = x.unbind(-1)
        p, q = u.unbind(-1)
        return torch.stack([p * (1 - b) - a * q, q * (a - 1) + b * p], dim=-1)

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> LotkaVolterra:
        return self

    def to(self, dtype: torch.dtype) -> LotkaVolterra:
        return self


class Forced(AbstractFlow):
    """A velocity that depends on time, differentiated in the state automatically."""

    autonomous = False

    def __init__(self, field: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.field = field

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        assert t is not None
        return self.field(x, t[..., None, None])

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        shape = torch.broadcast_shapes(x.shape, u.shape)
        along: Tensor = torch.func.jvp(
            lambda state: self.velocity(state, t), (x.expand(shape).clone(),), (u.expand(shape).clone(),)
        )[1]
        return along

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Forced:
        return self

    def to(self, dtype: torch.dtype) -> Forced:
        return self


class Radial(AbstractFlow):
    """One turn in 2 pi, and a rate of growth that is a function of the squared distance from the origin."""

    def __init__(self, growth: Callable[[Tensor], Tensor]) -> None:
        self.growth = growth

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        turned = torch.stack([-x[..., 1], x[..., 0]], dim=-1)
        return self.growth(x.square().sum(dim=-1, keepdim=True)) * x + turned

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        shape = torch.broadcast_shapes(x.shape, u.shape)
        along: Tensor = torch.func.jvp(self.velocity, (x.expand(shape).clone(),), (u.expand(shape).clone(),))[1]
        return along

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Radial:
        return self

    def to(self, dtype: torch.dtype) -> Radial:
        return self


class Ring(AbstractFlow):
    """Equilibria on the circle of radius ``radius`` and at its centre; with ``twist`` the circle turns."""

    def __init__(self, radius: float = 1.0, twist: float = 0.0) -> None:
        self.radius, self.twist = radius, twist

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        turned = torch.stack([-x[..., 1], x[..., 0]], dim=-1)
        return x * (self.radius**2 - x.square().sum(dim=-1, keepdim=True)) + self.twist * turned

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        turned = torch.stack([-u[..., 1], u[..., 0]], dim=-1)
        inner = (x * u).sum(dim=-1, keepdim=True)
        return u * (self.radius**2 - x.square().sum(dim=-1, keepdim=True)) - 2 * x * inner + self.twist * turned

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Ring:
        return self

    def to(self, dtype: torch.dtype) -> Ring:
        return self


class VanDerPol(AbstractFlow):
    """One oscillator per weight instance; ``jvp`` without the optional time."""

    def __init__(self, mu: Tensor) -> None:
        self.mu = mu

    @property
    def instances(self) -> tuple[int, ...]:
        return tuple(self.mu.shape)

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        a, b = x[..., 0, 0], x[..., 0, 1]
        return torch.stack([b, self.mu * (1 - a * a) * b - a], dim=-1).unsqueeze(-2)

    def jvp(self, x: Tensor, u: Tensor) -> Tensor:  # type: ignore[override]
        a, b, p, q = x[..., 0, 0], x[..., 0, 1], u[..., 0, 0], u[..., 0, 1]
        return torch.stack([q, self.mu * ((1 - a * a) * q - 2 * a * b * p) - p], dim=-1).unsqueeze(-2)

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> VanDerPol:
        return VanDerPol(self.mu.expand(batch_shape).flatten()[index])

    def to(self, dtype: torch.dtype) -> VanDerPol:
        return VanDerPol(self.mu.to(dtype))


class Pendulum(AbstractFlow):
    """Damped, forced from outside: its velocity depends on time."""

    autonomous = False

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        assert t is not None
        angle, speed = x[..., 0], x[..., 1]
        return torch.stack([speed, torch.cos(t).unsqueeze(-1) - angle.sin() - 0.3 * speed], dim=-1)

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        return torch.stack([u[..., 1], -x[..., 0].cos() * u[..., 0] - 0.3 * u[..., 1]], dim=-1)

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Pendulum:
        return self

    def to(self, dtype: torch.dtype) -> Pendulum:
        return self


class CubicMean(AbstractSphereFlow):
    """Tokens on the sphere, pulled by V times the mean of x |x . a|^2: neither attention nor Oja."""

    def __init__(self, value: Tensor, sizes: Tensor | None = None) -> None:
        self.value, self._sizes = value, sizes

    def _shares(self, x: Tensor) -> Tensor:
        sizes = torch.ones_like(x[..., 0]) if self._sizes is None else self._sizes
        return (sizes / sizes.sum(dim=-1, keepdim=True)).unsqueeze(-1)

    def pull(self, x: Tensor) -> Tensor:
        mean = (self._shares(x) * x * (1 + x[..., :1].square())).sum(dim=-2, keepdim=True)
        return mean @ self.value.mT

    def pull_and_jvp(self, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        change = u * (1 + x[..., :1].square()) + 2 * x * x[..., :1] * u[..., :1]
        return self.pull(x), (self._shares(x) * change).sum(dim=-2, keepdim=True) @ self.value.mT

    @property
    def value_sum(self) -> Tensor:
        return self.value

    @property
    def reducible(self) -> bool:
        return True

    @property
    def sizes(self) -> Tensor | None:
        return self._sizes

    def with_sizes(self, sizes: Tensor | None) -> CubicMean:
        return CubicMean(self.value, sizes)

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> CubicMean:
        sizes = self._sizes
        if sizes is not None and sizes.ndim > 1:
            sizes = sizes.expand(*batch_shape, sizes.shape[-1]).flatten(0, -2)[index]
        return CubicMean(self.value, sizes)

    def to(self, dtype: torch.dtype) -> CubicMean:
        return CubicMean(self.value.to(dtype), None if self._sizes is None else self._sizes.to(dtype))


class Tempered(AbstractNormalisation):
    """Half of a softmax at twice the temperature, half of it uniform over what is visible."""

    def weights(self, logits: Tensor, log_sizes: Tensor | None) -> Tensor:
        return 0.5 * self._soft(logits / 2, log_sizes) + 0.5 * self._soft(torch.zeros_like(logits), log_sizes, logits)

    def tangent(self, attention: Tensor, dlogits: Tensor, log_sizes: Tensor | None) -> Tensor:
        visible = torch.where(attention > 0, torch.zeros_like(attention), -torch.inf)
        soft = 2 * attention - self._soft(torch.zeros_like(attention), log_sizes, visible)
        weighted = soft * dlogits / 2
        return 0.5 * (weighted - soft * weighted.sum(dim=-1, keepdim=True))

    def _soft(self, logits: Tensor, log_sizes: Tensor | None, mask: Tensor | None = None) -> Tensor:
        hidden = logits if mask is None else torch.where(torch.isneginf(mask), mask, logits)
        return torch.softmax(hidden if log_sizes is None else hidden + log_sizes.unsqueeze(-2), dim=-1)


class Hopf(AbstractFlow):
    """r' = r (mu - r^2), a turn in 2 pi / (1 + twist r^2): the cycle r^2 = mu has the multiplier exp(-4 pi mu / w)."""

    def __init__(self, mu: float, twist: float = 0.0) -> None:
        self.mu, self.twist = mu, twist

    def velocity(self, x: Tensor, t: Tensor | None = None) -> Tensor:
        a, b = x.unbind(-1)
        r = a * a + b * b
        grow, turn = self.mu - r, 1 + self.twist * r
        return torch.stack([grow * a - turn * b, turn * a + grow * b], dim=-1)

    def jvp(self, x: Tensor, u: Tensor, t: Tensor | None = None) -> Tensor:
        (a, b), (p, q) = x.unbind(-1), u.unbind(-1)
        r, change = a * a + b * b, 2 * (a * p + b * q)
        grow, turn = self.mu - r, 1 + self.twist * r
        first = grow * p - change * a - turn * q - self.twist * change * b
        return torch.stack([first, turn * p + self.twist * change * a + grow * q - change * b], dim=-1)

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> Hopf:
        return self

    def to(self, dtype: torch.dtype) -> Hopf:
        return self
