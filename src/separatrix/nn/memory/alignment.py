"""How well a query and a key agree, and how a gradient goes back through it."""

from __future__ import annotations

import abc
from typing import ClassVar, final

import torch
from torch import Tensor


class AbstractAlignment(abc.ABC):
    """Logits of a query (batch, h) and keys (batch, k, h)."""

    name: ClassVar[str]
    has_vector: ClassVar[bool]
    """Whether there is a weight beside the two projections."""

    @abc.abstractmethod
    def logits(self, query: Tensor, keys: Tensor, vector: Tensor | None) -> Tensor:
        """(batch, k), with operations that autograd follows."""

    @abc.abstractmethod
    def logits_into(self, query: Tensor, keys: Tensor, vector: Tensor | None, buffer: Tensor) -> Tensor:
        """The same; ``buffer``, of the shape of the keys, then holds what ``pull_back`` needs."""

    @abc.abstractmethod
    def pull_back(
        self, by_logits: Tensor, query: Tensor, keys: Tensor, buffer: Tensor, by_keys: Tensor, by_vector: Tensor | None
    ) -> Tensor:
        """Add to the gradients by the first of the keys and by the vector; give that by the query, to be finished."""

    @abc.abstractmethod
    def finish(self, gradient: Tensor, vector: Tensor | None) -> Tensor:
        """A gradient by a query or key from what was collected: a factor common to all terms."""


@final
class Additive(AbstractAlignment):
    """``v . tanh(q + k)``."""

    name = "additive"
    has_vector = True

    def logits(self, query: Tensor, keys: Tensor, vector: Tensor | None) -> Tensor:
        """By autograd."""
        assert vector is not None
        return torch.tanh(query.unsqueeze(1) + keys) @ vector

    def logits_into(self, query: Tensor, keys: Tensor, vector: Tensor | None, buffer: Tensor) -> Tensor:
        """The buffer holds the tanh."""
        assert vector is not None
        torch.add(keys, query.unsqueeze(1), out=buffer).tanh_()
        return buffer @ vector

    def pull_back(
        self, by_logits: Tensor, query: Tensor, keys: Tensor, buffer: Tensor, by_keys: Tensor, by_vector: Tensor | None
    ) -> Tensor:
        """The vector is a factor of all terms and waits for ``finish``."""
        assert by_vector is not None
        rows = by_logits.unsqueeze(1)
        by_vector.add_(torch.bmm(rows, buffer).sum((0, 1)))
        slopes = torch.addcmul(buffer.new_ones(()), buffer, buffer, value=-1, out=buffer)
        count = by_keys.shape[1]
        by_keys.addcmul_(slopes[:, :count], by_logits[:, :count].unsqueeze(-1))
        return torch.bmm(rows, slopes).squeeze(1)

    def finish(self, gradient: Tensor, vector: Tensor | None) -> Tensor:
        """Times v."""
        assert vector is not None
        return gradient * vector


@final
class ScaledDot(AbstractAlignment):
    """``q . k / sqrt(h)``."""

    name = "dot"
    has_vector = False

    def logits(self, query: Tensor, keys: Tensor, vector: Tensor | None) -> Tensor:
        """By autograd."""
        return (keys @ query.unsqueeze(-1)).squeeze(-1) * query.shape[-1] ** -0.5

    def logits_into(self, query: Tensor, keys: Tensor, vector: Tensor | None, buffer: Tensor) -> Tensor:
        """The buffer stays as it is."""
        return self.logits(query, keys, vector)

    def pull_back(
        self, by_logits: Tensor, query: Tensor, keys: Tensor, buffer: Tensor, by_keys: Tensor, by_vector: Tensor | None
    ) -> Tensor:
        """The scale waits for ``finish``."""
        count = by_keys.shape[1]
        by_keys.addcmul_(query.unsqueeze(1), by_logits[:, :count].unsqueeze(-1))
        return torch.bmm(by_logits.unsqueeze(1), keys).squeeze(1)

    def finish(self, gradient: Tensor, vector: Tensor | None) -> Tensor:
        """Times the scale."""
        return gradient * gradient.shape[-1] ** -0.5


ALIGNMENTS: dict[str, AbstractAlignment] = {alignment.name: alignment for alignment in (Additive(), ScaledDot())}
