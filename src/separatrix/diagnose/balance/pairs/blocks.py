"""One small model per row of the table of conservation laws, to check the laws on and to learn them from.

Each block names the law that holds for each of its pairs and, where there is one, a larger law that does not.
Inputs of ``forward`` are not declared as tensors: symbolic tracing passes stand-ins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional

from separatrix.core.names import resolve

from .laws import Law

_TINY = 1e-30
"""Epsilon of norms: the laws of normalised layers are exact only without it."""


@final
@dataclasses.dataclass(frozen=True)
class Block:
    """A model, inputs, and the law expected for each pair; ``broken`` is a larger law that must fail for it."""

    name: str
    model: nn.Module
    inputs: Tensor
    laws: dict[str, Law]
    broken: dict[str, Law]


@final
class SquaredReLU(nn.Module):
    """relu(x)^2, homogeneous of degree 2."""

    def forward(self, x: Any) -> Any:
        """Elementwise."""
        return functional.relu(x).square()


@final
class GatedUnit(nn.Module):
    """SwiGLU: down(silu(gate x) * up x)."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: Any) -> Any:
        """Samples (..., dim) to (..., dim)."""
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


@final
class ResidualBranch(nn.Module):
    """head(stem x + branch(stem x)) with a ReLU branch."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.rise, self.fall = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x: Any) -> Any:
        """Samples (..., dim) to (..., dim)."""
        x = self.stem(x)
        return self.head(x + self.fall(functional.relu(self.rise(x))))


@final
class GroupedAttention(nn.Module):
    """Self-attention with optional shared key-value heads, rotary embedding and query-key norm."""

    def __init__(
        self, dim: int, n_heads: int, n_groups: int, *, rotary: bool = False, normalised: bool = False
    ) -> None:
        super().__init__()
        self.num_heads, self.num_key_value_heads, self.head_dim = n_heads, n_groups, dim // n_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, n_groups * self.head_dim)
        self.v_proj = nn.Linear(dim, n_groups * self.head_dim)
        self.o_proj = nn.Linear(dim, dim)
        if rotary:
            self.rotary_emb = nn.Identity()
        if normalised:
            self.q_norm, self.k_norm = nn.RMSNorm(self.head_dim, eps=_TINY), nn.RMSNorm(self.head_dim, eps=_TINY)

    def forward(self, x: Any) -> Any:
        """Tokens (batch, n, dim) to (batch, n, dim)."""
        query, key, value = (self._heads(layer(x)) for layer in (self.q_proj, self.k_proj, self.v_proj))
        if hasattr(self, "q_norm"):
            query, key = self.q_norm(query), self.k_norm(key)
        if hasattr(self, "rotary_emb"):
            query, key = _rotate(query), _rotate(key)
        share = self.num_heads // self.num_key_value_heads
        key, value = key.repeat_interleave(share, 1), value.repeat_interleave(share, 1)
        attention = (query @ key.mT / self.head_dim**0.5).softmax(-1)
        return self.o_proj((attention @ value).transpose(1, 2).flatten(2))

    def _heads(self, x: Any) -> Any:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


def _rotate(x: Any) -> Any:
    """Rotary embedding in which dimensions i and i + d/2 turn together."""
    n_tokens, dim = x.shape[-2:]
    angle = torch.arange(n_tokens, dtype=x.dtype).unsqueeze(-1) * 0.6 ** torch.arange(dim // 2, dtype=x.dtype)
    angle = torch.cat([angle, angle], -1)
    turned = torch.cat([-x[..., dim // 2 :], x[..., : dim // 2]], -1)
    return x * angle.cos() + turned * angle.sin()


def _mlp(activation: nn.Module | None) -> nn.Module:
    layers = [nn.Linear(4, 6), activation, nn.Linear(6, 3)]
    return nn.Sequential(*[layer for layer in layers if layer is not None])


def _convolutions(*between: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), *between, nn.Conv2d(4, 3, 3))


_SAMPLES, _IMAGES, _TOKENS = (9, 4), (4, 2, 8, 8), (3, 5, 8)
_Row = tuple[Callable[[], nn.Module], tuple[int, ...], dict[str, Law], dict[str, Law]]

_ROWS: dict[str, _Row] = {
    "linear": (lambda: _mlp(None), _SAMPLES, {"0 -> 1": Law.FULL}, {}),
    "ReLU": (lambda: _mlp(nn.ReLU()), _SAMPLES, {"0 -> 2": Law.DIAGONAL}, {"0 -> 2": Law.FULL}),
    "LeakyReLU": (lambda: _mlp(nn.LeakyReLU(0.1)), _SAMPLES, {"0 -> 2": Law.DIAGONAL}, {"0 -> 2": Law.FULL}),
    "tanh": (lambda: _mlp(nn.Tanh()), _SAMPLES, {"0 -> 2": Law.NOTHING}, {"0 -> 2": Law.DIAGONAL}),
    "GELU": (lambda: _mlp(nn.GELU()), _SAMPLES, {"0 -> 2": Law.NOTHING}, {"0 -> 2": Law.DIAGONAL}),
    "SiLU": (lambda: _mlp(nn.SiLU()), _SAMPLES, {"0 -> 2": Law.NOTHING}, {"0 -> 2": Law.DIAGONAL}),
    "ReLU squared": (lambda: _mlp(SquaredReLU()), _SAMPLES, {"0 -> 2": Law.DIAGONAL}, {"0 -> 2": Law.FULL}),
    "SwiGLU": (
        lambda: GatedUnit(4, 6),
        _SAMPLES,
        {"up_proj -> down_proj": Law.DIAGONAL, "gate_proj -> down_proj": Law.NOTHING},
        {"up_proj -> down_proj": Law.FULL, "gate_proj -> down_proj": Law.DIAGONAL},
    ),
    "convolution, linear": (lambda: _convolutions(), _IMAGES, {"0 -> 1": Law.FULL}, {}),
    "convolution, average pool": (lambda: _convolutions(nn.AvgPool2d(2)), _IMAGES, {"0 -> 2": Law.FULL}, {}),
    "convolution, ReLU, max pool": (
        lambda: _convolutions(nn.ReLU(), nn.MaxPool2d(2)),
        _IMAGES,
        {"0 -> 3": Law.DIAGONAL},
        {"0 -> 3": Law.FULL},
    ),
    "convolution, ReLU, flatten, linear": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)),
        _IMAGES,
        {"0 -> 3": Law.DIAGONAL},
        {"0 -> 3": Law.FULL},
    ),
    "attention": (
        lambda: nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True),
        _TOKENS,
        {
            **{f"self_attn head {head} {pair}": Law.FULL for head in range(2) for pair in ("K -> Q", "V -> O")},
            "linear1 -> linear2": Law.DIAGONAL,
        },
        {"linear1 -> linear2": Law.FULL},
    ),
    "attention, shared key-value heads": (
        lambda: GroupedAttention(8, 4, 2),
        _TOKENS,
        {f"attention head {group} (x2) {pair}": Law.FULL for group in range(2) for pair in ("K -> Q", "V -> O")},
        {},
    ),
    "attention, rotary": (
        lambda: GroupedAttention(8, 2, 2, rotary=True),
        _TOKENS,
        {"attention head 0 K -> Q": Law.ROTATION_PAIRS, "attention head 0 V -> O": Law.FULL},
        {"attention head 0 K -> Q": Law.DIAGONAL},
    ),
    "attention, query-key norm": (
        lambda: GroupedAttention(8, 2, 2, normalised=True),
        _TOKENS,
        {"attention head 0 Q": Law.NORM, "attention head 0 K": Law.NORM, "attention head 0 V -> O": Law.FULL},
        {"attention head 0 Q": Law.NORM_PER_NEURON},
    ),
    "residual branch": (
        lambda: ResidualBranch(4, 6),
        _SAMPLES,
        {"rise -> fall": Law.DIAGONAL},
        {"rise -> fall": Law.FULL},
    ),
    "batch norm": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, eps=_TINY), nn.ReLU(), nn.Linear(6, 3)),
        _SAMPLES,
        {"0 -> 1": Law.NORM_PER_NEURON, "1 -> 3": Law.DIAGONAL},
        {},
    ),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6, eps=_TINY), nn.ReLU(), nn.Linear(6, 3)),
        _SAMPLES,
        {"0 -> 1": Law.NORM, "1 -> 3": Law.DIAGONAL},
        {"0 -> 1": Law.NORM_PER_NEURON},
    ),
}
BLOCKS = tuple(_ROWS)
"""Names of the blocks, in the order of the table."""


def reference_block(name: str, *, generator: torch.Generator) -> Block:
    """A block of the table with random weights in float64, and random inputs.

    Args:
        name: one of ``BLOCKS``.
        generator: source of weights and inputs.

    Raises:
        InvalidInput: an unknown name.
    """
    build, shape, laws, broken = resolve("block", name, _ROWS)
    with torch.device("meta"):  # the constructors of torch would draw from the global generator
        model = build()
    model = model.to_empty(device="cpu").double().train()
    with torch.no_grad():
        for parameter in model.parameters():
            fan_in = parameter[0].numel() if parameter.ndim > 1 else 1
            parameter.normal_(0.0, fan_in**-0.5, generator=generator)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.reset_running_stats()
    inputs = torch.randn(shape, generator=generator, dtype=torch.float64)
    return Block(name, model, inputs, laws, broken)
