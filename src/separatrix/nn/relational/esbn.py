"""The emergent symbol binding network: keys that the controller writes are bound to values it never sees."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .encoder import WIDTH
from .network import AbstractRelationalNetwork, front_stream
from .starts import linear, lstm_cell

HIDDEN, KEY = 512, 256


@final
class ESBN(AbstractRelationalNetwork):
    """An LSTM that writes a key beside every object and reads, by similarity of objects, the keys written before.

    Before every object the controller takes what was read last; after the last it takes one step more and answers. A
    read is the softmax of similarities over earlier objects, applied to their keys and to a confidence (a sigmoid of
    the similarity), times a gate. With T = 1 nothing was ever read, and every answer is the same.

    Args:
        seq_len: T.
        n_answers: y.
        sensory: whether the controller sees the normalised features of the object before, too.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, symmetric, generator. With
            ``symmetric=False`` objects are stored through the first map and asked for through the second.

    Source: kerg2022, section 5.5, after Webb et al. (2021).

    Example:
        >>> sum(p.numel() for p in ESBN(seq_len=6, n_answers=2).parameters())
        1910757
    """

    has_similarity = True

    def __init__(self, seq_len: int, n_answers: int, *, sensory: bool = False, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.sensory = sensory
        self.controller = lstm_cell(KEY + 1 + (WIDTH if sensory else 0), HIDDEN, stream)
        self.key = linear(HIDDEN, KEY, stream, "kaiming")
        self.gate = linear(HIDDEN, 1, stream, "xavier")
        self.out = linear(HIDDEN, n_answers, stream, "xavier")
        self.confidence_gain, self.confidence_bias = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """Weights with which each position reads those before it; the first reads nothing."""
        stored, asked = self.sides(encoded)
        rows = [torch.zeros_like(encoded[:, :, 0])]
        for t in range(1, self.seq_len):
            weights = torch.softmax((stored[:, :t] @ asked[:, t].unsqueeze(-1)).squeeze(-1), -1)
            rows.append(nn.functional.pad(weights, (0, self.seq_len - t)))
        return torch.stack(rows, 1)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits of the step after the last object."""
        stored, asked = self.sides(encoded)
        batch = len(encoded)
        state = (encoded.new_zeros(1, HIDDEN), encoded.new_zeros(1, HIDDEN))
        read = encoded.new_zeros(1, KEY + 1)  # the first steps are the same for every problem: one row is enough
        keys: list[Tensor] = []
        for t in range(self.seq_len):
            state = self._step(read, state, stored[:, t - 1] if t else None)
            keys.append(torch.relu(self.key(state[0])).expand(batch, -1))
            if t:
                read = self._read(state[0], torch.stack(keys[:-1], 1), stored[:, :t], asked[:, t])
        hidden, _ = self._step(read, state, stored[:, -1])
        return self.out(hidden).expand(batch, -1)

    def _step(self, read: Tensor, state: tuple[Tensor, Tensor], before: Tensor | None) -> tuple[Tensor, Tensor]:
        if self.sensory:
            seen = read.new_zeros(len(read), WIDTH) if before is None else before
            read = torch.cat([read.expand(len(seen), -1), seen], 1)
        if len(read) != len(state[0]):  # from the one row that all problems share at first to one each
            state = (state[0].expand(len(read), -1), state[1].expand(len(read), -1))
        return self.controller(read, state)

    def _read(self, hidden: Tensor, keys: Tensor, stored: Tensor, probe: Tensor) -> Tensor:
        scores = (stored @ probe.unsqueeze(-1)).squeeze(-1)
        weights = torch.softmax(scores, -1).unsqueeze(1)
        confidence = torch.sigmoid(self.confidence_gain * scores + self.confidence_bias).unsqueeze(-1)
        found = weights @ torch.cat([keys, confidence], -1)
        return torch.sigmoid(self.gate(hidden)) * found.squeeze(1)
