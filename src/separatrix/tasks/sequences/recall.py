"""What copy and denoise share: an alphabet, the loss over all steps, the accuracy over those that need memory."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

Encoding: TypeAlias = Literal["one-hot", "scalar"]
ENCODINGS: tuple[Encoding, ...] = ("one-hot", "scalar")
N_ITEMS = 10
"""Symbols to be remembered."""
BLANK = 0


def encode_symbols(
    symbols: Int[Tensor, "batch t"], depth: int, encoding: Encoding
) -> Float[Tensor, "batch t features"]:
    """Indices as one-hot vectors, or as one number; an index beyond the depth becomes the zero vector."""
    if encoding == "scalar":
        return symbols.unsqueeze(-1).to(torch.get_default_dtype())
    levels = torch.arange(depth, device=symbols.device)
    return (symbols.unsqueeze(-1) == levels).to(torch.get_default_dtype())


def recall_targets(items: Int[Tensor, "batch k"], length: int) -> Int[Tensor, "batch t"]:
    """Blanks, then the items at the last steps."""
    blanks = items.new_full((len(items), length - items.shape[1]), BLANK)
    return torch.cat([blanks, items], dim=1)


def mean_cross_entropy(outputs: Float[Tensor, "batch t classes"], targets: Int[Tensor, "batch t"]) -> Float[Tensor, ""]:
    """Over all steps and the batch, natural logarithm."""
    return functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def recall_accuracy(
    outputs: Float[Tensor, "batch t classes"], targets: Int[Tensor, "batch t"], n_items: int = N_ITEMS
) -> Float[Tensor, ""]:
    """Share of right symbols among the last steps."""
    right = outputs[:, -n_items:].argmax(-1) == targets[:, -n_items:]
    return right.to(outputs.dtype).mean()


def memoryless_loss(n_symbols: int, length: int, n_items: int = N_ITEMS) -> float:
    """Blanks are known, the items are guessed: ``n_items ln(n_symbols) / length``."""
    return n_items * math.log(n_symbols) / length
