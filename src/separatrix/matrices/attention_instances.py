"""Random instances of a self-attention flow: query, key and value matrices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import choose, require_integer, suggest_options

ENTRIES: tuple[str, ...] = ("gaussian", "scaled", "quarter", "uniform", "positive")


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class AttentionInstance:
    """Matrices of one head, or of a batch of heads drawn independently; value is symmetric."""

    query: Float[Tensor, "*batch d d"]
    key: Float[Tensor, "*batch d d"]
    value: Float[Tensor, "*batch d d"]

    @property
    def coupling(self) -> Float[Tensor, "*batch d d"]:
        """query' key, all that attention knows of the two."""
        return self.query.mT @ self.key


def attention_instance(
    dim: int,
    *,
    generator: torch.Generator,
    ensemble: str = "gaussian",
    batch: tuple[int, ...] = (),
) -> AttentionInstance:
    """Draw query, key and value; value is the symmetric part of a square draw with a positive largest eigenvalue.

    A value matrix without positive eigenvalue is drawn again, as the theorems ask for one.

    Args:
        dim: size d of the matrices, at least 2.
        generator: source of randomness.
        ensemble: of the entries. ``"gaussian"``: all N(0, 1). ``"scaled"``: all N(0, 1/d). ``"quarter"``: query and key
            N(0, d^-1/2), so that logits have the scale of 1/sqrt(d) attention; value N(0, 1). ``"uniform"``: all
            uniform on [-1, 1]. ``"positive"``: all uniform on [0, 1].
        batch: shape of leading axes.

    Source: altafini2025 does not state its ensemble; ``"gaussian"`` reproduces its Examples 2 and 3.
    """
    dim = require_integer(dim, "dim", at_least=2)
    choose("ensemble", ensemble, ENTRIES)
    draw, pair_scale = _entries(ensemble, dim, generator)
    query = pair_scale * draw((*batch, dim, dim))
    key = pair_scale * draw((*batch, dim, dim))
    value = _symmetric(draw((*batch, dim, dim)))
    while bool((negative := torch.linalg.eigvalsh(value)[..., -1] <= 0).any()):
        again = _symmetric(draw((*batch, dim, dim)))
        value = torch.where(negative[..., None, None], again, value)
    return AttentionInstance(query, key, value)


def _symmetric(square: Tensor) -> Tensor:
    return (square + square.mT) / 2


def _entries(ensemble: str, dim: int, generator: torch.Generator) -> tuple[Callable[[tuple[int, ...]], Tensor], float]:
    """A function that draws entries, and the factor of query and key."""

    def normal(shape: tuple[int, ...]) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    def uniform(shape: tuple[int, ...]) -> Tensor:
        return torch.rand(shape, dtype=torch.float64, generator=generator)

    if ensemble == "scaled":
        return (lambda shape: normal(shape) / dim**0.5), 1.0
    if ensemble == "uniform":
        return (lambda shape: 2 * uniform(shape) - 1), 1.0
    if ensemble == "positive":
        return uniform, 1.0
    return normal, (dim**-0.25 if ensemble == "quarter" else 1.0)
