"""Places of a bounded memory: a ring of the newest states and the relevant ones behind it, and who moves where."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from .screening import AbstractScreening, Sight


@final
@dataclasses.dataclass(frozen=True)
class Move:
    """What happened before a step: the newest state took a place of the ring; who stood there may have been kept."""

    place: int
    samples: Int[Tensor, " moved"] | None
    """Samples whose leaving state was kept; ``None`` if there is none."""
    targets: Int[Tensor, " moved"] | None
    """The places they were put to."""
    replaced: Int[Tensor, " moved"] | None
    """Rows of the states that were forgotten for them, -1 for an empty place."""


@final
class Slots:
    """Rows, scores and mask of ``n_buffer + n_relevant`` places for every sample.

    Ring place of step t is ``t mod n_buffer``, so that the place about to be written holds exactly the state that
    leaves. ``rows`` are numbers by which the caller finds a state again; ``index`` are the steps they were made at.

    Source: kerg2022, Algorithm 1 of chapter 4, with the buffer's size in place of the relevant set's in lines 6 and 7
    (erratum kerg2022-algorithm-1).
    """

    def __init__(
        self, batch: int, n_buffer: int, n_relevant: int, screening: AbstractScreening, like: Tensor, n_steps: int
    ) -> None:
        self.n_buffer, self.n_relevant, self.screening = n_buffer, n_relevant, screening
        size = n_buffer + n_relevant
        self.index = torch.full((batch, size), -1, device=like.device)
        self.rows = self.index  # one table, unless a memory is carried in
        self.scores = like.new_zeros(batch, size)
        self.scores[:, n_buffer:] = -torch.inf  # whoever comes first is kept
        self.bias = like.new_full((batch, size), -torch.inf)
        self.offset = self.rows.new_zeros(batch)
        """Steps before this sequence."""
        self.final = like.new_zeros(n_steps, batch)
        """Scores with which the states of this sequence left the buffer."""
        self.is_carried = False
        """Whether a memory from before was given; if not, the number of a row is that of its step."""
        self._take_views()
        self.own = screening.begin(batch, like)

    def carry(self, index: Tensor, scores: Tensor) -> None:
        """Begin with a memory from before; rows are the places themselves."""
        self.index = index.clone()
        self.scores = scores.clone()
        places = torch.arange(index.shape[1], device=index.device).expand_as(index)
        self.rows = torch.where(index >= 0, places, -1)
        self.bias = torch.where(index >= 0, 0.0, -torch.inf).to(self.bias)
        self.offset = index.amax(1) + 1
        self.is_carried = True
        self._take_views()

    def _take_views(self) -> None:
        """Columns of the tables, made once: slicing would cost as much as the work of a step."""
        tables = (self.rows, self.index, self.scores, self.bias)
        self._columns = tuple(zip(*(table.unbind(1) for table in tables), strict=True))
        self._kept = self.scores[:, self.n_buffer :]
        self._finals = self.final.unbind(0)
        self._least: Tensor | None = None

    def advance(self, t: int, row: int) -> Move:
        """Make room for the state of step t, which the caller keeps at ``row``."""
        place = t % self.n_buffer
        move = Move(place, None, None, None)
        if t >= self.n_buffer:
            self._finals[t - self.n_buffer].copy_(self._columns[place][2])
        if self.n_relevant and (t >= self.n_buffer or self.is_carried):
            move = self._screen(place)
        rows, index, scores, bias = self._columns[place]
        if self.is_carried:
            rows.fill_(row)
            torch.add(self.offset, t, out=index)
        else:
            rows.fill_(t)
        scores.zero_()
        if t < self.n_buffer:
            bias.zero_()
        return move

    def _screen(self, place: int) -> Move:
        kept, (rows, _, scores, _) = self._kept, self._columns[place]
        if self._least is None or self.screening.rescores_kept:
            self._least = kept.amin(1)
        least = self._least
        accepted: Bool[Tensor, " batch"] = scores > least
        if self.is_carried:  # else nothing leaves before the ring is full
            accepted = accepted & (rows >= 0)
        if not bool(accepted.any()):
            return Move(place, None, None, None)
        tied = kept == least.unsqueeze(1)
        latest = torch.where(tied, self.index[:, self.n_buffer :], -2).argmax(1) + self.n_buffer
        samples = accepted.nonzero().squeeze(1)
        targets = latest[samples]
        replaced = self.rows[samples, targets]
        for table in (self.rows, self.index, self.scores) if self.is_carried else (self.index, self.scores):
            table[samples, targets] = table[samples, place]
        self._least = None
        self.bias[samples, targets] = 0
        return Move(place, samples, targets, replaced)

    def observe(self, t: int, weights: Tensor, hidden: Tensor | None, entering: Tensor | None) -> None:
        """Let the policy change the scores after step t."""
        sight = Sight(t, t % self.n_buffer, self.n_buffer, self.index, weights, hidden, entering, self.scores, self.own)
        self.screening.observe(sight)

    def finish(self, n_steps: int) -> None:
        """Write down the scores of the states that are still in the buffer."""
        for t in range(max(0, n_steps - self.n_buffer), n_steps):
            self.final[t] = self.scores[:, t % self.n_buffer]

    def relevant(self) -> Int[Tensor, "batch rho"]:
        """Steps of the kept states in ascending order, -1 for empty places at the end."""
        return sorted_index(self.index[:, self.n_buffer :])


def sorted_index(index: Tensor) -> Tensor:
    """In ascending order along the last axis, with the empty places (-1) at the end."""
    last = torch.iinfo(index.dtype).max
    ordered = torch.where(index < 0, last, index).sort(-1).values
    return torch.where(ordered == last, -1, ordered)
