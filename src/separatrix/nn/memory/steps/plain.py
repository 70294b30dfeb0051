"""The same networks by a loop that autograd follows: for second derivatives, transforms, and stored activations."""

from __future__ import annotations

import torch
from torch import Tensor

from ..keeping.slots import Slots
from .setup import Carried, Given, RunRecord, Setup
from .stores import FullStore, ScreenedStore


def plain_run(
    setup: Setup, given: Given, carried: Carried | None, record: RunRecord
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Hidden states, macro-states and carried vectors of all steps; every activation of every step is kept."""
    cell = setup.make_cell(given.bias)
    memory = _FullMemory(setup, given, carried) if setup.n_buffer is None else _ScreenedMemory(setup, given, carried)
    state, carry = given.state, given.carried_cell
    hidden, states, carries, logged, indices = [], [], [], [], []
    width = given.drives.shape[2]
    for t, drive in enumerate(given.drives.unbind(0)):
        product = state @ given.projection.mT
        unit, carry = cell.advance(product[:, :width] + drive, carry)
        values, bias = memory.add(t, unit)
        logits = setup.alignment.logits(product[:, width:], values @ given.key.mT, given.vector)
        weights = torch.softmax(logits if bias is None else logits + bias, -1)
        context = torch.bmm(weights.unsqueeze(1), values).squeeze(1)
        state = torch.cat([unit, context], -1) if setup.mix is None else setup.mix[0] * unit + setup.mix[1] * context
        memory.observe(t, weights.detach())
        hidden.append(unit)
        states.append(state)
        carries.append(carry)
        if setup.logs:
            logged.append(weights.detach())
            indices.append(memory.index(t).to(torch.int32))
    memory.leave(record, torch.stack(hidden).detach())
    if setup.logs:
        record.weights, record.index = _padded(logged, 0.0), _padded(indices, -1)
    cells = torch.stack([carry for carry in carries if carry is not None]) if cell.has_carry else None
    return torch.stack(hidden), torch.stack(states), cells


def _padded(rows: list[Tensor], fill: float | int) -> Tensor:
    width = rows[-1].shape[1]
    return torch.stack([torch.nn.functional.pad(row, (0, width - row.shape[1]), value=fill) for row in rows])


class _FullMemory:
    def __init__(self, setup: Setup, given: Given, carried: Carried | None) -> None:
        self.setup, self.carried = setup, carried
        self.store = FullStore(setup, len(given.drives), given.state.detach(), carried, given.key.detach())
        self.states = [] if carried is None else list(carried.values.unbind(1))

    def add(self, t: int, unit: Tensor) -> tuple[Tensor, Tensor | None]:
        self.states.append(unit)
        return torch.stack(self.states, 1), self.store.seen(t)[2]

    def observe(self, t: int, weights: Tensor) -> None:
        pass

    def index(self, t: int) -> Tensor:
        return self.store.index(t + 1)

    def leave(self, record: RunRecord, hidden: Tensor) -> None:
        for t, unit in enumerate(hidden.unbind(0)):
            self.store.values[:, self.store.before + t] = unit
        self.store.leave(record, hidden)


class _ScreenedMemory:
    """The bookkeeping of the store, with values that autograd follows."""

    def __init__(self, setup: Setup, given: Given, carried: Carried | None) -> None:
        self.setup = setup
        self.store = ScreenedStore(setup, len(given.drives), given.state.detach(), carried, given.key.detach())
        self.values = self.store.values.clone()
        self.places = torch.arange(self.values.shape[1], device=self.values.device)

    @property
    def slots(self) -> Slots:
        return self.store.slots

    def add(self, t: int, unit: Tensor) -> tuple[Tensor, Tensor | None]:
        zeros = torch.zeros_like(self.store.values[:, 0])
        left = self.slots.index[:, t % self.store.n_buffer].clone()
        self.store.write(t, unit.detach(), zeros)
        move = self.store.moves[-1]
        if move.samples is not None:
            assert move.targets is not None
            target = torch.full((len(unit), 1), -1, device=unit.device)
            target[move.samples, 0] = move.targets
            moved = (self.places == target).unsqueeze(-1)
            kept, policy = self.values[:, move.place], self.slots.screening
            if policy.gates:
                kept = kept * policy.gate(kept, self.slots.own, move.place, left)
            self.values = torch.where(moved, kept.unsqueeze(1), self.values)
        newest = (self.places == move.place).view(1, -1, 1)
        self.values = torch.where(newest, unit.unsqueeze(1), self.values)
        values = self.values
        if self.setup.detach_memory:
            split = self.store.n_buffer
            values = torch.cat([values[:, :split], values[:, split:].detach()], 1)
        return values, self.slots.bias.clone()

    def observe(self, t: int, weights: Tensor) -> None:
        self.store.observe(t, weights)

    def index(self, t: int) -> Tensor:
        return self.slots.index.clone()

    def leave(self, record: RunRecord, hidden: Tensor) -> None:
        self.store.leave(record, hidden)
