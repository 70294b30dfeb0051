"""Numbers that stand for a tensor while it passes: size, differences between samples, diversity of tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def is_plain(h: Tensor) -> bool:
    """Whether a tensor holds its numbers in memory of its own: not sparse, not nested, not inside a transform,
    not the zero that stands for a derivative that is not there."""
    strided = h.layout == torch.strided and not h.is_nested and not h.is_meta
    return strided and not h._is_zerotensor() and not torch._C._functorch.is_functorch_wrapped_tensor(h)


def rms(h: Tensor) -> float:
    """Root of the mean square, accumulated in float64."""
    if h.numel() == 0:
        return 0.0
    wide = torch.float64 if not h.is_complex() else torch.complex128
    return float(torch.linalg.vector_norm(h.detach(), dtype=wide)) / math.sqrt(h.numel())


def by_sample(h: Tensor, n: int) -> Tensor | None:
    """The tensor with samples first, or None if no axis counts them: as it is, samples and positions flattened
    together, or time first."""
    if h.ndim == 0 or n < 1:
        return None
    if h.shape[0] == n:
        return h
    if h.ndim > 1 and h.shape[1] == n:
        return h.transpose(0, 1)
    if h.shape[0] % n == 0 and h.shape[0] > 0:
        return h.reshape(n, -1, *h.shape[1:])
    return None


def centred_rms(h: Tensor, n: int) -> float | None:
    """rms of what differs between samples; None if samples cannot be told apart in it."""
    if n < 2:
        return None
    rows = by_sample(h.detach(), n)
    if rows is None:
        return None
    if not rows.is_complex():
        rows = rows.double() if rows.numel() < 1 << 20 else rows.float()
    return rms(rows - rows.mean(0, keepdim=True))


def shift_gradient(gradient: Tensor, n: int, *, channels: bool) -> float:
    """Gradient by a shift of a unit at all its positions at once, rms over units, norm over samples.

    It is what a bias there would feel. Averaging over positions, or reading the last one alone, leaves it as it is;
    the plain rms falls by the number of positions and mistakes pooling for a gradient that vanishes.
    """
    rows = by_sample(gradient, n)
    rows = gradient if rows is None else rows
    if rows.ndim > 2:
        rows = rows.flatten(2).sum(2) if channels else rows.flatten(1, -2).sum(1)
    units = rows.shape[1] if rows.ndim > 1 else 1
    return rms(rows) * math.sqrt(rows.numel() / max(units, 1))


def diversity(h: Tensor) -> float | None:
    """|X - mean over tokens| / |X| of (batch, tokens, features); None for fewer than two tokens or zero."""
    if h.ndim != 3 or h.shape[1] < 2:
        return None
    h = h.detach().float()
    size = float(torch.linalg.vector_norm(h))
    return float(torch.linalg.vector_norm(h - h.mean(1, keepdim=True))) / size if size > 0 else None


def all_finite(h: Tensor) -> bool:
    """Whether every number is finite; one pass."""
    if h.numel() == 0 or not (h.is_floating_point() or h.is_complex()):
        return True
    if h.is_complex():
        h = torch.view_as_real(h.detach())
    low, high = torch.aminmax(h.detach())
    return bool(torch.isfinite(low)) and bool(torch.isfinite(high))
