"""The metalearned neural memory: a small network whose weights are rewritten at every step."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from .encoder import WIDTH
from .network import AbstractRelationalNetwork, front_stream
from .starts import linear, lstm_cell

LAYERS = 3


@final
class MNM(AbstractRelationalNetwork):
    """An LSTM beside a memory that is a network of three layers; a learned rule moves its weights at every step.

    At each step heads of the controller give a rate, a key and a value to write and a key to read. Writing moves every
    layer towards a target that a linear map makes of the value; reading runs the memory on the key. How well values can
    be read back from their keys is a second loss (``penalty``, of the last call). The weights the memory starts from
    are constants. The public class has 33,920 parameters more that are never used.

    Args:
        seq_len: T.
        n_answers: y.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, generator.

    Source: kerg2022, appendix C.2, after Webb et al. (2021) and Munkhdalai et al. (2019).

    Example:
        >>> sum(p.numel() for p in MNM(seq_len=2, n_answers=2).parameters())
        545379
    """

    def __init__(self, seq_len: int, n_answers: int, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.cell = lstm_cell(2 * WIDTH, WIDTH, stream, "uniform")
        self.heads = linear(WIDTH, 4 * WIDTH, stream)
        self.rate = linear(WIDTH, 1, stream)
        self.targets = linear(WIDTH, LAYERS * WIDTH, stream)
        self.read_out = linear(2 * WIDTH, WIDTH, stream)
        self.out = linear(WIDTH, n_answers, stream)
        bound = WIDTH**-0.5
        start = torch.empty(LAYERS, WIDTH, WIDTH).uniform_(-bound, bound, generator=stream)
        self.register_buffer("start", start)
        self._reconstruction = torch.zeros(())

    def __getstate__(self) -> dict[str, Any]:
        """For copies: the number of the last call without the graph behind it, which cannot be copied."""
        return {**self.__dict__, "_reconstruction": self._reconstruction.detach()}

    def penalty(self) -> Tensor:
        """How badly values were read back in the last call, and the penalised layer if there is one."""
        return super().penalty() + self._reconstruction

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits of the step after the last object."""
        batch, normal = len(encoded), self.norm(encoded)
        memory = [layer.expand(batch, -1, -1) for layer in self.get_buffer("start")]
        state = (encoded.new_zeros(batch, WIDTH), encoded.new_zeros(batch, WIDTH))
        read, lost = encoded.new_zeros(batch, WIDTH), encoded.new_zeros(())
        for seen in (*normal.unbind(1), torch.zeros_like(normal[:, 0])):
            state = self.cell(torch.cat([seen, read], 1), state)
            how, key, value, asked = torch.tanh(self.heads(state[0])).split(WIDTH, 1)
            memory = self._written(memory, key, value, torch.sigmoid(self.rate(how)))
            lost = lost + (_run(memory, key)[-1] - value).square().mean()
            read = _run(memory, asked)[-1]
        self._reconstruction = lost / self.seq_len
        return self.out(self.read_out(torch.cat([state[0], read], 1)))

    def _written(self, memory: list[Tensor], key: Tensor, value: Tensor, rate: Tensor) -> list[Tensor]:
        """Every layer moved against the difference of what it gives and its target."""
        given = _run(memory, key)
        inputs = (key, *given[:-1])
        wanted = self.targets(value).split(WIDTH, 1)
        return [
            layer - (2 / WIDTH) * (out - target).unsqueeze(2) * (rate * into).unsqueeze(1)
            for layer, out, target, into in zip(memory, given, wanted, inputs, strict=True)
        ]


def _run(memory: list[Tensor], key: Tensor) -> list[Tensor]:
    """What each layer of the memory gives; tanh after all but the last."""
    given: list[Tensor] = []
    x = key
    for place, layer in enumerate(memory):
        x = (layer @ x.unsqueeze(2)).squeeze(2)
        x = torch.tanh(x) if place + 1 < len(memory) else x
        given.append(x)
    return given
