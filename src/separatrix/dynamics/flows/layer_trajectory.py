"""What an integration or a descent of a layered network returns."""

from __future__ import annotations

import dataclasses
from typing import final

from jaxtyping import Float, Int64
from torch import Tensor

from separatrix.core import Outcome, Result


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LayerTrajectory(Result):
    """Layers along training. Elements that failed hold NaN from the failure on."""

    times: Float[Tensor, " times"]
    layers: tuple[Tensor, ...]
    """Each (times, *batch, rows, columns), first layer first."""
    loss: Float[Tensor, " times *batch"]
    outcome: Int64[Tensor, "*batch"]
    """A code of ``core.Outcome`` per network; converged means: followed to the last time."""
    evaluations: Int64[Tensor, "*batch"]
    """Gradients computed."""

    @property
    def product(self) -> Tensor:
        """The network function of a linear chain, (times, *batch, n_out, n_in)."""
        product = self.layers[0]
        for layer in self.layers[1:]:
            product = layer @ product
        return product

    @property
    def ok(self) -> bool:
        """Whether every element was followed to the end."""
        return bool((self.outcome == Outcome.CONVERGED).all())
