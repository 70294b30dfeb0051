"""Networks over pairs of objects: PrediNet, which picks pairs, and the relation network, which takes all of them."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from .encoder import WIDTH
from .network import AbstractRelationalNetwork, front_stream
from .starts import linear

HEADS, KEY, RELATIONS, READ = 32, 16, 16, 8
FIRST, SECOND = 512, 256


def with_places(normal: Float[Tensor, "batch t d"]) -> Float[Tensor, "batch t e"]:
    """Objects with the number of their position as a further feature."""
    places = torch.arange(normal.shape[1], dtype=normal.dtype, device=normal.device)
    return torch.cat([normal, places.expand(len(normal), -1).unsqueeze(-1)], -1)


@final
class PrediNet(AbstractRelationalNetwork):
    """Each of 32 heads attends to two objects and compares them along 16 learned directions.

    Queries come from the whole problem, keys and directions are shared by all heads. The decoder sees the differences
    and the attended positions.

    Args:
        seq_len: T.
        n_answers: y.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, generator.

    Source: kerg2022, section 5.5, after Shanahan et al. (2020), over positions in place of a map of features.

    Example:
        >>> sum(p.numel() for p in PrediNet(seq_len=9, n_answers=4).parameters())
        1396524
    """

    def __init__(self, seq_len: int, n_answers: int, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        width = WIDTH + 1
        self.key = linear(width, KEY, stream, bias=False)
        self.first_query = linear(width * seq_len, HEADS * KEY, stream, bias=False)
        self.second_query = linear(width * seq_len, HEADS * KEY, stream, bias=False)
        self.direction = linear(width, RELATIONS, stream, bias=False)
        self.read = linear(HEADS * (RELATIONS + 2), READ, stream)
        self.out = linear(READ, n_answers, stream)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        placed = with_places(self.norm(encoded))
        keys, whole = self.key(placed), placed.flatten(1)
        one, two = (self._attended(query(whole), keys, placed) for query in (self.first_query, self.second_query))
        compared = torch.cat([self.direction(one) - self.direction(two), one[..., -1:], two[..., -1:]], -1)
        return self.out(torch.relu(self.read(compared.flatten(1))))

    @staticmethod
    def _attended(query: Tensor, keys: Tensor, placed: Tensor) -> Tensor:
        scores = query.unflatten(-1, (HEADS, KEY)) @ keys.mT
        return torch.softmax(scores, -1) @ placed


@final
class RelationNet(AbstractRelationalNetwork):
    """A perceptron of every ordered pair of objects, summed over all T^2 pairs, and a perceptron of the sum.

    The first layer of a pair is a sum of two maps, so each object goes through it once and not T times.

    Args:
        seq_len: T.
        n_answers: y.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, generator.

    Source: kerg2022, appendix C.2, after Santoro et al. (2017).

    Example:
        >>> sum(p.numel() for p in RelationNet(seq_len=9, n_answers=4).parameters())
        529636
    """

    def __init__(self, seq_len: int, n_answers: int, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.pair_in = linear(2 * (WIDTH + 1), FIRST, stream)
        self.pair_out = linear(FIRST, SECOND, stream)
        self.hidden = linear(SECOND, SECOND, stream)
        self.out = linear(SECOND, n_answers, stream)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        placed = with_places(self.norm(encoded))
        left, right = self.pair_in.weight.split(WIDTH + 1, 1)
        sums = (placed @ left.mT).unsqueeze(2) + (placed @ right.mT).unsqueeze(1) + self.pair_in.bias
        pairs = torch.relu(self.pair_out(torch.relu(sums)))
        return self.out(torch.relu(self.hidden(pairs.sum((1, 2)))))
