"""Recurrent networks that read objects one after another: a plain LSTM and a neural Turing machine."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from .encoder import WIDTH
from .network import AbstractRelationalNetwork, front_stream
from .starts import Start, fill_, linear, lstm_cell

HIDDEN = 512
SLOTS, SLOT = 10, 256
SHIFTS = (-1, 0, 1)


@final
class RelationalLSTM(AbstractRelationalNetwork):
    """An LSTM of 512 units over the objects; the last state answers.

    Args:
        seq_len: T.
        n_answers: y.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, generator.

    Source: kerg2022, appendix C.2, after Webb et al. (2021).

    Example:
        >>> sum(p.numel() for p in RelationalLSTM(seq_len=9, n_answers=4).parameters())
        1515748
    """

    def __init__(self, seq_len: int, n_answers: int, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.cell = lstm_cell(WIDTH, HIDDEN, stream)
        self.out = linear(HIDDEN, n_answers, stream, "xavier")

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        state = (encoded.new_zeros(len(encoded), HIDDEN), encoded.new_zeros(len(encoded), HIDDEN))
        for seen in self.norm(encoded).unbind(1):
            state = self.cell(seen, state)
        return self.out(state[0])


_ADDRESS = {"key": SLOT, "strength": 1, "gate": 1, "shift": len(SHIFTS), "sharpen": 1}
"""What a head says, and in how many numbers."""
_STARTS: dict[str, Start] = {
    "key": "xavier_tanh", "strength": "kaiming", "gate": "xavier", "shift": "xavier", "sharpen": "kaiming",
    "erase": "xavier", "add": "xavier_tanh",
}  # fmt: skip


@final
class NTM(AbstractRelationalNetwork):
    """A neural Turing machine: an LSTM with a memory of 10 x 256 numbers, one head that reads and one that writes.

    Addresses are by content (cosine), mixed with the last address, shifted by at most one place, and sharpened. The
    first read and the first write have no last address to mix with; nothing is read at the first step. One step more
    than there are objects.

    Args:
        seq_len: T.
        n_answers: y.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, generator.

    Source: kerg2022, appendix C.2, after Webb et al. (2021).

    Example:
        >>> sum(p.numel() for p in NTM(seq_len=9, n_answers=4).parameters())
        2574064
    """

    def __init__(self, seq_len: int, n_answers: int, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.cell = lstm_cell(WIDTH + SLOT, HIDDEN, stream)
        self._said = [
            *_ADDRESS.items(),
            *_ADDRESS.items(),
            ("erase", SLOT),
            ("add", SLOT),
        ]  # read, write, what to write
        self.heads = linear(HIDDEN, sum(size for _, size in self._said), stream, "xavier")
        with torch.no_grad():
            for (name, _), rows in zip(self._said, self._split(self.heads.weight, 0), strict=True):
                fill_(rows, _STARTS[name], stream)
        self.out = linear(HIDDEN, n_answers, stream, "xavier")
        self.memory = nn.Parameter(torch.empty(SLOTS, SLOT))
        with torch.no_grad():
            fill_(self.memory, "xavier", stream)

    def _split(self, values: Tensor, dim: int) -> tuple[Tensor, ...]:
        return values.split([size for _, size in self._said], dim)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits of the step after the last object."""
        batch, normal = len(encoded), self.norm(encoded)
        state = (encoded.new_zeros(batch, HIDDEN), encoded.new_zeros(batch, HIDDEN))
        read = encoded.new_zeros(batch, SLOT)
        memory = self.memory.expand(batch, -1, -1)
        reading: Tensor | None = None
        writing: Tensor | None = None
        for t in range(self.seq_len):
            state = self.cell(torch.cat([normal[:, t], read], 1), state)
            said = self._split(self.heads(state[0]), 1)
            if t:
                reading = _address(said[:5], memory, reading)
                read = (reading.unsqueeze(1) @ memory).squeeze(1)
            writing = _address(said[5:10], memory, writing)
            erase, add = torch.sigmoid(said[10]).unsqueeze(1), torch.tanh(said[11]).unsqueeze(1)
            weights = writing.unsqueeze(2)
            memory = memory * (1 - erase * weights) + add * weights
        last = torch.cat([encoded.new_zeros(batch, WIDTH), read], 1)
        return self.out(self.cell(last, state)[0])


def _address(said: tuple[Tensor, ...], memory: Tensor, before: Tensor | None) -> Float[Tensor, "batch 10"]:
    key, strength, gate, shift, sharpen = said
    likeness = functional.cosine_similarity(torch.tanh(key).unsqueeze(1), memory, dim=2)
    weights = torch.softmax(functional.softplus(strength) * likeness, 1)
    if before is not None:
        mix = torch.sigmoid(gate)
        weights = mix * weights + (1 - mix) * before
    moved = torch.stack([weights.roll(places, 1) for places in SHIFTS], 1)
    weights = (torch.softmax(shift, 1).unsqueeze(2) * moved).sum(1)
    sharp = weights ** (functional.softplus(sharpen) + 1)
    return sharp / sharp.sum(1, keepdim=True)
