"""Masks that have a name: which tokens a token may attend to, for any number of tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Bool
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, in_words, resolve


@final
@dataclasses.dataclass(frozen=True)
class TokenMask:
    """A name and the mask (n, n) of n tokens, True where token i may attend to token j; every row must have a True."""

    name: str
    matrix: Callable[[int], Tensor]


def causal_mask(n_tokens: int) -> Bool[Tensor, "n n"]:
    """A token attends to itself and to those before it."""
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()


MASKS: dict[str, TokenMask] = {mask.name: mask for mask in (TokenMask("causal", causal_mask),)}
"""Every mask that has a name.

A new one is a function and a line here: flows take its name, errors list it, and the contract of flows on the sphere
runs a flow with it.
"""


def check_mask(mask: object | None) -> tuple[Tensor | None, TokenMask | None]:
    """A mask from what a user passes: a matrix, or a name, whose matrix waits for the number of tokens."""
    if mask is None:
        return None, None
    if isinstance(mask, str):
        return None, resolve("mask", mask, MASKS)
    try:
        tensor = torch.as_tensor(mask)
    except (TypeError, ValueError, RuntimeError):
        names = " or ".join(repr(name) for name in MASKS)
        raise InvalidInput(f"mask must be {names}, a boolean matrix or None; got {in_words(mask)}.") from None
    if tensor.dtype != torch.bool or tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2]:
        raise ShapeError(
            f"mask must be a boolean matrix (..., n, n), True where a token may attend; got {tensor.dtype} "
            f"of shape {tuple(tensor.shape)}."
        )
    empty = ~tensor.any(dim=-1)
    if bool(empty.any()):
        raise InvalidInput(
            f"mask must let every token attend to something; row {int(empty.nonzero()[0, -1])} is empty."
        )
    return tensor, None
