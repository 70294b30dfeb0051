"""Attention as strangers write it: the same names as everybody's, another function between them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

DIM, HEADS = 8, 2


class Attention(nn.Module):
    """Plain attention under the usual names; subclasses change what lies between the layers."""

    def __init__(self, n_groups: int = HEADS) -> None:
        super().__init__()
        self.num_heads, self.num_key_value_heads, self.head_dim = HEADS, n_groups, DIM // HEADS
        self.q_proj, self.o_proj = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.k_proj, self.v_proj = (nn.Linear(DIM, n_groups * self.head_dim) for _ in range(2))

    def forward(self, x: Any) -> Any:
        return self.attend(*(self.split(layer(x)) for layer in (self.q_proj, self.k_proj, self.v_proj)))

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        share = HEADS // self.num_key_value_heads
        k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        return self.merge(self.weights(self.logits(q, k)) @ self.values(v))

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return q @ k.mT / math.sqrt(self.head_dim)

    def weights(self, logits: Tensor) -> Tensor:
        return logits.softmax(-1)

    def values(self, v: Tensor) -> Tensor:
        return v

    def merge(self, mixed: Tensor) -> Tensor:
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


def frequencies(n_tokens: int, dim: int = DIM // HEADS) -> Tensor:
    """Complex rotations by position, as in Llama."""
    angle = torch.arange(n_tokens).unsqueeze(-1) * 0.6 ** torch.arange(dim // 2)
    return torch.polar(torch.ones_like(angle), angle)


def turn(x: Tensor, freqs: Tensor) -> Tensor:
    """Neighbouring dimensions as one complex number, turned."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * freqs.to(pairs)).flatten(-2)


class LlamaStyle(Attention):
    def forward(self, x: Any, freqs_cis: Any) -> Any:
        q, k, v = (self.split(layer(x)) for layer in (self.q_proj, self.k_proj, self.v_proj))
        return self.attend(turn(q, freqs_cis), turn(k, freqs_cis), v)


class LlamaOptional(Attention):
    """The table of rotations is optional: without it the model runs, but is another function."""

    def forward(self, x: Any, freqs_cis: Any = None) -> Any:
        q, k, v = (self.split(layer(x)) for layer in (self.q_proj, self.k_proj, self.v_proj))
        if freqs_cis is not None:
            q, k = turn(q, freqs_cis), turn(k, freqs_cis)
        return self.attend(q, k, v)


class InterleavedRotary(Attention):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        freqs = frequencies(q.shape[-2])
        return super().attend(turn(q, freqs), turn(k, freqs), v)


class HalfRotaryUnnamed(Attention):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().attend(self.shift(q), self.shift(k), v)

    def shift(self, x: Tensor) -> Tensor:
        angle = torch.arange(x.shape[-2]).unsqueeze(-1) * 0.6 ** torch.arange(x.shape[-1] // 2)
        angle = torch.cat([angle, angle], -1).to(x)
        first, second = x.chunk(2, -1)
        return x * angle.cos() + torch.cat([-second, first], -1) * angle.sin()


class Cosine(Attention):
    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return 5 * functional.normalize(q, dim=-1) @ functional.normalize(k, dim=-1).mT


class NormOtherName(Attention):
    """Query-key norm under names that no list has."""

    def __init__(self, name: str = "q_layernorm") -> None:
        super().__init__()
        setattr(self, name, nn.LayerNorm(self.head_dim))
        setattr(self, name.replace("q", "k", 1), nn.LayerNorm(self.head_dim))
        self.name = name

    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(getattr(self, self.name)(q), getattr(self, self.name.replace("q", "k", 1))(k))


class LinearAttention(Attention):
    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return (functional.elu(q) + 1) @ (functional.elu(k) + 1).mT

    def weights(self, logits: Tensor) -> Tensor:
        return logits / logits.sum(-1, keepdim=True)


class TanhValues(Attention):
    def values(self, v: Tensor) -> Tensor:
        return v.tanh()


class ClippedQueries(Attention):
    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return super().logits(q.clamp(-0.5, 0.5), k)


class NormedOutput(Attention):
    """A norm between the mixed values and the output layer."""

    def merge(self, mixed: Tensor) -> Tensor:
        return super().merge(functional.layer_norm(mixed, mixed.shape[-1:]))


class TalkingHeads(Attention):
    """Heads are mixed after the softmax: values and output of one head are no pair of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.tensor([[0.7, 0.4], [-0.2, 1.1]]))

    def values(self, v: Tensor) -> Tensor:
        return torch.einsum("gh,bhnd->bgnd", self.mix, v)


class ResidualQueries(Attention):
    """Queries are also read by the output."""

    def forward(self, x: Any) -> Any:
        return super().forward(x) + self.q_proj(x)


class SoftCap(Attention):
    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        return 2 * (super().logits(q, k) / 2).tanh()


class Alibi(Attention):
    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        place = torch.arange(q.shape[-2]).to(q)
        return super().logits(q, k) - 0.3 * (place - place.unsqueeze(-1)).abs()


class Sigmoid(Attention):
    def weights(self, logits: Tensor) -> Tensor:
        return (logits - math.log(logits.shape[-1])).sigmoid()


class Causal(Attention):
    def logits(self, q: Tensor, k: Tensor) -> Tensor:
        n = q.shape[-2]
        return super().logits(q, k).masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)


class Fused(Attention):
    """The kernel of torch."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.merge(functional.scaled_dot_product_attention(q, k, v))
