"""Networks of attention: a transformer, the Abstractor, and a transformer with relational heads."""

from __future__ import annotations

import math
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core.names import choose

from .encoder import WIDTH
from .network import AbstractRelationalNetwork, front_stream
from .starts import linear

HEADS, FEED_FORWARD, HIDDEN = 8, 512, 256


def sinusoids(n_positions: int, width: int) -> Float[Tensor, "t d"]:
    """Sines and cosines of positions, of wavelengths from 2 pi to 20,000 pi."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(n_positions).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def by_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, t, width) as (batch, heads, t, width / heads)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def from_heads(x: Tensor) -> Tensor:
    """The inverse of ``by_heads``."""
    return x.transpose(1, 2).flatten(2)


class _FeedForward(nn.Module):
    """Two linear layers beside a residual path, normalised after it."""

    def __init__(self, width: int, inner: int, stream: torch.Generator) -> None:
        super().__init__()
        self.into, self.out = linear(width, inner, stream), linear(inner, width, stream)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.norm(x + self.out(torch.relu(self.into(x))))
        return result


@final
class RelationalTransformer(AbstractRelationalNetwork):
    """One encoder layer of a transformer over the objects, the mean of what it gives, and a perceptron.

    The public class registers its layer twice and counts 198,272 parameters more.

    Args:
        seq_len: T.
        n_answers: y.
        tied: whether keys are made as queries are (the symmetric transformer of the source).
        image_size: as these, an option of every network: normalise, segments, encoder, l1, generator.

    Source: kerg2022, section 5.5 and appendix C.

    Example:
        >>> sum(p.numel() for p in RelationalTransformer(seq_len=9, n_answers=4).parameters())
        431460
    """

    def __init__(self, seq_len: int, n_answers: int, *, tied: bool = False, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.query = linear(WIDTH, WIDTH, stream, "xavier_uniform")
        self.key = None if tied else linear(WIDTH, WIDTH, stream, "xavier_uniform")
        self.value = linear(WIDTH, WIDTH, stream, "xavier_uniform")
        self.merge = linear(WIDTH, WIDTH, stream)
        self.after_attention = nn.LayerNorm(WIDTH)
        self.feed = _FeedForward(WIDTH, FEED_FORWARD, stream)
        self.last_norm = nn.LayerNorm(WIDTH)
        self.hidden, self.out = linear(WIDTH, HIDDEN, stream), linear(HIDDEN, n_answers, stream)

    def _placed(self, encoded: Tensor) -> Tensor:
        normal: Tensor = self.norm(encoded)
        return normal + sinusoids(self.seq_len, WIDTH).to(normal)

    def _weights(self, x: Tensor) -> Tensor:
        query = by_heads(self.query(x), HEADS)
        key = query if self.key is None else by_heads(self.key(x), HEADS)
        return torch.softmax(query @ key.mT / math.sqrt(WIDTH // HEADS), -1)

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """Attention weights, the mean over heads."""
        return self._weights(self._placed(encoded)).mean(1)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        x = self._placed(encoded)
        mixed = from_heads(self._weights(x) @ by_heads(self.value(x), HEADS))
        x = self.feed(self.after_attention(x + self.merge(mixed)))
        return self.out(torch.relu(self.hidden(self.last_norm(x).mean(1))))


class _CrossAttention(nn.Module):
    """Weights from objects, values from symbols: what is passed on is where objects relate, not what they are."""

    def __init__(self, stream: torch.Generator) -> None:
        super().__init__()
        self.query, self.key = linear(WIDTH, WIDTH, stream, bias=False), linear(WIDTH, WIDTH, stream, bias=False)
        self.value, self.merge = linear(WIDTH, WIDTH, stream, bias=False), linear(WIDTH, WIDTH, stream)
        self.norm = nn.LayerNorm(WIDTH)
        self.feed = _FeedForward(WIDTH, HIDDEN, stream)

    def weights(self, objects: Tensor) -> Tensor:
        query, key = by_heads(self.query(objects), HEADS), by_heads(self.key(objects), HEADS)
        return torch.softmax(query @ key.mT / math.sqrt(WIDTH // HEADS), -1)

    def forward(self, objects: Tensor, symbols: Tensor) -> Tensor:
        mixed = from_heads(self.weights(objects) @ by_heads(self.value(symbols), HEADS))
        result: Tensor = self.feed(self.norm(symbols + self.merge(mixed)))
        return result


@final
class Abstractor(AbstractRelationalNetwork):
    """Two layers of relational cross-attention: symbols of positions are mixed by how the objects there relate.

    Args:
        seq_len: T.
        n_answers: y.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, generator.

    Source: a comparator of ours, after Altabaa et al. (2023); 8 heads, width 128, mean over positions.

    Example:
        >>> Abstractor(2, 2)(torch.rand(2, 3, 32, 32), torch.tensor([[0, 1]])).shape
        torch.Size([1, 2])
    """

    def __init__(self, seq_len: int, n_answers: int, **front: Any) -> None:
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        self.symbols = nn.Parameter(torch.randn(seq_len, WIDTH, generator=stream))
        self.layers = nn.ModuleList(_CrossAttention(stream) for _ in range(2))
        self.out = linear(WIDTH, n_answers, stream)

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """Weights of the first layer, the mean over heads."""
        first = self.layers[0]
        assert isinstance(first, _CrossAttention)
        return first.weights(self.norm(encoded)).mean(1)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        objects = self.norm(encoded)
        x = self.symbols.expand(len(encoded), -1, -1)
        for layer in self.layers:
            x = layer(objects, x)
        return self.out(x.mean(1))


@final
class DualAttention(AbstractRelationalNetwork):
    r"""A transformer layer half of whose heads carry objects and half relations.

    A relational head passes :math:`\sum_j a_{ij} (r_{ij} W_r + s_j W_s)`: r are 16 learned similarities of i and j, s
    a learned symbol of position j.

    Args:
        seq_len: T.
        n_answers: y.
        relations: ``"asymmetric"``, or ``"symmetric"`` where both sides of r have the same map.
        image_size: as these, an option of every network: normalise, segments, encoder, l1, generator.

    Source: a comparator of ours, after Altabaa and Lafferty (2024).

    Example:
        >>> DualAttention(2, 2)(torch.rand(2, 3, 32, 32), torch.tensor([[0, 1]])).shape
        torch.Size([1, 2])
    """

    N_RELATIONS, PROJECTION = 16, 8

    def __init__(self, seq_len: int, n_answers: int, *, relations: str = "asymmetric", **front: Any) -> None:
        choose("relations", relations, ("asymmetric", "symmetric"))
        options, stream = front_stream(front)
        super().__init__(seq_len, n_answers, **options)
        half = WIDTH // 2
        self.query, self.key = linear(WIDTH, WIDTH, stream, bias=False), linear(WIDTH, WIDTH, stream, bias=False)
        self.value = linear(WIDTH, half, stream, bias=False)
        n_projected = self.N_RELATIONS * self.PROJECTION
        self.left = linear(WIDTH, n_projected, stream, bias=False)
        self.right = None if relations == "symmetric" else linear(WIDTH, n_projected, stream, bias=False)
        self.of_relation = linear(self.N_RELATIONS, half, stream, bias=False)
        self.symbols = nn.Parameter(torch.randn(seq_len, half, generator=stream))
        self.merge, self.after_attention = linear(WIDTH, WIDTH, stream), nn.LayerNorm(WIDTH)
        self.feed = _FeedForward(WIDTH, FEED_FORWARD, stream)
        self.hidden, self.out = linear(WIDTH, HIDDEN, stream), linear(HIDDEN, n_answers, stream)

    def _weights(self, x: Tensor) -> Tensor:
        query, key = by_heads(self.query(x), HEADS), by_heads(self.key(x), HEADS)
        return torch.softmax(query @ key.mT / math.sqrt(WIDTH // HEADS), -1)

    def relations(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch t t"]:
        """Weights of the relational heads, the mean over them."""
        return self._weights(self.norm(encoded))[:, HEADS // 2 :].mean(1)

    def answer(self, encoded: Float[Tensor, "batch t 128"]) -> Float[Tensor, "batch y"]:
        """Logits."""
        x = self.norm(encoded) + sinusoids(self.seq_len, WIDTH).to(encoded)
        weights, half = self._weights(x), HEADS // 2
        sensory = from_heads(weights[:, :half] @ by_heads(self.value(x), half))
        left = self.left(x).unflatten(-1, (self.N_RELATIONS, -1))
        right = left if self.right is None else self.right(x).unflatten(-1, (self.N_RELATIONS, -1))
        alike = torch.einsum("bird,bjrd->bijr", left, right) / math.sqrt(self.PROJECTION)
        sent = self.of_relation(alike).unflatten(-1, (half, -1)) + self.symbols.unflatten(-1, (half, -1))
        relational = torch.einsum("bhij,bijhd->bihd", weights[:, half:], sent).flatten(2)
        x = self.feed(self.after_attention(x + self.merge(torch.cat([sensory, relational], -1))))
        return self.out(torch.relu(self.hidden(x.mean(1))))
