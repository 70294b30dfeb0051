"""Buffers of values and keys along a run, forwards and back again."""

from __future__ import annotations

import abc
from typing import final

import torch
from torch import Tensor

from ..keeping.slots import Move, Slots, sorted_index
from .setup import Carried, RunRecord, Setup


class AbstractStore(abc.ABC):
    """States and their keys as the attention of a step sees them; on the way back, their gradients."""

    values: Tensor
    keys: Tensor
    by_values: Tensor
    by_keys: Tensor
    outer: Tensor
    """Products of states and gradients by their keys, summed, for states that no gradient goes on from."""

    @abc.abstractmethod
    def write(self, t: int, hidden: Tensor, key: Tensor) -> None:
        """Take the state of step t in."""

    @abc.abstractmethod
    def seen(self, t: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Values, keys and additive mask of the attention of step t."""

    @abc.abstractmethod
    def observe(self, t: int, weights: Tensor) -> None:
        """Be told of the attention of step t."""

    @abc.abstractmethod
    def leave(self, record: RunRecord, hidden: Tensor) -> None:
        """Write down what remains after the last step."""

    @abc.abstractmethod
    def history(self, n_steps: int) -> Tensor:
        """Steps of the states that each attention saw, (t, batch, k) of 32 bits; -1 for an empty place."""

    @abc.abstractmethod
    def begin_backward(self, hidden: Tensor, keys: Tensor) -> None:
        """Prepare gradients, of all states (t, batch, h) and their keys."""

    @abc.abstractmethod
    def collecting(self, t: int) -> tuple[Tensor, Tensor]:
        """Gradients by the values and keys of step t's attention that are wanted, from the first place on."""

    @abc.abstractmethod
    def undo(self, t: int, by_key: Tensor, direct: Tensor, a: float) -> Tensor:
        """Gradient collected by the state of step t plus ``a direct``; that by its key is written to ``by_key``.

        The store is as before step t then.
        """

    @abc.abstractmethod
    def end_backward(self) -> Tensor:
        """``outer`` with the states that were there before the first step."""


@final
class FullStore(AbstractStore):
    """Everything, in the order of time."""

    def __init__(self, setup: Setup, n_steps: int, like: Tensor, carried: Carried | None, key: Tensor) -> None:
        batch, size = like.shape[0], key.shape[0]
        self.before = 0 if carried is None else carried.values.shape[1]
        self.lengths = setup.lengths
        self.carried = carried
        self.values = like.new_empty(batch, self.before + n_steps, size)
        self.keys = torch.empty_like(self.values)
        self.bias: Tensor | None = None
        self.offset = torch.zeros(batch, dtype=torch.int64, device=like.device)
        if carried is not None:
            self.values[:, : self.before] = carried.values
            self.keys[:, : self.before] = carried.values @ key.mT
            self.bias = like.new_zeros(batch, self.before + n_steps)
            self.bias[:, : self.before][carried.index < 0] = -torch.inf
            self.offset = carried.index.amax(1) + 1 if self.before else self.offset

    def write(self, t: int, hidden: Tensor, key: Tensor) -> None:
        """At the end."""
        self.values[:, self.before + t] = hidden
        self.keys[:, self.before + t] = key

    def seen(self, t: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """All until now."""
        count = self.before + t + 1
        bias = None if self.bias is None else self.bias[:, :count]
        return self.values[:, :count], self.keys[:, :count], bias

    def observe(self, t: int, weights: Tensor) -> None:
        """Nothing is screened."""

    def index(self, n_steps: int) -> Tensor:
        """Steps of all places."""
        steps = torch.arange(n_steps, device=self.offset.device)
        own = self.offset.unsqueeze(1) + steps
        if self.lengths is not None:
            own = torch.where(steps < self.lengths.unsqueeze(1), own, -1)
        return own if self.carried is None else torch.cat([self.carried.index, own], 1)

    def leave(self, record: RunRecord, hidden: Tensor) -> None:
        """All states."""
        index = self.index(len(hidden))
        scores = self.values.new_zeros(index.shape)
        record.memory = Carried(self.values, index, scores)

    def history(self, n_steps: int) -> Tensor:
        """All until each step."""
        last = self.index(n_steps).to(torch.int32)
        count = self.before + torch.arange(1, n_steps + 1, device=last.device)
        return torch.where(torch.arange(last.shape[1], device=last.device) < count.view(-1, 1, 1), last, -1)

    def begin_backward(self, hidden: Tensor, keys: Tensor) -> None:
        """One row each."""
        self.by_values, self.by_keys = torch.zeros_like(self.values), torch.zeros_like(self.values)
        self.outer = self.values.new_zeros(self.values.shape[-1], self.values.shape[-1])

    def collecting(self, t: int) -> tuple[Tensor, Tensor]:
        """All until now."""
        count = self.before + t + 1
        return self.by_values[:, :count], self.by_keys[:, :count]

    def undo(self, t: int, by_key: Tensor, direct: Tensor, a: float) -> Tensor:
        """Nothing moved."""
        by_key.copy_(self.by_keys[:, self.before + t])
        return torch.add(self.by_values[:, self.before + t], direct, alpha=a)

    def end_backward(self) -> Tensor:
        """With what was carried."""
        return self.outer + _outer(self.values[:, : self.before], self.by_keys[:, : self.before])


@final
class ScreenedStore(AbstractStore):
    """A ring and the kept states. On the way back each move is undone, so that gradients stay where states stand."""

    def __init__(self, setup: Setup, n_steps: int, like: Tensor, carried: Carried | None, key: Tensor) -> None:
        assert setup.n_buffer is not None
        assert setup.screening is not None
        batch, size = like.shape[0], key.shape[0]
        self.setup, self.n_buffer = setup, setup.n_buffer
        self.slots = Slots(batch, setup.n_buffer, setup.n_relevant, setup.screening, like, n_steps)
        self.values = like.new_zeros(batch, setup.n_buffer + setup.n_relevant, size)
        self.keys = torch.zeros_like(self.values)
        self.carried = carried
        self.before = 0
        self.moves: list[Move] = []
        self.changes: list[tuple[int, Tensor]] = []
        """Steps at which the set of kept states changed, and their steps then."""
        if carried is not None:
            self.before = self.values.shape[1]
            self.slots.carry(carried.index, carried.scores)
            self.values.copy_(carried.values)
            self.keys.copy_(carried.values @ key.mT)
        self.first_keys = None if carried is None else self.keys.clone()
        self.kept = self._snapshot()
        self.end = self.rows = (self.values, self.keys)
        self.places = (self.values.unbind(1), self.keys.unbind(1))

    def _snapshot(self) -> tuple[Tensor, Tensor, Tensor]:
        slots = self.slots
        return slots.rows.clone(), slots.index.clone(), slots.scores.clone()

    def write(self, t: int, hidden: Tensor, key: Tensor) -> None:
        """Into the ring; who stood there may be kept."""
        move = self.slots.advance(t, self.before + t)
        if move.samples is not None:
            for buffer in (self.values, self.keys):
                buffer[move.samples, move.targets] = buffer[move.samples, move.place]
            if self.setup.logs:
                self.changes.append((t, self.slots.index[:, self.n_buffer :].to(torch.int32)))
        self.places[0][move.place].copy_(hidden)
        self.places[1][move.place].copy_(key)
        self.moves.append(move)

    def seen(self, t: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """The buffers; once all places are taken, nothing is masked."""
        is_full = t >= self.values.shape[1] and not self.slots.is_carried
        return self.values, self.keys, None if is_full else self.slots.bias

    def history(self, n_steps: int) -> Tensor:
        """Who stood in the ring follows from the time, who was kept from the changes."""
        device, size = self.values.device, self.values.shape[1]
        table = torch.empty(n_steps, len(self.values), size, dtype=torch.int32, device=device)
        steps = torch.arange(n_steps, device=device).unsqueeze(1)
        standing = steps - (steps - torch.arange(self.n_buffer, device=device)) % self.n_buffer
        ring = torch.where(standing < 0, -1, standing).unsqueeze(1)
        kept = torch.full((len(self.values), size - self.n_buffer), -1, dtype=torch.int32, device=device)
        if self.carried is not None:
            before, kept = self.carried.index.split([self.n_buffer, size - self.n_buffer], 1)
            ring = torch.where(ring < 0, before, ring + self.slots.offset.unsqueeze(1))
            kept = kept.to(torch.int32)
        table[..., : self.n_buffer] = ring
        starts = [0, *(t for t, _ in self.changes), n_steps]
        for place, change in enumerate([kept, *(index for _, index in self.changes)]):
            table[starts[place] : starts[place + 1], :, self.n_buffer :] = change
        return table

    def observe(self, t: int, weights: Tensor) -> None:
        """Let the policy score; remember the memory of those who end here."""
        entering = None if self.setup.entering is None else self.setup.entering[t]
        self.slots.observe(t, weights, self.values, entering)
        if self.setup.lengths is not None:
            over = (self.setup.lengths == t + 1).unsqueeze(1)
            if bool(over.any()):
                now = self._snapshot()
                self.kept = tuple(torch.where(over, new, old) for new, old in zip(now, self.kept, strict=True))  # type: ignore[assignment]

    def leave(self, record: RunRecord, hidden: Tensor) -> None:
        """The memory of each sample after its own last step."""
        self.end = (self.values, self.keys)
        rows, index, scores = self._snapshot() if self.setup.lengths is None else self.kept
        record.relevant = sorted_index(index[:, self.n_buffer :])
        record.scores = self._final_scores(index, scores, len(hidden))
        order = index[:, : self.n_buffer].argsort(1)  # the oldest first: its place is the next to be written
        order = torch.cat([order, torch.arange(self.n_buffer, index.shape[1]).to(order).expand(len(order), -1)], 1)
        rows, index, scores = (table.gather(1, order) for table in (rows, index, scores))
        everything = self._rows_of(hidden, None if self.carried is None else self.carried.values)
        samples = torch.arange(len(rows), device=rows.device).unsqueeze(1)
        record.memory = Carried(everything[rows.clamp_min(0), samples], index, scores)

    def _final_scores(self, index: Tensor, scores: Tensor, n_steps: int) -> Tensor:
        final = self.slots.final
        local = index[:, : self.n_buffer] - self.slots.offset.unsqueeze(1)
        samples, places = ((index[:, : self.n_buffer] >= 0) & (local >= 0)).nonzero(as_tuple=True)
        final[local[samples, places], samples] = scores[samples, places]
        if self.setup.lengths is not None:
            final[torch.arange(n_steps, device=final.device).unsqueeze(1) >= self.setup.lengths] = 0
        return final.mT

    @staticmethod
    def _rows_of(states: Tensor, before: Tensor | None) -> Tensor:
        return states if before is None else torch.cat([before.transpose(0, 1), states])

    def begin_backward(self, hidden: Tensor, keys: Tensor) -> None:
        """Copies, because the way back may be walked twice."""
        self.values, self.keys = (buffer.clone() for buffer in self.end)
        before = None if self.carried is None else self.carried.values
        self.rows = (self._rows_of(hidden, before), self._rows_of(keys, self.first_keys))
        both = self.values.new_zeros(2, *self.values.shape)
        self.by_values, self.by_keys = both
        self.outer = self.values.new_zeros(self.values.shape[-1], self.values.shape[-1])
        self.places = (self.values.unbind(1), self.keys.unbind(1))
        self.gradient_places = (self.by_values.unbind(1), self.by_keys.unbind(1))
        self.both_gradients = both.unbind(2)
        self.row_views = tuple(rows.unbind(0) for rows in self.rows)

    def collecting(self, t: int) -> tuple[Tensor, Tensor]:
        """Values of all places, or of the ring; keys of all, because their weight has a gradient in any case."""
        count = self.n_buffer if self.setup.detach_memory else self.values.shape[1]
        return self.by_values[:, :count], self.by_keys

    def undo(self, t: int, by_key: Tensor, direct: Tensor, a: float) -> Tensor:
        """The newest goes; who stood there before comes back, with the gradient it got where it was kept."""
        move = self.moves[t]
        place, samples, targets = move.place, move.samples, move.targets
        by_hidden = torch.add(self.gradient_places[0][place], direct, alpha=a)
        by_key.copy_(self.gradient_places[1][place])
        if samples is not None and self.setup.detach_memory:
            self.outer += _outer(self.values[samples, targets], self.by_keys[samples, targets])
            self.by_keys[samples, targets] = 0
        row = self.before + t - self.n_buffer if t >= self.n_buffer else place if self.before else None
        if row is not None:
            for which in (0, 1):
                self.places[which][place].copy_(self.row_views[which][row])
        self.both_gradients[place].zero_()
        if samples is not None:
            self._undo_move(move)
        return by_hidden

    def _undo_move(self, move: Move) -> None:
        assert move.replaced is not None
        samples, targets, place = move.samples, move.targets, move.place
        for buffer, rows in zip((self.values, self.keys), self.rows, strict=True):
            buffer[samples, targets] = rows[move.replaced.clamp_min(0), samples]
        for gradient in (self.by_values, self.by_keys):
            gradient[samples, place] = gradient[samples, targets]
            gradient[samples, targets] = 0

    def end_backward(self) -> Tensor:
        """With what was carried, which stands in its places again."""
        return self.outer if self.carried is None else self.outer + _outer(self.values, self.by_keys)


def _outer(states: Tensor, gradients: Tensor) -> Tensor:
    return states.flatten(0, -2).mT @ gradients.flatten(0, -2)


def make_store(setup: Setup, n_steps: int, like: Tensor, carried: Carried | None, key: Tensor) -> AbstractStore:
    """A store of the kind that the set-up asks for; ``like`` is (batch, anything)."""
    kind = FullStore if setup.n_buffer is None else ScreenedStore
    return kind(setup, n_steps, like, carried, key)
