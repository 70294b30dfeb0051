"""Two LSTMs with other ways for the gradient: attentive backtracking and h-detach, in short reference form."""

from __future__ import annotations

import abc
from typing import Any, final

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from separatrix.core.arrays import require_integer
from separatrix.core.errors import ShapeError
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator, spawn
from separatrix.core.scalars import in_words, require_flags, require_number

from ..recurrent.calling import AbstractSequenceCore, checked_lengths, masked_beyond

Pair = tuple[Tensor, Tensor]


class _AbstractLstm(AbstractSequenceCore):
    """An LSTM by a loop that autograd follows; state is hidden and cell vector, as in torch."""

    def __init__(
        self, input_size: int, hidden_size: int, batch_first: bool, generator: torch.Generator, dtype: torch.dtype
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        n, m = self.hidden_size, self.input_size

        def uniform(*shape: int) -> nn.Parameter:
            entries = torch.empty(*shape, dtype=torch.float64).uniform_(-(n**-0.5), n**-0.5, generator=generator)
            return nn.Parameter(entries.to(dtype))

        self.matrix, self.input_weight, self.bias = uniform(4 * n, n), uniform(4 * n, m), uniform(4 * n)

    def forward(
        self, x: Tensor | PackedSequence, state: Any = None, lengths: Int[Tensor, " batch"] | None = None
    ) -> tuple[Any, Any]:
        """Outputs of all steps, and the last hidden and cell vectors."""
        if isinstance(x, PackedSequence):
            return self._forward_packed(x, state, lengths)
        inputs, is_single = self._time_first(x)
        inputs = inputs.to(self.matrix.dtype)
        lengths = None if lengths is None else checked_lengths(lengths, inputs)
        first = self._start(state, inputs.shape[1], is_single)
        outputs, states = self._run(inputs @ self.input_weight.mT + self.bias, first)
        output = torch.stack(outputs) if outputs else inputs.new_zeros(0, inputs.shape[1], self.output_size)
        output = masked_beyond(output, lengths)
        last = states[-1] if lengths is None else self._ends(states, lengths)
        shaped = output.squeeze(1) if is_single else output.transpose(0, 1) if self.batch_first else output
        return shaped, tuple(part if is_single else part.unsqueeze(0) for part in last)

    @abc.abstractmethod
    def _run(self, drives: Tensor, state: Pair) -> tuple[list[Tensor], list[Pair]]:
        """Outputs of all steps, and all states with the first one before them."""

    def _advance(self, drive: Tensor, entering: Tensor, cell: Tensor) -> Pair:
        i, f, g, o = (drive + entering @ self.matrix.mT).chunk(4, -1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell

    def _start(self, state: Any, batch: int, is_single: bool) -> Pair:
        if state is None:
            zeros = self.matrix.new_zeros(batch, self.hidden_size)
            return zeros, zeros
        expected = (1, self.hidden_size) if is_single else (1, batch, self.hidden_size)
        pair = isinstance(state, tuple | list) and len(state) == 2 and all(isinstance(part, Tensor) for part in state)
        if not pair or any(tuple(part.shape) != expected for part in state):
            raise ShapeError(f"state must be a hidden and a cell vector of shape {expected}; got {in_words(state)}.")
        h, c = (part if is_single else part.squeeze(0) for part in state)
        return h.to(self.matrix.dtype), c.to(self.matrix.dtype)

    @staticmethod
    def _ends(states: list[Pair], lengths: Tensor) -> Pair:
        samples = torch.arange(len(lengths), device=lengths.device)
        h, c = (torch.stack(parts)[lengths, samples] for parts in zip(*states, strict=True))
        return h, c


@final
@suggest_options
class HDetachLSTM(_AbstractLstm):
    """An LSTM whose hidden state is cut from the gradient at random steps; its cell vector never is.

    Before each step of training, with a probability and for the whole batch, the hidden state that the gates read is
    detached, so that gradients have to travel by the cell. In evaluation nothing is cut.

    Args:
        input_size: features of a step.
        hidden_size: n.
        p: probability of cutting.
        seed: of the draws, which go on from call to call.
        batch_first: as in torch, but true by default.
        generator: source of the weights, uniform in +-1/sqrt(n); by default one with seed 0.
        dtype: of the parameters.

    Source: kerg2022, section 4.6 (h-detach, Arpit et al. 2019).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        p: float = 0.25,
        seed: int = 0,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first, default_generator(generator), dtype)
        self.p = require_number(p, "p", at_least=0, at_most=1)
        self.seed = require_integer(seed, "seed", at_least=0)
        self.n_calls = 0

    @property
    def output_size(self) -> int:
        """Features of the output."""
        return self.hidden_size

    def _run(self, drives: Tensor, state: Pair) -> tuple[list[Tensor], list[Pair]]:
        cut = torch.zeros(len(drives), dtype=torch.bool)
        if self.training and self.p > 0:
            cut = torch.rand(len(drives), generator=spawn(self.seed, "h-detach", self.n_calls)) < self.p
            self.n_calls += 1
        states = [state]
        for drive, is_cut in zip(drives.unbind(0), cut.tolist(), strict=True):
            h, c = states[-1]
            states.append(self._advance(drive, h.detach() if is_cut else h, c))
        return [h for h, _ in states[1:]], states


@final
@suggest_options
class SAB(_AbstractLstm):
    """Sparse attentive backtracking: an LSTM of short gradients that attends to a few of its stored states.

    Every ``store_every`` steps the hidden state is stored; every step attends to the best ``n_attended`` of the stored
    ones, by ``w . tanh([h; m])``, and adds what it finds to its hidden state. Each ``truncate`` steps hidden and cell
    vectors are cut from the gradient, which goes farther back by attention alone. Output is hidden state and context
    side by side. Memory grows with the sequence and starts anew with each call.

    Args:
        input_size: features of a step.
        hidden_size: n.
        n_attended: most stored states with a weight, less one: the threshold is the n-th best score.
        store_every: steps between two states that are stored.
        truncate: steps between two cuts; 0 for none.
        legacy: as the public code, scores themselves as weights while there are at most ``n_attended`` states; else a
            softmax over them.
        batch_first: as in torch, but true by default.
        generator: source of the weights; by default one with seed 0.
        dtype: of the parameters.

    Source: kerg2022, section 4.6 (Ke et al. 2018).
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        n_attended: int = 10,
        store_every: int = 2,
        truncate: int = 10,
        legacy: bool = False,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = default_generator(generator)
        super().__init__(input_size, hidden_size, batch_first, generator, dtype)
        self.n_attended = require_integer(n_attended, "n_attended", at_least=2)
        self.store_every = require_integer(store_every, "store_every", at_least=1)
        self.truncate = require_integer(truncate, "truncate", at_least=0)
        require_flags(legacy=legacy)
        self.legacy = legacy
        vector = torch.empty(2, self.hidden_size, dtype=torch.float64).normal_(0, 0.01, generator=generator)
        self.alignment_vector = nn.Parameter(vector.to(dtype))

    @property
    def output_size(self) -> int:
        """Features of the output."""
        return 2 * self.hidden_size

    def _run(self, drives: Tensor, state: Pair) -> tuple[list[Tensor], list[Pair]]:
        memory = [torch.zeros_like(state[0])]
        states, outputs = [state], []
        for t, drive in enumerate(drives.unbind(0)):
            h, c = states[-1]
            if self.truncate and t and t % self.truncate == 0:
                h, c = h.detach(), c.detach()
            h, c = self._advance(drive, h, c)
            stored = torch.stack(memory, 1)
            context = torch.bmm(self._weights(h, stored).unsqueeze(1), stored).squeeze(1)
            h = h + context
            if (t + 1) % self.store_every == 0:
                memory.append(h)
            states.append((h, c))
            outputs.append(torch.cat([h, context], -1))
        return outputs, states

    def _weights(self, h: Tensor, stored: Tensor) -> Tensor:
        by_state, by_memory = self.alignment_vector
        scores = (torch.tanh(h) @ by_state).unsqueeze(1) + torch.tanh(stored) @ by_memory
        if stored.shape[1] <= self.n_attended:
            return scores if self.legacy else torch.softmax(scores, -1)
        threshold = scores.topk(self.n_attended, -1).values[:, -1:] + 1e-7
        kept = torch.relu(scores - threshold)
        return kept / (kept.sum(-1, keepdim=True) + 1e-7)
