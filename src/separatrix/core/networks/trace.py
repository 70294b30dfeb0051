"""What a recurrent network did along a sequence, in a form that any room can read."""

from __future__ import annotations

import dataclasses
from typing import final

from jaxtyping import Float, Int, Num
from torch import Tensor

from ..result import Result


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Trace(Result):
    """States along a sequence, and what led to them where the network has it."""

    states: Num[Tensor, "batch t_plus_1 h"]
    """The initial state first, so that ``states[:, t + 1]`` follows from ``states[:, t]`` and the input of step t."""
    pre_activations: Num[Tensor, "batch t p"] | None = None
    """What the nonlinearity saw."""
    indices: Int[Tensor, "batch t k"] | None = None
    """Steps that were attended to, -1 for an empty place."""
    weights: Float[Tensor, "batch t k"] | None = None
    """How much each of them counted."""
    lengths: Int[Tensor, " batch"] | None = None
    """Steps of each sequence; a state stays as it is after its last."""
    hidden: Num[Tensor, "batch t q"] | None = None
    """What was stored at each step, where that is not the state itself."""
