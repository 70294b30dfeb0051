"""Weights that are a smooth function of time.

Such a flow has no equilibria: it is followed to a time. For weights that are constant by layers, see
``integration/layer_stacks``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput
from separatrix.core.names import suggest_options

from .base import AbstractFlow, described

FlowAt: TypeAlias = Callable[[Tensor], AbstractFlow]


@final
@suggest_options
@dataclasses.dataclass(frozen=True, repr=False)
class TimeVaryingFlow(AbstractFlow):
    """dx/dt = velocity of ``flow_at(t)`` at x.

    Args:
        flow_at: from times to the flow at these times. It is called with a tensor of times, one for each element of
            the batch, and its weights must get those leading axes: every trajectory has its own step, so that the
            elements of a batch stand at different times.
        dtype: precision; that of the weights if left out.

    Example:
        >>> import torch
        >>> from separatrix.dynamics import OjaFlow, integrate
        >>> def flow_at(t):
        ...     return OjaFlow(torch.diag_embed(torch.stack([1 + t, 0 * t], dim=-1)))
        >>> run = integrate(TimeVaryingFlow(flow_at), [[0.6, 0.8]], "reference", t_max=2.0)
        >>> run.ok, round(float(run.final[0, 1] / run.final[0, 0]), 4)  # 4/3 exp(-integral of 1 + t)
        (True, 0.0244)
    """

    flow_at: FlowAt
    dtype: torch.dtype | None = None

    autonomous = False

    def __repr__(self) -> str:
        return described(self, (f"weights from {getattr(self.flow_at, '__name__', type(self.flow_at).__name__)}",))

    def at(self, t: Tensor | None) -> AbstractFlow:
        """The flow at given times."""
        if t is None:
            raise InvalidInput("a flow with weights that vary in time needs a time: velocity(x, t).")
        flow = self.flow_at(t)
        return flow if self.dtype is None else flow.to(self.dtype)

    def velocity(self, x: Float[Tensor, "*batch n d"], t: Tensor | None = None) -> Float[Tensor, "*batch2 n d"]:
        """Velocity of the flow at times t."""
        return self.at(t).velocity(x)

    def jvp(
        self, x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 n d"], t: Tensor | None = None
    ) -> Float[Tensor, "*batch3 n d"]:
        """Derivative of the velocity at times t."""
        return self.at(t).jvp(x, u)

    def select(self, batch_shape: tuple[int, ...], index: Tensor) -> TimeVaryingFlow:
        """Itself: elements differ by their times alone."""
        return self

    def to(self, dtype: torch.dtype) -> TimeVaryingFlow:
        """The same flow computing in another precision."""
        return dataclasses.replace(self, dtype=dtype)

    def project(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """Nearest admissible state, the same at all times."""
        return self.at(torch.zeros((), dtype=torch.float64, device=x.device)).project(x)

    def basis(self, x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d e"]:
        """Directions in which tokens may move, the same at all times."""
        return self.at(torch.zeros((), dtype=torch.float64, device=x.device)).basis(x)
