"""A small causal transformer in plain torch, for work on caches without any other library."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from separatrix.core.arrays import require_integer
from separatrix.core.described import Described
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator
from separatrix.core.result import Result
from separatrix.core.scalars import in_words

from .bounded import BoundedKeys


@final
@suggest_options
class BoundedCache(Described):
    """Bounded keys for every layer of a ``CausalTransformer``; the arguments are those of ``BoundedKeys``."""

    def __init__(
        self,
        n_buffer: int,
        n_relevant: int,
        policy: Any = "screening",
        normalise: str = "none",
        *,
        sinks: int = 0,
        prefill_chunk: int | None = None,
        pad_lengths: Int[Tensor, " batch"] | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {
            "n_buffer": n_buffer,
            "n_relevant": n_relevant,
            "policy": policy,
            "normalise": normalise,
            "sinks": sinks,
            "prefill_chunk": prefill_chunk,
            "pad_lengths": pad_lengths,
        }
        self._layers: list[BoundedKeys] = []
        self.budget = BoundedKeys(**self._settings).budget

    def made_of(self) -> Mapping[str, Any]:
        """What every layer's keys are bounded by."""
        return self._settings

    def layer(self, number: int) -> BoundedKeys:
        """The keys of a layer, made when it is first asked for."""
        while len(self._layers) <= number:
            self._layers.append(BoundedKeys(**self._settings))
        return self._layers[number]

    @property
    def kept_positions(self) -> tuple[Int[Tensor, "batch heads k"], ...]:
        """For each layer the positions that are kept, ascending, -1 for empty places at the end."""
        return tuple(layer.kept_positions for layer in self._layers)

    def get_seq_length(self) -> int:
        """Tokens seen."""
        return self._layers[0].seen if self._layers else 0

    def reset(self) -> None:
        """Forget everything."""
        for layer in self._layers:
            layer.reset()


@final
@dataclasses.dataclass(frozen=True, repr=False)
class CausalOutput(Result):
    """What a ``CausalTransformer`` returns; the fields are named as in transformers."""

    logits: Float[Tensor, "batch t vocabulary"]
    attentions: tuple[Float[Tensor, "batch heads t t"], ...] | None
    """Weights of each layer and query head, if they were asked for."""


class _Layer(nn.Module):
    """Attention with rotary positions and two dense layers, each after a normalisation, around which tokens pass."""

    def __init__(self, size: int, n_heads: int, n_key_heads: int) -> None:
        super().__init__()
        self.n_heads, self.n_key_heads = n_heads, n_key_heads
        width = size // n_heads
        self.before, self.middle = nn.RMSNorm(size), nn.RMSNorm(size)
        self.query, self.out = nn.Linear(size, size, bias=False), nn.Linear(size, size, bias=False)
        self.key_value = nn.Linear(size, 2 * n_key_heads * width, bias=False)
        self.up, self.down = nn.Linear(size, 4 * size, bias=False), nn.Linear(4 * size, size, bias=False)

    def forward(
        self, x: Tensor, turns: tuple[Tensor, Tensor], keys: BoundedKeys | None, with_weights: bool
    ) -> tuple[Tensor, Any]:
        """Tokens (batch, t, size), with cosine and sine of the angles of their positions."""
        inner = self.before(x)
        query = _rotated(self.query(inner).unflatten(-1, (self.n_heads, -1)).transpose(1, 2), *turns)
        key, value = self.key_value(inner).unflatten(-1, (2 * self.n_key_heads, -1)).transpose(1, 2).chunk(2, 1)
        key, weights = _rotated(key, *turns), None
        if keys is not None:
            attended = keys.attend(query, key, value)
        elif with_weights:
            group = self.n_heads // self.n_key_heads
            logits = query @ key.repeat_interleave(group, 1).mT * query.shape[-1] ** -0.5
            above = torch.ones(logits.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            weights = torch.softmax(logits.masked_fill(above, -torch.inf), -1)
            attended = weights @ value.repeat_interleave(group, 1)
        else:
            attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.silu(self.up(self.middle(x)))), weights


def _turns(start: int, count: int, half: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of angles that grow with the position, (count, half)."""
    steps = torch.arange(start, start + count, dtype=like.dtype, device=like.device)
    angles = steps[:, None] * 10_000 ** (-torch.arange(half, dtype=like.dtype, device=like.device) / half)
    return angles.cos(), angles.sin()


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: pairs of coordinates turned."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


@final
@suggest_options
class CausalTransformer(nn.Module):
    """A causal transformer over symbols, called as models of transformers are.

    Args:
        n_symbols: size of the vocabulary.
        hidden_size: size of a token, an even multiple of ``n_heads``.
        n_layers: of attention.
        n_heads: query heads of each layer.
        n_key_heads: key heads, of which ``n_heads`` is a multiple; as many as query heads if not given.
        generator: source of the weights, normal with deviation 0.02 and, behind attention and dense layers, smaller
            with the depth; by default one with seed 0.

    Cost: T^2 products per layer without a cache, T times its budget with one.

    Example:
        >>> model = CausalTransformer(10, 16, n_heads=2)
        >>> cache = BoundedCache(n_buffer=2, n_relevant=2)
        >>> model(input_ids=torch.arange(6).unsqueeze(0), past_key_values=cache).logits.shape
        torch.Size([1, 6, 10])
        >>> [kept.shape[-1] for kept in cache.kept_positions]
        [4, 4]
    """

    def __init__(
        self,
        n_symbols: int,
        hidden_size: int,
        n_layers: int = 2,
        n_heads: int = 4,
        n_key_heads: int | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_symbols = require_integer(n_symbols, "n_symbols", at_least=1)
        size = require_integer(hidden_size, "hidden_size", at_least=1)
        heads = require_integer(n_heads, "n_heads", at_least=1)
        key_heads = heads if n_key_heads is None else require_integer(n_key_heads, "n_key_heads", at_least=1)
        depth = require_integer(n_layers, "n_layers", at_least=1)
        if size % (2 * heads):
            raise InvalidInput(f"hidden_size must be an even multiple of n_heads = {heads}; got {size}.")
        if heads % key_heads:
            raise InvalidInput(f"n_heads must be a multiple of n_key_heads = {key_heads}; got {heads}.")
        self.half_width = size // heads // 2
        self.embed = nn.Embedding(self.n_symbols, size)
        self.blocks = nn.ModuleList(_Layer(size, heads, key_heads) for _ in range(depth))
        self.end, self.head = nn.RMSNorm(size), nn.Linear(size, self.n_symbols, bias=False)
        self._draw(default_generator(generator), depth)

    @torch.no_grad()
    def _draw(self, generator: torch.Generator, depth: int) -> None:
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                behind = name.endswith(("out.weight", "down.weight"))
                weight.normal_(0, 0.02 / (2 * depth) ** 0.5 if behind else 0.02, generator=generator)

    def forward(
        self,
        input_ids: Int[Tensor, "batch t"],
        past_key_values: BoundedCache | None = None,
        *,
        output_attentions: bool = False,
        use_cache: bool | None = None,
    ) -> CausalOutput:
        """Logits of the next symbol after each.

        Args:
            input_ids: the newest symbols.
            past_key_values: a cache, which is changed; all symbols are new without one.
            output_attentions: whether to return the weights; only without a cache.
            use_cache: accepted as transformers do; a cache is used if one is given.
        """
        if input_ids.ndim != 2 or input_ids.is_floating_point():
            raise ShapeError(f"input_ids must be whole numbers (batch, t); got {in_words(input_ids)}.")
        if past_key_values is not None and (output_attentions or not isinstance(past_key_values, BoundedCache)):
            what = "output_attentions is for calls without a cache" if output_attentions else "take a BoundedCache"
            raise InvalidInput(f"past_key_values = {in_words(past_key_values)}: {what}.")
        start = 0 if past_key_values is None else past_key_values.get_seq_length()
        x, attentions = self.embed(input_ids), []
        turns = _turns(start, x.shape[1], self.half_width, x)
        for number, block in enumerate(self.blocks):
            keys = None if past_key_values is None else past_key_values.layer(number)
            x, weights = block(x, turns, keys, output_attentions)
            attentions.append(weights)
        return CausalOutput(self.head(self.end(x)), tuple(attentions) if output_attentions else None)
