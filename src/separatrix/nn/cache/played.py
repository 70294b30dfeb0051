"""Policies of the recurrent networks on keys of a transformer."""

from __future__ import annotations

import dataclasses
from typing import Any, final

import torch

from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.scalars import in_words

from ..memory.keeping.screening import AbstractScreening, Sight
from .eviction import AbstractEviction, CacheSight


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class PlayedScreening(AbstractEviction):
    """A screening policy of ``separatrix.nn.memory``, shown every query of every head as one step of a network.

    Its hidden states are the keys. Policies that look at inputs (``Surprise``) find none here and say so. Padding is
    not understood.

    Args:
        screening: the policy.

    Cost: a sort of the places and one call of the policy per token, where the policies of this room take all tokens of
    a call at once.
    """

    screening: AbstractScreening

    def __post_init__(self) -> None:
        if not isinstance(self.screening, AbstractScreening):
            raise InvalidInput(f"screening must be an AbstractScreening object; got {in_words(self.screening)}.")

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the policy."""
        return self.screening.name

    def begin(self) -> Any:
        """What the policy itself keeps, once the sizes are known."""
        return {}

    def observe(self, sight: CacheSight) -> None:
        """Play the queries one after the other."""
        if bool((sight.queries < 0).any()):
            raise InvalidInput(f"the policy {self.name!r} does not understand padding; pass the sequences one by one.")
        positions = sight.positions.flatten(0, 1)
        scores, weights, keys = sight.scores.flatten(0, 1), sight.weights.flatten(0, 1), sight.keys.flatten(0, 1)
        if not sight.own:
            sight.own["own"] = self.screening.begin(len(positions), scores)
        for q in range(sight.queries.shape[1]):
            now = int(sight.queries[0, q])
            known = torch.where(
                positions > now, -1, positions
            )  # those of later tokens of the same call are not there yet
            places = known.argsort(1, descending=True)[:, : now + 1]
            seen = scores.gather(1, places)
            rows = places.unsqueeze(-1).expand(-1, -1, keys.shape[-1])
            found = Sight(
                t=now,
                newest=0,
                n_buffer=min(sight.n_buffer, places.shape[1]),
                index=known.gather(1, places),
                weights=weights[:, q].gather(1, places),
                hidden=keys.gather(1, rows),
                entering=None,
                scores=seen,
                own=sight.own["own"],
            )
            self.screening.observe(found)
            scores.scatter_(1, places, seen)
        sight.scores.copy_(scores.view_as(sight.scores))
