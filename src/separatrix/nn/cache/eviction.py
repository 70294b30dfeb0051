"""What an eviction policy is: how keys of a bounded cache earn the score by which they stay."""

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
class CacheSight(Result):
    """What a policy sees of one layer after some tokens, before anything is forgotten.

    It is what ``Sight`` is to the recurrent networks of ``separatrix.nn.memory``, for keys per head and for several
    queries at once. Places stand in no order; ``positions`` tells which key is where.
    """

    weights: Float[Tensor, "batch heads q k"]
    """Attention of the newest queries to each key, averaged over the query heads that share it; 0 where a key is
    empty, comes later than the query, or the query is padding."""
    positions: Int[Tensor, "batch heads k"]
    """Position of each key in its sequence, from 0; -1 for an empty place."""
    queries: Int[Tensor, "batch q"]
    """Positions of the queries; negative for padding."""
    n_buffer: int
    keys: Float[Tensor, "batch heads k d"]
    values: Float[Tensor, "batch heads k v"]
    scores: Float[Tensor, "batch heads k"]
    """To be changed in place. A new key has 0; minus infinity gives a key up as soon as it leaves the buffer."""
    own: Any
    """What ``begin`` of the policy made."""

    @property
    def ages(self) -> Int[Tensor, "batch heads q k"]:
        """Steps from each key to each query; negative for a key that the query cannot see."""
        return self.queries[:, None, :, None] - self.positions.unsqueeze(2)

    @property
    def visible(self) -> Bool[Tensor, "batch heads q k"]:
        """Which key each query could attend to."""
        return (self.ages >= 0) & (self.positions >= 0).unsqueeze(2) & (self.queries >= 0)[:, None, :, None]

    @property
    def newest(self) -> Int[Tensor, " batch"]:
        """Position of the last query."""
        return self.queries[:, -1]


class AbstractEviction(Described, abc.ABC):
    """A policy changes scores after each call; a key that leaves the buffer stays if its score is among the best.

    The buffer holds the newest ``n_buffer`` keys of every head. Behind it the ``n_relevant`` keys with the highest
    scores stay, of equal ones the earlier; what is forgotten never returns. Scores carry no gradient.

    For implementers: write ``observe``, which changes ``sight.scores`` in place with numbers that are not NaN, head by
    head and sample by sample; ``begin`` if the policy needs something of its own along a sequence.

    Checked by ``tests/nn/cache/test_eviction_contract.py``, where yours is one line.
    """

    name: ClassVar[str]

    def begin(self) -> Any:
        """What the policy keeps for one layer along one batch of sequences."""
        return None

    @abc.abstractmethod
    def observe(self, sight: CacheSight) -> None:
        """Change the scores after one token or several."""
