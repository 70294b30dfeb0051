"""Tokens on the unit sphere: checks, projection, tangent bases, distances.

A state is a tensor (..., n, d) whose rows are unit vectors. Distances between tokens are chordal, computed from
differences: a Gram matrix loses half of the digits of a small distance.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, as_tensor, require_finite, require_integer
from separatrix.core.random import default_generator

NORM_TOLERANCE = 1e-6
"""Tokens further than this from unit length are refused rather than silently renormalised."""


def normalise(x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
    """Each token divided by its length."""
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def check_tokens(x: object, name: str = "tokens", *, normalised: bool = False) -> Float[Tensor, "*batch n d"]:
    """Tokens as a tensor of unit rows; anything else is refused by name.

    Args:
        x: tokens (..., n, d) of unit length, d >= 2.
        name: how messages call the argument.
        normalised: divide by the lengths instead of refusing lengths other than one.

    Raises:
        ShapeError: fewer than two axes, no token, or d < 2.
        InvalidInput: non-finite entries, a zero token, or lengths off by more than 1e-6.
    """
    tokens = as_tensor(x, name, finite=False)
    if tokens.ndim < 2 or tokens.shape[-2] < 1 or tokens.shape[-1] < 2:
        require_finite(tokens, name)
        raise ShapeError(f"{name} must have shape (..., n, d) with n >= 1 and d >= 2; got {tuple(tokens.shape)}.")
    lengths = torch.linalg.vector_norm(tokens, dim=-1)
    if not normalised and lengths.numel():
        shortest, longest = torch.aminmax(lengths)
        if float(longest) - 1 <= NORM_TOLERANCE and 1 - float(shortest) <= NORM_TOLERANCE:
            return tokens  # and so every entry is finite
    require_finite(tokens, name)
    if bool((lengths == 0).any()):
        raise InvalidInput(f"{name} must be non-zero vectors; token {_first(lengths == 0)} has length zero.")
    if normalised:
        return normalise(tokens)
    gap = (lengths - 1).abs()
    if gap.numel() and float(gap.max()) > NORM_TOLERANCE:
        raise InvalidInput(
            f"{name} must be unit vectors; the largest deviation of a norm from 1 is {float(gap.max()):.2g} "
            f"(token {_first(gap == gap.max())}). Pass normalise=True or call flow.project first."
        )
    return tokens


def _first(mask: Tensor) -> str:
    index = tuple(int(i) for i in mask.nonzero()[0])
    return str(index[0]) if len(index) == 1 else str(index)


def random_tokens(
    n_tokens: int,
    dim: int,
    *batch: int,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, "*batch n d"]:
    """Tokens uniform on the sphere, as normalised Gaussian vectors, with leading axes ``batch``."""
    generator = default_generator(generator)
    require_integer(n_tokens, "n_tokens", at_least=1)
    require_integer(dim, "dim", at_least=2)
    shape = (*batch, n_tokens, dim)
    return normalise(torch.randn(shape, generator=generator, dtype=dtype, device=generator.device))


def tangent_part(x: Float[Tensor, "*batch n d"], u: Float[Tensor, "*batch2 m d"]) -> Float[Tensor, "*batch3 n d"]:
    """The component of ``u`` (one vector per token, or one for all) orthogonal to each token."""
    return u - x * (x * u).sum(dim=-1, keepdim=True)


def tangent_basis(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d e"]:
    """An orthonormal basis of the complement of each unit vector, as d - 1 columns.

    Columns of a Householder reflection; discontinuous in x where the first coordinate changes sign, so that spectra
    may be compared between points but entries may not.
    """
    dim = x.shape[-1]
    sign = torch.where(x[..., :1] < 0, -1.0, 1.0).to(x.dtype)
    axis = torch.cat([x[..., :1] + sign, x[..., 1:]], dim=-1)
    axis = axis / torch.linalg.vector_norm(axis, dim=-1, keepdim=True)
    eye = torch.eye(dim, dtype=x.dtype, device=x.device)[:, 1:]
    return eye - 2 * axis.unsqueeze(-1) * axis[..., None, 1:]


def chordal_distances(x: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n n"]:
    """Length of x_i - x_j for all pairs."""
    return torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")


def angles(x: Float[Tensor, "*batch d"], y: Float[Tensor, "*batch2 d"]) -> Float[Tensor, "*batch3"]:
    """Angle between unit vectors in radians, accurate for small angles."""
    chord = torch.linalg.vector_norm(x - y, dim=-1)
    return 2 * torch.asin((chord / 2).clamp_max(1.0))
