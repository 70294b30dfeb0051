"""A whole sequence of an attentive network as one node of the autograd graph, on buffers made once.

Forwards nothing is kept of an attention but its weights; on the way back its inner values are computed again from the
states. Memory grows like T (n + k) and not like T n k; without screening, where k = T, weights are computed again too.
A step is a handful of small operations, whose number is what it costs: factors wait until after the last step, and
tables that follow from the moves of states are made from those at the end.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...recurrent.steps.scan import needs_plain_loop
from .cells import AbstractCell
from .compiled import CompiledRun, runs_compiled
from .plain import plain_run
from .setup import Carried, Given, RunRecord, Setup
from .stores import AbstractStore, make_store

States = tuple[Tensor, Tensor, Tensor | None]


def run(setup: Setup, given: Given, carried: Carried | None, record: RunRecord, *, plain: bool) -> States:
    """Hidden states, macro-states and, for cells that have them, carried vectors of all steps, time first."""
    tensors = (
        given.drives,
        given.state,
        given.carried_cell,
        given.projection,
        given.key,
        given.vector,
        given.bias,
    )
    gates = setup.screening is not None and setup.screening.gates
    if plain or gates or needs_plain_loop(*(tensor for tensor in tensors if tensor is not None)):
        return plain_run(setup, given, carried, record)
    node = _CompiledAttend if runs_compiled(setup, given, carried) else _Attend
    hidden, states, cells = node.apply(setup, carried, record, *tensors)
    return hidden, states, cells if given.carried_cell is not None else None


class _Attend(torch.autograd.Function):
    """Forward and backward loops; see the head of this file."""

    @staticmethod
    def forward(ctx: Any, setup: Setup, carried: Carried | None, record: RunRecord, *tensors: Tensor | None) -> Any:
        given = Given(*tensors)  # type: ignore[arg-type]
        walk = _Walk(setup, given, carried, record)
        walk.forward()
        record.states = walk.states.detach()
        ctx.setup, ctx.carried, ctx.store, ctx.weights = setup, carried, walk.store, record.weights
        ctx.save_for_backward(walk.hidden, walk.states, walk.cells, *tensors)
        ctx.set_materialize_grads(False)
        return walk.hidden, walk.states[1:], walk.cells[1:]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        # a saved output leads back to this node; hung on the node as it is, neither would ever be freed
        hidden, states, cells = (tensor.detach() for tensor in ctx.saved_tensors[:3])
        tensors = ctx.saved_tensors[3:]
        given = Given(*tensors)
        if torch.is_grad_enabled():  # create_graph=True: the way back must itself be differentiable
            found = _plain_gradients(ctx.setup, given, ctx.carried, gradients, ctx.needs_input_grad[3:])
        else:
            walk = _WayBack(ctx.setup, given, ctx.store, (hidden, states, cells), ctx.weights)
            found = walk.run(gradients)
        wanted = [value if need else None for value, need in zip(found, ctx.needs_input_grad[3:], strict=True)]
        return None, None, None, *wanted


class _CompiledAttend(torch.autograd.Function):
    """The same by compiled loops."""

    @staticmethod
    def forward(ctx: Any, setup: Setup, carried: None, record: RunRecord, *tensors: Tensor | None) -> Any:
        given = Given(*tensors)  # type: ignore[arg-type]
        run = CompiledRun(setup, given)
        run.forward(given, record)
        record.states = run.states.detach()
        # other heads of the same tables: an output that the node itself holds would never be freed
        outputs = run.hidden.detach(), run.states.detach()[1:], run.cells.detach()[1:]
        ctx.setup, ctx.run = setup, run
        ctx.save_for_backward(*outputs, *tensors)  # outputs too, so that a change of one in place is noticed
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        given, needed = Given(*ctx.saved_tensors[3:]), ctx.needs_input_grad[3:]
        if torch.is_grad_enabled():
            found = _plain_gradients(ctx.setup, given, None, gradients, needed)
        else:
            found = ctx.run.backward(given, gradients)
        wanted = [value if need else None for value, need in zip(found, needed, strict=True)]
        return None, None, None, *wanted


def _scaled_projection(setup: Setup, given: Given) -> Tensor:
    """Recurrent matrix and queries in one, the latter scaled as the alignment wants them."""
    width = given.drives.shape[2]
    scaled = given.projection.clone()
    scaled[width:] *= setup.alignment.query_scale(given.key.shape[0])
    return scaled


class _Walk:
    """The way forward."""

    def __init__(self, setup: Setup, given: Given, carried: Carried | None, record: RunRecord) -> None:
        self.setup, self.given, self.record = setup, given, record
        n_steps, batch = given.drives.shape[:2]
        size = given.key.shape[0]
        self.cell: AbstractCell = setup.make_cell(given.bias)
        self.key = given.key * setup.alignment.key_scale
        self.store: AbstractStore = make_store(setup, n_steps, given.state, carried, self.key)
        self.hidden = given.drives.new_empty(n_steps, batch, size)
        self.states = given.drives.new_empty(n_steps + 1, batch, given.state.shape[1])
        self.states[0] = given.state
        self.cells = given.drives.new_empty(n_steps + 1 if self.cell.has_carry else 1, batch, size)
        if given.carried_cell is not None:
            self.cells[0] = given.carried_cell
        if setup.logs:
            record.weights = given.drives.new_zeros(n_steps, batch, self.store.values.shape[1])

    def forward(self) -> None:
        """All steps."""
        given, setup, store, alignment = self.given, self.setup, self.store, self.setup.alignment
        projection, key = _scaled_projection(setup, given).mT.contiguous(), self.key.mT.contiguous()
        vector = alignment.scaled_vector(given.vector)
        rows, hidden, cells = self.states.unbind(0), self.hidden.unbind(0), self.cells.unbind(0)
        mixed = self.states.unsqueeze(2).unbind(0), self.hidden.unsqueeze(2).unbind(0)
        product = rows[0].new_empty(len(rows[0]), projection.shape[1])
        pre, query = product.split([given.drives.shape[2], len(key)], 1)
        space = torch.empty_like(store.values)
        logged = None if self.record.weights is None else self.record.weights.unbind(0)
        for t, drive in enumerate(given.drives.unbind(0)):
            torch.mm(rows[t], projection, out=product)
            pre.add_(drive)
            before, after = (cells[t], cells[t + 1]) if self.cell.has_carry else (None, None)
            self.cell.forward(pre, before, hidden[t], after)
            store.write(t, hidden[t], hidden[t] @ key)
            values, keys, bias = store.seen(t)
            compared = alignment.compare(query, keys, _like(space, keys))
            logits = alignment.score(query, keys, vector, compared)
            weights = torch.softmax(logits if bias is None else logits.add_(bias), -1)
            if setup.mix is None:
                context = torch.bmm(weights.unsqueeze(1), values).squeeze(1)
                torch.cat([hidden[t], context], -1, out=rows[t + 1])
            else:
                a, b = setup.mix
                torch.baddbmm(mixed[1][t], weights.unsqueeze(1), values, beta=a, alpha=b, out=mixed[0][t + 1])
            if logged is not None:
                logged[t][:, : weights.shape[1]].copy_(weights)
            store.observe(t, weights)
        store.leave(self.record, self.hidden)
        if setup.logs:
            self.record.index = store.history(len(hidden))


class _WayBack:
    """The way back."""

    def __init__(
        self,
        setup: Setup,
        given: Given,
        store: AbstractStore,
        saved: tuple[Tensor, Tensor, Tensor],
        weights: Tensor | None,
    ) -> None:
        self.setup, self.given, self.store, self.weights = setup, given, store, weights
        self.hidden, self.states, self.cells = saved
        self.cell = setup.make_cell(given.bias)
        # pre-activations and queries of all steps; each is overwritten by its gradient, up to a factor
        self.product = self.states[:-1] @ _scaled_projection(setup, given).mT
        self.width = given.drives.shape[2]
        self.queries = self.product[..., self.width :].unbind(0)
        self.by_key = torch.empty_like(self.hidden)
        self.by_keys = self.by_key.unbind(0)
        self.by_vector = None if given.vector is None else torch.zeros_like(given.vector)
        self.vector = setup.alignment.scaled_vector(given.vector)
        self.a, self.b = (1.0, 1.0) if setup.mix is None else setup.mix
        by_query, by_key, by_vector = setup.alignment.factors(given.vector, given.key)
        # b, by which the context counts, is a factor of all that goes through logits
        self.query_factor, self.key_factor = self.b * by_query.unsqueeze(1), self.b * by_key.unsqueeze(1)
        self.vector_factor = self.b * by_vector
        self.key = given.key * self.key_factor

    def run(self, gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        """Gradients by everything given."""
        from_hidden, from_states, from_cells = (None if by is None else by.unbind(0) for by in gradients)
        given, store = self.given, self.store
        pre = self.product[..., : self.width].add_(given.drives)
        self.cell.prepare_backward(pre, self.hidden, self.cells if self.cell.has_carry else None)
        store.begin_backward(self.hidden, self.hidden @ (given.key * self.setup.alignment.key_scale).mT)
        projection = given.projection.clone()
        projection[self.width :] *= self.query_factor
        space = torch.empty_like(store.values)
        now = torch.zeros_like(given.state)
        by_cell = None if given.carried_cell is None else torch.zeros_like(given.carried_cell)
        pres, products = pre.unbind(0), self.product.unbind(0)
        for t in range(len(self.hidden) - 1, -1, -1):
            if from_states is not None:
                now = now + from_states[t]
            if by_cell is not None and from_cells is not None:
                by_cell.add_(from_cells[t])
            by_hidden = self._through_attention(t, now, space)
            if from_hidden is not None:
                by_hidden.add_(from_hidden[t])
            self.cell.backward(t, by_hidden, by_cell, pres[t])
            now = products[t] @ projection
        return self._collect(now, by_cell)

    def _through_attention(self, t: int, by_state: Tensor, space: Tensor) -> Tensor:
        setup, store, alignment = self.setup, self.store, self.setup.alignment
        direct, by_context = (by_state, by_state) if setup.mix is not None else _halves(by_state)
        values, keys, bias = store.seen(t)
        query = self.queries[t]
        compared = alignment.compare(query, keys, _like(space, keys))
        if self.weights is None:
            logits = alignment.score(query, keys, self.vector, compared)
            weights = torch.softmax(logits if bias is None else logits.add_(bias), -1)
        else:
            weights = self.weights[t, :, : keys.shape[1]]
        by_weights = torch.bmm(values, by_context.unsqueeze(-1)).squeeze(-1)
        by_logits = torch._softmax_backward_data(by_weights, weights, -1, by_weights.dtype)
        by_values, by_keys = store.collecting(t)
        by_values.addcmul_(weights[:, : by_values.shape[1]].unsqueeze(-1), by_context.unsqueeze(1), value=self.b)
        query.copy_(alignment.pull_back(by_logits, query, keys, compared, by_keys, self.by_vector))
        by_hidden = store.undo(t, self.by_keys[t], direct, self.a)
        return by_hidden.addmm_(self.by_keys[t], self.key)

    def _collect(self, now: Tensor, by_cell: Tensor | None) -> tuple[Tensor | None, ...]:
        by_pre = self.product[..., : self.width]
        projection = self.product.flatten(0, 1).mT @ self.states[:-1].flatten(0, 1)
        projection[self.width :] *= self.query_factor
        key = self.by_key.flatten(0, 1).mT @ self.hidden.flatten(0, 1)
        key = (key + self.store.end_backward().mT) * self.key_factor
        by_bias = self.cell.by_bias(by_pre, self.hidden)
        by_vector = None if self.by_vector is None else self.vector_factor * self.by_vector
        return by_pre, now, by_cell, projection, key, by_vector, by_bias


def _like(space: Tensor, keys: Tensor) -> Tensor:
    """Room for as many numbers as the keys have, in one piece."""
    return space if space.shape == keys.shape else space.view(-1)[: keys.numel()].view(keys.shape)


def _halves(by_state: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients by the hidden state and by the context beside it."""
    direct, by_context = by_state.chunk(2, -1)
    return direct, by_context.contiguous()


def _plain_gradients(
    setup: Setup, given: Given, carried: Carried | None, gradients: tuple[Tensor | None, ...], needed: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    everything = tuple(vars(given).values())
    wanted = [value for value, need in zip(everything, needed, strict=True) if need]
    outputs = plain_run(setup, given, carried, RunRecord())
    pairs = [(out, by) for out, by in zip(outputs, gradients, strict=True) if out is not None and by is not None]
    found = iter(
        torch.autograd.grad(
            [out for out, _ in pairs], wanted, [by for _, by in pairs], create_graph=True, allow_unused=True
        )
    )
    return tuple(next(found) if need else None for need in needed)
