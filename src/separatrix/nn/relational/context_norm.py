"""Normalisation of encoded objects over the positions of a problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import choose, suggest_options

Normalisation: TypeAlias = Literal["tcn", "l2", "none"]
NORMALISATIONS: tuple[Normalisation, ...] = ("tcn", "l2", "none")
EPSILON = 1e-8
Segments: TypeAlias = Sequence[Sequence[int]]


def temporal_context_norm(
    z: Float[Tensor, "batch t features"],
    gain: Float[Tensor, " features"] | None = None,
    shift: Float[Tensor, " features"] | None = None,
    *,
    segments: Segments | None = None,
    eps: float = EPSILON,
) -> Float[Tensor, "batch t features"]:
    r"""Each feature of each problem with mean 0 and variance 1 over the positions.

    .. math:: \gamma \odot (z - \mu) / \sqrt{v + \epsilon} + \beta

    v has the divisor T - 1. At T = 2 a feature becomes :math:`\pm 1/\sqrt 2` wherever its difference is large against
    :math:`\sqrt\epsilon`, and 0 where both are equal: same or different is then decided by the normalisation alone. A
    difference of 1e-5 gives .05.

    Args:
        z: encoded objects.
        gain: gamma, 1 if not given.
        shift: beta, 0 if not given.
        segments: positions that are normalised together, each position in one; all of them by default.
        eps: epsilon.

    Source: kerg2022, section 5.5, after Webb et al. (2020).

    Example:
        >>> z = torch.tensor([[[1.0], [2.0], [3.0]]])
        >>> temporal_context_norm(z).flatten().tolist()
        [-1.0, 0.0, 1.0]
    """
    if not isinstance(z, Tensor) or not z.is_floating_point():
        kind = z.dtype if isinstance(z, Tensor) else type(z).__name__
        raise InvalidInput(f"z must be a tensor of real floating numbers; got {kind}.")
    if z.ndim != 3:
        raise ShapeError(f"z must be (batch, positions, features); got shape {tuple(z.shape)}.")
    if segments is None:
        normal = _normal(z, eps)
    else:
        order = require_segments(segments, z.shape[1])
        parts = [_normal(z[:, list(segment)], eps) for segment in segments]
        normal = torch.cat(parts, 1)[:, order]
    if gain is not None:
        normal = normal * gain
    return normal if shift is None else normal + shift


def _normal(z: Tensor, eps: float) -> Tensor:
    if z.shape[1] < 2:
        raise InvalidInput(
            f"z must have at least 2 positions to normalise over, in every segment; got {z.shape[1]}: one position "
            "has no variance."
        )
    wide = z.float() if z.dtype in (torch.float16, torch.bfloat16) else z  # epsilon is 0 in half precision
    centred = wide - wide.mean(1, keepdim=True)
    variance = centred.square().sum(1, keepdim=True) / (z.shape[1] - 1)  # torch.var_mean takes four times as long here
    return (centred * (variance + eps).rsqrt()).to(z.dtype)


def require_segments(segments: Segments, n_positions: int) -> Tensor:
    """Where each position stands after the segments are put one behind another; they must hold each position once."""
    places = [position for segment in segments for position in segment]
    whole = all(isinstance(place, int) for place in places)
    if not whole or sorted(places) != list(range(n_positions)):
        raise InvalidInput(f"segments must hold each of the {n_positions} positions once; got {list(segments)!r}.")
    short = min((len(segment) for segment in segments), default=0)
    if short < 2:
        raise InvalidInput(
            f"segments must hold at least 2 positions each; got one of {short}: one position has no variance."
        )
    return torch.tensor(places).argsort()


@final
@suggest_options
class ContextNorm(nn.Module):
    """Normalisation over positions with trained gain and shift, or one that needs no parameters.

    Args:
        width: number of features.
        kind: ``"tcn"``; ``"l2"``, each object to length 1; ``"none"``.
        segments: as in ``temporal_context_norm``.
    """

    def __init__(self, width: int, kind: Normalisation = "tcn", segments: Segments | None = None) -> None:
        super().__init__()
        self.kind = choose("normalise", kind, NORMALISATIONS)
        if segments is not None and kind != "tcn":
            raise InvalidInput(f"segments are for normalise='tcn'; got normalise={kind!r}.")
        self.segments = None if segments is None else tuple(tuple(segment) for segment in segments)
        self.gain = nn.Parameter(torch.ones(width)) if kind == "tcn" else None
        self.shift = nn.Parameter(torch.zeros(width)) if kind == "tcn" else None

    def forward(self, z: Tensor) -> Tensor:
        """Normalised objects (batch, positions, features)."""
        if self.kind == "tcn":
            return temporal_context_norm(z, self.gain, self.shift, segments=self.segments)
        return functional.normalize(z, dim=-1) if self.kind == "l2" else z

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"kind={self.kind}"
