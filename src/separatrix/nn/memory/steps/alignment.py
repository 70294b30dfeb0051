"""How well a query and a key agree, and how a gradient goes back through it."""

from __future__ import annotations

import abc
from typing import ClassVar, final

import torch
from torch import Tensor


class AbstractAlignment(abc.ABC):
    """Logits of a query (batch, h) and keys (batch, k, h).

    The fused loops multiply the weights of queries and keys by ``query_scale`` and ``key_scale`` once, before the first
    step, and the gradients by factors once, after the last.
    """

    name: ClassVar[str]
    has_vector: ClassVar[bool]
    """Whether there is a weight beside the two projections."""
    key_scale: ClassVar[float]

    @abc.abstractmethod
    def logits(self, query: Tensor, keys: Tensor, vector: Tensor | None) -> Tensor:
        """(batch, k), with operations that autograd follows; nothing is scaled beforehand."""

    @abc.abstractmethod
    def query_scale(self, size: int) -> float:
        """What queries of this size are multiplied by beforehand."""

    @abc.abstractmethod
    def compare(self, query: Tensor, keys: Tensor, buffer: Tensor) -> Tensor:
        """Write to ``buffer``, of the shape of the keys, what ``score`` and ``pull_back`` need."""

    @abc.abstractmethod
    def score(self, query: Tensor, keys: Tensor, vector: Tensor | None, compared: Tensor) -> Tensor:
        """(batch, k): logits up to a constant that all have in common, with the vector of ``scaled_vector``."""

    @abc.abstractmethod
    def scaled_vector(self, vector: Tensor | None) -> Tensor | None:
        """The vector as ``score`` takes it."""

    @abc.abstractmethod
    def pull_back(
        self,
        by_logits: Tensor,
        query: Tensor,
        keys: Tensor,
        compared: Tensor,
        by_keys: Tensor,
        by_vector: Tensor | None,
    ) -> Tensor:
        """Add to the gradients by the keys and by the vector, give that by the query: each up to its factor.

        ``by_logits`` sums to zero along the keys, as it does behind a softmax; ``compared`` may be overwritten.
        """

    @abc.abstractmethod
    def factors(self, vector: Tensor | None, like: Tensor) -> tuple[Tensor, Tensor, float]:
        """What gradients by queries (h,), by keys (h,) and by the vector still have to be multiplied by."""


@final
class Additive(AbstractAlignment):
    r"""``v . tanh(q + k)``.

    The fused loops compute :math:`\tanh z = 2\sigma(2z) - 1`, because torch's sigmoid takes a third of the time of its
    tanh: the factor 2 goes into the weights, and the constant falls out of the softmax and of its gradient.
    """

    name = "additive"
    has_vector = True
    key_scale = 2.0

    def logits(self, query: Tensor, keys: Tensor, vector: Tensor | None) -> Tensor:
        """By autograd."""
        assert vector is not None
        return torch.tanh(query.unsqueeze(1) + keys) @ vector

    def query_scale(self, size: int) -> float:
        """As that of keys."""
        return self.key_scale

    def compare(self, query: Tensor, keys: Tensor, buffer: Tensor) -> Tensor:
        """The sigmoid of twice the sum."""
        return torch.add(keys, query.unsqueeze(1), out=buffer).sigmoid_()

    def score(self, query: Tensor, keys: Tensor, vector: Tensor | None, compared: Tensor) -> Tensor:
        """One product of a matrix and a vector."""
        assert vector is not None
        return torch.mv(compared.view(-1, compared.shape[-1]), vector).view(compared.shape[:2])

    def scaled_vector(self, vector: Tensor | None) -> Tensor | None:
        """2 v."""
        return None if vector is None else 2 * vector

    def pull_back(
        self,
        by_logits: Tensor,
        query: Tensor,
        keys: Tensor,
        compared: Tensor,
        by_keys: Tensor,
        by_vector: Tensor | None,
    ) -> Tensor:
        """``v`` is a factor of all terms."""
        assert by_vector is not None
        by_vector.addmv_(compared.view(-1, compared.shape[-1]).mT, by_logits.reshape(-1))
        slopes = torch.addcmul(compared, compared, compared, value=-1, out=compared)
        by_keys.addcmul_(slopes, by_logits.unsqueeze(-1))
        return torch.bmm(by_logits.unsqueeze(1), slopes).squeeze(1)

    def factors(self, vector: Tensor | None, like: Tensor) -> tuple[Tensor, Tensor, float]:
        """The slope of tanh is four times that of the sigmoid."""
        assert vector is not None
        return 4 * vector, 4 * vector, 2.0


@final
class ScaledDot(AbstractAlignment):
    """``q . k / sqrt(h)``."""

    name = "dot"
    has_vector = False
    key_scale = 1.0

    def logits(self, query: Tensor, keys: Tensor, vector: Tensor | None) -> Tensor:
        """By autograd."""
        return (keys @ query.unsqueeze(-1)).squeeze(-1) * query.shape[-1] ** -0.5

    def query_scale(self, size: int) -> float:
        """``1 / sqrt(h)``."""
        return float(size**-0.5)

    def compare(self, query: Tensor, keys: Tensor, buffer: Tensor) -> Tensor:
        """Nothing is needed."""
        return buffer

    def score(self, query: Tensor, keys: Tensor, vector: Tensor | None, compared: Tensor) -> Tensor:
        """Products."""
        return torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1)

    def scaled_vector(self, vector: Tensor | None) -> Tensor | None:
        """There is none."""
        return None

    def pull_back(
        self,
        by_logits: Tensor,
        query: Tensor,
        keys: Tensor,
        compared: Tensor,
        by_keys: Tensor,
        by_vector: Tensor | None,
    ) -> Tensor:
        """The scale of the query is its factor."""
        by_keys.addcmul_(query.unsqueeze(1), by_logits.unsqueeze(-1))
        return torch.bmm(by_logits.unsqueeze(1), keys).squeeze(1)

    def factors(self, vector: Tensor | None, like: Tensor) -> tuple[Tensor, Tensor, float]:
        """The scale for queries, one for keys."""
        return like.new_full(like.shape[-1:], self.query_scale(like.shape[-1])), like.new_ones(like.shape[-1:]), 1.0


ALIGNMENTS: dict[str, AbstractAlignment] = {alignment.name: alignment for alignment in (Additive(), ScaledDot())}
