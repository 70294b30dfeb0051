"""Lengths of vectors whose squares may be no numbers: a Jacobian of size 1e200 has a spectrum like any other."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def unit(vector: Float[Tensor, "samples d"]) -> Float[Tensor, "samples d"]:
    """The vector over its length; zero stays zero."""
    scaled = vector / _largest(vector)
    size = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return scaled / torch.where(size > 0, size, 1.0)


def length(vector: Float[Tensor, "samples d"]) -> Float[Tensor, " samples"]:
    """The Euclidean length of each vector."""
    largest = _largest(vector)
    return largest.squeeze(-1) * torch.linalg.vector_norm(vector / largest, dim=-1)


def out_of_range(size: Tensor) -> Tensor:
    """The size itself where its square, or one over it, may be no number of its precision; one elsewhere.

    Dividing by it changes no digit of what needs it not.
    """
    room = torch.finfo(size.dtype).max ** 0.25
    return torch.where(((size > room) | (size < 1 / room)) & (size > 0) & torch.isfinite(size), size, 1.0)


def _largest(vector: Tensor) -> Tensor:
    largest = vector.abs().amax(dim=-1, keepdim=True)
    return torch.where(largest == 0, 1.0, largest)
