"""A small causal transformer with a window and a few global tokens: what people would take today, for comparison."""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator
from separatrix.core.scalars import in_words

from ..recurrent.calling import AbstractSequenceCore, checked_lengths, masked_beyond


class _Block(nn.Module):
    """Attention and two dense layers, each after a normalisation and around which the state passes."""

    def __init__(self, size: int, n_heads: int, generator: torch.Generator, dtype: torch.dtype) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.before, self.middle = nn.LayerNorm(size, dtype=dtype), nn.LayerNorm(size, dtype=dtype)
        self.query, self.key_value, self.out = (
            _linear(size, width, generator, dtype) for width in (size, 2 * size, size)
        )
        self.up, self.down = _linear(size, 4 * size, generator, dtype), _linear(4 * size, size, generator, dtype)

    def forward(self, new: Tensor, seen: Tensor, places: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """From states of this segment (batch, t, h) and all that may be seen (batch, k, h)."""
        query = _turned(self._heads(self.query(self.before(new))), places[0])
        key, value = self.key_value(self.before(seen)).chunk(2, -1)
        attended = nn.functional.scaled_dot_product_attention(
            query, _turned(self._heads(key), places[1]), self._heads(value), attn_mask=mask.unsqueeze(1)
        )
        new = new + self.out(attended.transpose(1, 2).flatten(2))
        return new + self.down(nn.functional.gelu(self.up(self.middle(new))))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


def _linear(inputs: int, outputs: int, generator: torch.Generator, dtype: torch.dtype) -> nn.Linear:
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs, dtype=dtype)
    nn.init.xavier_normal_(layer.weight, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def _turned(x: Tensor, places: Tensor) -> Tensor:
    """Rotary positions: pairs of coordinates turned by angles that grow with the place."""
    half = x.shape[-1] // 2
    rates = 10_000 ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)
    angles = (places.to(x.dtype).unsqueeze(-1) * rates).unsqueeze(1)
    first, second = x.chunk(2, -1)
    cos, sin = torch.cos(angles), torch.sin(angles)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


@final
@suggest_options
class WindowedAttention(AbstractSequenceCore):
    """A causal transformer that sees the newest ``window`` tokens and the first ``n_global`` ones.

    Rotary positions, normalisation before each part. The state that is returned holds what the next segment may still
    see of this one, layer by layer and without gradient, and the places of it (-1 for none).

    Args:
        input_size: features of a step.
        hidden_size: size of a token, an even multiple of ``n_heads``.
        window: how many of the newest tokens are seen, a token itself among them.
        n_global: how many of the first tokens are seen by all.
        n_layers: of attention.
        n_heads: of each layer.
        batch_first: as in torch, but true by default.
        generator: source of the weights, Xavier-normal; by default one with seed 0.
        dtype: of the parameters.

    Cost: T (T + window) products per layer, of which a mask keeps the window.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        window: int = 10,
        n_global: int = 10,
        *,
        n_layers: int = 2,
        n_heads: int = 4,
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first=batch_first)
        self.window = require_integer(window, "window", at_least=1)
        self.n_global = require_integer(n_global, "n_global", at_least=0)
        layers = require_integer(n_layers, "n_layers", at_least=1)
        heads = require_integer(n_heads, "n_heads", at_least=1)
        if hidden_size % (2 * heads):
            raise InvalidInput(f"hidden_size must be an even multiple of n_heads = {heads}; got {hidden_size}.")
        generator = default_generator(generator)
        self.entering = _linear(self.input_size, self.hidden_size, generator, dtype)
        self.blocks = nn.ModuleList(_Block(self.hidden_size, heads, generator, dtype) for _ in range(layers))
        self.end = nn.LayerNorm(self.hidden_size, dtype=dtype)

    @property
    def output_size(self) -> int:
        """Features of the output."""
        return self.hidden_size

    def forward(
        self, x: Tensor | PackedSequence, state: Any = None, lengths: Int[Tensor, " batch"] | None = None
    ) -> tuple[Any, Any]:
        """Outputs of all steps, and what the next segment may see."""
        if isinstance(x, PackedSequence):
            return self._forward_packed(x, state, lengths)
        inputs, is_single = self._time_first(x)
        lengths = None if lengths is None else checked_lengths(lengths, inputs)
        tokens = self.entering(inputs.transpose(0, 1).to(self.entering.weight.dtype))
        kept, before = self._unpack(state, len(tokens), is_single)
        places = self._places(before, tokens.shape[1], lengths)
        everywhere = torch.cat([before, places], 1)
        mask = self._mask(places, everywhere)
        layers = []
        for block, old in zip(self.blocks, kept.unbind(0), strict=True):
            seen = torch.cat([old, tokens], 1)
            layers.append(seen.detach())
            tokens = block(tokens, seen, (places.clamp_min(0), everywhere.clamp_min(0)), mask)
        output = masked_beyond(self.end(tokens).transpose(0, 1), lengths)
        shaped = output.squeeze(1) if is_single else output.transpose(0, 1) if self.batch_first else output
        return shaped, self._keep(torch.stack(layers), everywhere, is_single)

    def _places(self, before: Tensor, n_steps: int, lengths: Tensor | None) -> Tensor:
        start = before.amax(1, keepdim=True) + 1 if before.shape[1] else before.new_zeros(len(before), 1)
        steps = torch.arange(n_steps, device=before.device)
        places = start + steps
        return places if lengths is None else torch.where(steps < lengths.unsqueeze(1), places, -1)

    def _mask(self, places: Tensor, everywhere: Tensor) -> Tensor:
        query, key = places.unsqueeze(2), everywhere.unsqueeze(1)
        visible = (key >= 0) & (key <= query) & ((query - key < self.window) | (key < self.n_global))
        return visible | (query < 0)  # a token after the end sees anything, so that no row is empty

    def _keep(self, layers: Tensor, places: Tensor, is_single: bool) -> tuple[Tensor, Tensor]:
        newest = places.amax(1, keepdim=True) if places.shape[1] else places.new_zeros(len(places), 1)
        needed = (places >= 0) & ((newest - places < self.window - 1) | (places < self.n_global))
        count = min(places.shape[1], self.window - 1 + self.n_global)
        order = (~needed).to(torch.int8).argsort(dim=1, stable=True)[:, :count]
        kept = torch.where(needed, places, -1).gather(1, order)
        rows = order.unsqueeze(-1).expand(len(layers), -1, -1, layers.shape[-1])
        states = layers.gather(2, rows)
        return (states.squeeze(1), kept.squeeze(0)) if is_single else (states, kept)

    def _unpack(self, state: Any, batch: int, is_single: bool) -> tuple[Tensor, Tensor]:
        weight = self.entering.weight
        if state is None:
            empty = weight.new_zeros(len(self.blocks), batch, 0, self.hidden_size)
            return empty, torch.zeros(batch, 0, dtype=torch.int64, device=weight.device)
        pair = isinstance(state, tuple | list) and len(state) == 2 and all(isinstance(part, Tensor) for part in state)
        if not pair:
            raise ShapeError(f"state must be what an earlier call returned; got {in_words(state)}.")
        states, places = (state[0].unsqueeze(1), state[1].unsqueeze(0)) if is_single else state
        expected = (len(self.blocks), batch, places.shape[-1], self.hidden_size)
        if tuple(states.shape) != expected or places.ndim != 2:
            raise ShapeError(f"state must hold states of shape {expected}; got {tuple(states.shape)}.")
        return states.detach().to(weight.dtype), places
