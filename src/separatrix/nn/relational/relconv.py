"""A network of graphlets: filters over the relations among every three objects."""

from __future__ import annotations

import itertools
import math
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .encoder import WIDTH
from .network import AbstractRelationalNetwork, front_stream
from .starts import fill_, linear

N_RELATIONS, PROJECTION, FILTERS, GRAPHLET, READ = 16, 4, 16, 3, 64


@final
class RelConvNet(AbstractRelationalNetwork):
    r"""Sixteen learned relations :math:`r_k(i, j) = \langle W_k x_i, W'_k x_j \rangle`, and 16 filters of 3 x 3 x 16 on
    the relations of every three positions.

    Args:
        seq_len: T; graphlets have as many positions as there are if these are fewer than 3.
        n_answers: y.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, symmetric, generator. With
            ``symmetric`` (the default) both sides of a relation have the same map.

    Source: a comparator of ours, after Altabaa and Lafferty (2023).

    Example:
        >>> RelConvNet(4, 2)(torch.rand(4, 3, 32, 32), torch.tensor([[0, 1, 2, 3]])).shape
        torch.Size([1, 2])
    """

    has_similarity = True

    def __init__(self, seq_len: int, n_answers: int, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.left = linear(WIDTH, N_RELATIONS * PROJECTION, stream, bias=False)
        self.size = min(GRAPHLET, seq_len)
        self.filters = nn.Parameter(torch.empty(FILTERS, self.size * self.size * N_RELATIONS))
        with torch.no_grad():
            fill_(self.filters, "uniform", stream)
        self.read = linear(FILTERS * math.comb(seq_len, self.size), READ, stream)
        self.out = linear(READ, n_answers, stream)

    def _alike(self, encoded: Tensor) -> Tensor:
        """(batch, t, t, 16)."""
        first, second = self.sides(encoded)
        left, right = (self.left(side).unflatten(-1, (N_RELATIONS, PROJECTION)) for side in (first, second))
        return torch.einsum("bird,bjrd->bijr", left, right) / math.sqrt(PROJECTION)

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """The mean of the sixteen relations."""
        return self._alike(encoded).mean(-1)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        alike = self._alike(encoded)
        chosen = torch.tensor(list(itertools.combinations(range(self.seq_len), self.size)), device=alike.device)
        groups = alike[:, chosen.unsqueeze(2), chosen.unsqueeze(1)].flatten(2)  # (batch, groups, 3 x 3 x 16)
        found = torch.relu(groups @ self.filters.mT)
        return self.out(torch.relu(self.read(found.flatten(1))))
