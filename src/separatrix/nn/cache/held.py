"""What a bounded cache holds of one layer: keys, values, positions and scores, moved together."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .places import ranks, strongest


@final
@dataclasses.dataclass(frozen=True)
class Held:
    """Places of every head, in no order; a position of -1 is an empty place."""

    keys: Float[Tensor, "batch heads k d"]
    values: Float[Tensor, "batch heads k v"]
    positions: Int[Tensor, "batch heads k"]
    scores: Float[Tensor, "batch heads k"]

    @classmethod
    def new(cls, key: Tensor, value: Tensor, positions: Int[Tensor, "batch k"]) -> Held:
        """Tokens that have just come, with score 0; those before the first position are padding."""
        batch, heads, count, _ = key.shape
        places = torch.where(positions < 0, -1, positions)[:, None].expand(batch, heads, count)
        precision = torch.promote_types(key.dtype, torch.float32)
        return cls(key, value, places, torch.zeros(batch, heads, count, dtype=precision, device=key.device))

    @property
    def count(self) -> int:
        """Places, empty ones included."""
        return self.positions.shape[-1]

    def cloned(self) -> Held:
        """The same with memory of its own."""
        return Held(self.keys.clone(), self.values.clone(), self.positions.clone(), self.scores)

    def rank(self, now: Int[Tensor, " batch"], n_buffer: int, sinks: int) -> Float[Tensor, "batch heads k"]:
        """By what keys are kept once position ``now`` has come."""
        return ranks(self.positions, self.scores, now, n_buffer, sinks)

    def without_refused(self, rank: Float[Tensor, "batch heads k"]) -> Held:
        """Keys that a policy gave up are empty places from now on."""
        refused = (rank == -torch.inf) & (self.positions >= 0)
        if not bool(refused.any()):
            return self
        return dataclasses.replace(self, positions=torch.where(refused, -1, self.positions))

    def best(self, rank: Float[Tensor, "batch heads k"], count: int) -> Held:
        """The ``count`` keys of highest rank in every head."""
        places = strongest(self.positions, rank, count)
        rows = places.unsqueeze(-1)
        return Held(
            self.keys.gather(2, rows.expand(-1, -1, -1, self.keys.shape[-1])),
            self.values.gather(2, rows.expand(-1, -1, -1, self.values.shape[-1])),
            self.positions.gather(2, places),
            self.scores.gather(2, places),
        )

    def extended(self, new: Held) -> Held:
        """With new places behind."""
        mine, others = self._parts(), new._parts()
        return Held(*(torch.cat(pair, 2) for pair in zip(mine, others, strict=True)))

    def replaced(self, place: Int[Tensor, "batch heads"], new: Held) -> Held:
        """With one new key in the place of another, in every head; memory is reused where no gradient needs it."""
        at = place.unsqueeze(-1)
        return Held(
            _scattered(self.keys, at.unsqueeze(-1), new.keys),
            _scattered(self.values, at.unsqueeze(-1), new.values),
            self.positions.scatter(2, at, new.positions),
            self.scores.scatter(2, at, new.scores),
        )

    def selected(self, samples: Int[Tensor, " chosen"]) -> Held:
        """Some of the sequences, in a new order or repeated."""
        chosen = samples.to(self.keys.device)
        return Held(*(part[chosen] for part in self._parts()))

    def _parts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.keys, self.values, self.positions, self.scores


def _scattered(table: Tensor, at: Tensor, new: Tensor) -> Tensor:
    index = at.expand(-1, -1, -1, table.shape[-1])
    has_graph = torch.is_grad_enabled() and (table.requires_grad or new.requires_grad)
    if has_graph or (table.is_inference() and not torch.is_inference_mode_enabled()):
        return table.scatter(2, index, new)
    return table.scatter_(2, index, new)
