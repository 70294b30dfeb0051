"""What a screening policy is: how states in the short buffer earn the score by which they stay."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, final

from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core.described import Described
from separatrix.core.result import Result


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Sight(Result):
    """What a policy sees after a step. The first ``n_buffer`` places are the short buffer, the rest the kept states."""

    t: int
    """Number of the step, from 0."""
    newest: int
    """Where the newest state stands."""
    n_buffer: int
    index: Int[Tensor, "batch k"]
    """The step at which each state was made, -1 for an empty place."""
    weights: Float[Tensor, "batch k"]
    """Attention to each, 0 at empty places."""
    hidden: Float[Tensor, "batch k h"] | None
    """The states themselves; ``None`` where weights alone are played."""
    entering: Float[Tensor, "batch m"] | None
    """The input of this step, where there is one."""
    scores: Float[Tensor, "batch k"]
    """To be changed in place; the newest state has 0."""
    own: Any
    """What ``begin`` of the policy made."""

    @property
    def present(self) -> Bool[Tensor, "batch k"]:
        """Which places are taken."""
        return self.index >= 0


class AbstractScreening(Described, abc.ABC):
    """A policy changes scores after each step; a state that leaves the buffer is kept if its score is among the best.

    A kept state gives way to one that leaves the buffer with a strictly higher score; of several with the least score
    the most recent one goes. Scores carry no gradient.

    For implementers: write ``observe``, which changes ``sight.scores`` in place, sample by sample and with finite
    numbers; ``begin`` if the policy needs something of its own along a sequence; ``rescores_kept`` must be true if
    scores beyond the buffer are changed.
    """

    name: ClassVar[str]
    rescores_kept: ClassVar[bool] = False
    """Whether scores of kept states change too."""
    gates: ClassVar[bool] = False
    """Whether kept states are multiplied by ``gate``, so that weights of the policy get a gradient."""
    needs_states: ClassVar[bool] = False
    """Whether the policy looks at hidden states or inputs, so that it cannot be played on weights alone."""

    @property
    def has_state(self) -> bool:
        """Whether the policy keeps something of its own along a sequence, which a carried memory does not hold."""
        return type(self).begin is not AbstractScreening.begin

    def begin(self, batch: int, like: Tensor) -> Any:
        """What the policy keeps along one sequence; ``like`` has the dtype and device of the scores."""
        return None

    @abc.abstractmethod
    def observe(self, sight: Sight) -> None:
        """Change the scores after a step."""

    def gate(self, leaving: Tensor, own: Any, place: int, step: Tensor) -> Tensor:
        """What states (batch, h) that leave a place of the buffer are multiplied by if they are kept, (batch, 1)."""
        raise NotImplementedError
