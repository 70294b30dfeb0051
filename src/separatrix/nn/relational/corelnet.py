"""CoRelNet and CoRelNet-T: answers from a matrix of similarities, and from nothing else."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose

from .encoder import WIDTH
from .network import AbstractRelationalNetwork, front_stream, in_numbers
from .relations import RELATIONS, Relation, n_entries, read_entries, relation_matrix
from .starts import linear

TOKEN, HEADS, ATTENTION, FEED_FORWARD, HIDDEN = 8, 8, 512, 128, 256
"""Of CoRelNet-T: numbers of a token, heads, width of queries and keys together, of the feed-forward part; of both:
hidden units of the decoder."""


def _require_pairs(seq_len: int, relation: str) -> None:
    if relation == "causal_softmax" and seq_len == 1:
        raise InvalidInput("seq_len must be at least 2 for relation='causal_softmax', whose only entry is 1; got 1.")


@final
class CoRelNet(AbstractRelationalNetwork):
    """Similarities of all pairs of positions, a softmax, and a perceptron with one hidden layer on top.

    With temperature 1 the softmax of normalised features is one-hot to single precision, and gradients of the encoder
    are about a millionth of those of the decoder: see ``docs/explanation/relational-bottleneck.md``.

    Args:
        seq_len: T.
        n_answers: y.
        relation: ``"causal_softmax"`` (over j <= i, as the public code and the parameter table have it), ``"softmax"``
            (whole rows, as printed), ``"raw"`` or ``"cosine"``.
        temperature: divides similarities: a number, ``"sqrt_d"``, or ``None`` for 1 (0.1 with ``normalise="l2"``).
        sensory: whether the decoder sees the normalised features too.
        hidden: units of the decoder.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, symmetric, generator.

    Source: kerg2022, section 5.5.1, with errata ``kerg2022-flattened-relations`` and ``kerg2022-relation-symmetry``.

    Example:
        >>> sum(p.numel() for p in CoRelNet(seq_len=9, n_answers=4).parameters())
        211684
    """

    has_similarity = True

    def __init__(
        self,
        seq_len: int,
        n_answers: int,
        *,
        relation: Relation = "causal_softmax",
        temperature: float | str | None = None,
        sensory: bool = False,
        hidden: int = HIDDEN,
        **front: Any,
    ) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.relation: Relation = choose("relation", relation, RELATIONS)  # type: ignore[assignment]
        _require_pairs(seq_len, relation)
        require_integer(hidden, "hidden", at_least=1)
        self.temperature, self.sensory = in_numbers(temperature, self.norm.kind), sensory
        n_read = n_entries(seq_len, self.relation) + (WIDTH * seq_len if sensory else 0)
        self.hidden = linear(n_read, hidden, stream)
        self.out = linear(hidden, n_answers, stream)

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """R."""
        return relation_matrix(*self.sides(encoded), self.relation, self.temperature)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        first, second = self.sides(encoded)
        read = read_entries(relation_matrix(first, second, self.relation, self.temperature), self.relation)
        if self.sensory:
            read = torch.cat([read, first.flatten(1)], 1)
        return self.decode(read)

    def decode(self, read: Float[Tensor, "batch k"]) -> Float[Tensor, "batch y"]:
        """Logits from entries of a relation matrix."""
        return self.out(torch.relu(self.hidden(read)))


@final
class CoRelNetT(AbstractRelationalNetwork):
    """The relation matrix mixes learned position vectors, and one learned query attends to the mixtures.

    Token i is :math:`\\sum_j R_{ij} p_j`: relational cross-attention with positions as symbols, an Abstractor of one
    head without projections. The public class has some 23,000 parameters that are never used; they are left out here.

    Args:
        seq_len: T.
        n_answers: y.
        relation: as in ``CoRelNet``.
        temperature: as in ``CoRelNet``.
        sensory: whether each token carries the normalised features of its position too.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, symmetric, generator.

    Source: kerg2022, section 5.5.1, with erratum ``kerg2022-corelnet-t``.

    Example:
        >>> sum(p.numel() for p in CoRelNetT(seq_len=9, n_answers=4).parameters())
        222436
    """

    has_similarity = True

    def __init__(
        self,
        seq_len: int,
        n_answers: int,
        *,
        relation: Relation = "causal_softmax",
        temperature: float | str | None = None,
        sensory: bool = False,
        **front: Any,
    ) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.relation: Relation = choose("relation", relation, RELATIONS)  # type: ignore[assignment]
        _require_pairs(seq_len, relation)
        self.temperature, self.sensory = in_numbers(temperature, self.norm.kind), sensory
        width = TOKEN + (WIDTH if sensory else 0)
        self.positions = nn.Parameter(torch.randn(seq_len, TOKEN, generator=stream))
        self.query = nn.Parameter(torch.randn(TOKEN, generator=stream))
        self.ask = linear(TOKEN, ATTENTION, stream)
        self.key, self.value = linear(width, ATTENTION, stream), linear(width, ATTENTION, stream)
        self.merge = linear(ATTENTION, TOKEN, stream)
        self.after_attention, self.after_feed = nn.LayerNorm(TOKEN), nn.LayerNorm(TOKEN)
        self.feed_in, self.feed_out = linear(TOKEN, FEED_FORWARD, stream), linear(FEED_FORWARD, TOKEN, stream)
        self.hidden, self.out = linear(TOKEN, HIDDEN, stream), linear(HIDDEN, n_answers, stream)

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """R."""
        return relation_matrix(*self.sides(encoded), self.relation, self.temperature)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        first, second = self.sides(encoded)
        tokens = relation_matrix(first, second, self.relation, self.temperature) @ self.positions
        if self.sensory:
            tokens = torch.cat([tokens, first], -1)
        pooled = self.after_attention(self.query + self._attended(tokens))
        pooled = self.after_feed(pooled + self.feed_out(torch.relu(self.feed_in(pooled))))
        return self.out(torch.relu(self.hidden(pooled)))

    def _attended(self, tokens: Tensor) -> Tensor:
        """What the query finds: 8 heads of 64, scaled by an eighth."""
        per_head = ATTENTION // HEADS
        query = self.ask(self.query).reshape(HEADS, per_head)
        key = self.key(tokens).unflatten(-1, (HEADS, per_head))  # (batch, t, heads, 64)
        value = self.value(tokens).unflatten(-1, (HEADS, per_head))
        weights = torch.softmax((key * query).sum(-1) / per_head**0.5, 1)
        return self.merge((weights.unsqueeze(-1) * value).sum(1).flatten(1))
