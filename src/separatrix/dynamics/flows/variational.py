"""A flow together with its tangent vectors, as one flow.

    dx/dt = f(x),   du/dt = f'(x) u

Integrating it gives flow maps with their derivatives, Floquet multipliers and Lyapunov exponents.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.names import suggest_options

from .base import AbstractFlow, described


@final
@suggest_options
@dataclasses.dataclass(frozen=True, repr=False)
class VariationalFlow(AbstractFlow):
    """A state of n tokens, then ``n_directions`` tangent vectors of n tokens each: (..., (1 + n_directions) n, d).

    Tangent vectors are carried in the coordinates of the whole space; those that start in the tangent space of a
    constrained flow stay in it.

    Cost of a velocity: one velocity and ``n_directions`` Jacobian-vector products of the flow.
    """

    flow: AbstractFlow
    n_directions: int

    def __repr__(self) -> str:
        return described(self, (f"{self.n_directions} directions along {self.flow!r}",))

    @property
    def autonomous(self) -> bool:  # type: ignore[override]
        """As the flow."""
        return self.flow.autonomous

    @property
    def instances(self) -> tuple[int, ...]:
        """As the flow."""
        return self.flow.instances

    def pack(
        self, x: Float[Tensor, "*batch n d"], tangents: Float[Tensor, "*batch directions n d"]
    ) -> Float[Tensor, "*batch rows d"]:
        """State and tangent vectors as one state."""
        return torch.cat([x, tangents.flatten(-3, -2)], dim=-2)

    def unpack(
        self, state: Float[Tensor, "*batch rows d"]
    ) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch directions n d"]]:
        """State and tangent vectors of a packed state."""
        n = state.shape[-2] // (1 + self.n_directions)
        return state[..., :n, :], state[..., n:, :].unflatten(-2, (self.n_directions, n))

    def velocity(self, x: Float[Tensor, "*batch rows d"], t: Tensor | None = None) -> Float[Tensor, "*batch2 rows d"]:
        """Velocity of the state and of its tangent vectors."""
        state, tangents = self.unpack(x)
        velocity, change = self.flow.velocity_and_jvp(state, tangents.movedim(-3, 0), t)
        return self.pack(velocity, change.movedim(0, -3))

    def jvp(
        self, x: Float[Tensor, "*batch rows d"], u: Float[Tensor, "*batch2 rows d"], t: Tensor | None = None
    ) -> Float[Tensor, "*batch3 rows d"]:
        """Derivative of the velocity, by differentiating the flow's own derivative automatically."""
        shape = torch.broadcast_shapes(x.shape, u.shape)
        along: Tensor = torch.autograd.functional.jvp(
            lambda state: self.velocity(state, t), x.expand(shape).contiguous(), u.expand(shape).contiguous()
        )[1]
        return along

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> VariationalFlow:
        """The flow of some elements of a flattened batch."""
        return VariationalFlow(self.flow.select(batch_shape, index), self.n_directions)

    def to(self, dtype: torch.dtype) -> VariationalFlow:
        """The same flow computing in another precision."""
        return VariationalFlow(self.flow.to(dtype), self.n_directions)

    def project(self, x: Float[Tensor, "*batch rows d"]) -> Float[Tensor, "*batch rows d"]:
        """Nearest admissible state; tangent vectors stay as they are."""
        n = x.shape[-2] // (1 + self.n_directions)
        return torch.cat([self.flow.project(x[..., :n, :]), x[..., n:, :]], dim=-2)
