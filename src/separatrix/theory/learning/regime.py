"""What balance does to learning: rich, lazy, delayed rich, and the time scales of each.

A large balance makes learning lazy and fast only if the heavy layer is onto: ``n_hidden = n_out`` for a positive
balance, ``n_hidden = n_in`` for a negative one. Otherwise the network first fits what its heavy layer can already
express, waits on a plateau, and then turns the heavy layer slowly: rich after all, and the later the larger the
balance. What counts is the kernel of the start, ``sqrt(balance^2 + 4 strength^2)``, against what has to be learned:
above 10 times the largest distance from the task it is large, below a tenth of the smallest one it is small. The task
is here what the network can learn of it: modes beyond the hidden units are left for ever and count for nothing.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, as_float64, formula, require_integer
from separatrix.core.labelled import Labelled
from separatrix.core.scalars import require_number
from separatrix.matrices import require_pair

_LARGE = 10.0
_SMALL = 0.1
_DUST = 1e-12
"""Size, relative to the largest, up to which a singular value is a zero that rounding has moved."""
_MISSED = 0.01
"""Share of what can be learned (squared) outside the heavy layer from which on it has to turn."""


class Regime(Labelled):
    """How a network learns."""

    RICH = "rich"
    LAZY = "lazy"
    DELAYED_RICH = "delayed rich"
    INTERMEDIATE = "intermediate"


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RegimeMap(Result):
    """The regime a network of these sizes and this balance learns in, and its times in units of tau."""

    regime: Regime
    why: str
    lazy_time: float
    """Slowest mode of the fast phase: ``1 / sqrt(balance^2 + 4 s_min^2)``."""
    rich_time: float
    """Time for the slowest mode to grow from the weakest strength of the start: ``ln(s / start) / (2 s)``."""
    delayed_time: float
    """Time in which turning the heavy layer lowers the loss e-fold: ``|balance| / (2 s_min^2)``."""
    plateau: float
    """Expected excess loss of the plateau for a randomly oriented heavy layer; 0 where there is none."""
    final: float
    """Excess loss that a bottleneck leaves for ever."""


@formula("separatrix", "regime and time scales from sizes and balance", erratum="anguita2024-large-balance-lazy")
def classify_regime(n_in: int, n_hidden: int, n_out: int, balance: float, task_s: Any, start: Any = 0.01) -> RegimeMap:
    r"""Predict the learning regime from sizes, balance, task and start.

    A mode of strength a has a tangent kernel of size :math:`K = \sqrt{\lambda^2 + 4a^2}`, and has to move by its
    distance from the task. Where K is large against that distance the kernel hardly moves (lazy); where it is small
    against it the mode must first grow (rich). A small start makes this a condition on the balance alone; a large
    start, or one near the task, is lazy or in between at any balance.

    Args:
        n_in: inputs.
        n_hidden: hidden units.
        n_out: outputs.
        balance: coefficient of the balanced start.
        task_s: singular values of ``corr_yx``, or the matrix itself (n_out, n_in); zeros are left out of the times.
        start: the product ``w2 w1`` at the start: its strength, for a start of random direction, or, with the matrix of
            the task, the matrix (n_out, n_in), whose rank is at most ``n_hidden``.

    Raises:
        InvalidInput: a balance that is not finite, a task or a start that no network of these sizes has.

    Example:
        >>> classify_regime(2, 3, 5, 1000.0, [2.0, 1.0]).regime.label
        'delayed rich'
        >>> classify_regime(2, 5, 5, 1000.0, [2.0, 1.0]).regime.label
        'lazy'
        >>> classify_regime(2, 2, 2, 0.0, [2.0, 1.0]).regime.label
        'rich'
        >>> classify_regime(2, 2, 2, 0.0, [2.0, 1.0], start=1.0).regime.label
        'intermediate'
    """
    for size, name in ((n_in, "n_in"), (n_hidden, "n_hidden"), (n_out, "n_out")):
        require_integer(size, name, at_least=1)
    balance = require_number(balance, "balance")
    task = as_float64(task_s, "task_s")
    _require_fitting(task, (n_out, n_in))
    s = torch.linalg.svdvals(task) if task.ndim == 2 else task.reshape(-1).sort(descending=True).values
    if bool((s < 0).any()) or s.numel() == 0 or not bool((s > 0).any()):
        raise InvalidInput("task_s must hold singular values, none negative and at least one above zero.")
    s = torch.where(s > _DUST * s[0], s, 0.0)
    learned = s[s > 0][:n_hidden]
    smallest, lam = float(learned[-1]), abs(balance)
    width, name = (n_out, "n_out") if balance > 0 else (n_in, "n_in")
    begin = _begin(start, task, s, n_hidden, (n_out, n_in), balance, max(0, width - n_hidden) / width)
    regime, why = _decide(lam, begin, n_hidden, width, name)
    return RegimeMap(
        regime,
        why,
        lazy_time=1 / math.hypot(lam, 2 * smallest),
        rich_time=math.log(max(smallest / begin.weakest, 1.0)) / (2 * smallest) if begin.weakest > 0 else math.inf,
        delayed_time=lam / (2 * smallest**2) if bool((s[: min(n_hidden, s.numel())] > 0).all()) else math.inf,
        plateau=begin.missed * float(s.square().sum()) / 2 if regime is Regime.DELAYED_RICH else 0.0,
        final=float(s[n_hidden:].square().sum()) / 2,
    )


@final
@dataclasses.dataclass(frozen=True)
class _Begin:
    """A start: its weakest and strongest mode, how far it is from what it can learn, and what its heavy layer misses.

    ``missed`` is the share of the task outside the heavy layer; ``to_turn`` that of what can be learned, the modes that
    a bottleneck ends in: the others stay outside whichever way it turns.
    """

    weakest: float
    strongest: float
    nearest: float
    farthest: float
    missed: float
    to_turn: float


def _require_fitting(task: Tensor, shape: tuple[int, int]) -> None:
    """Refuse a task that no network of these sizes has."""
    if task.ndim == 2 and task.shape != shape:
        raise InvalidInput(f"task_s as a matrix must have the shape (n_out, n_in) = {shape}; got {tuple(task.shape)}.")
    if task.ndim != 2 and task.numel() > min(shape):
        raise InvalidInput(
            f"task_s must hold at most {min(shape)} singular values, as many as the smaller of n_out and n_in; got "
            f"{task.numel()}."
        )


def _begin(
    start: Any, task: Tensor, s: Tensor, n_hidden: int, shape: tuple[int, int], balance: float, missed: float
) -> _Begin:
    learned = s[s > 0][:n_hidden]
    product = as_float64(start, "start")
    if product.ndim == 0:
        strength = float(product)
        if not strength > 0:
            raise InvalidInput(f"start must be positive; got {strength}.")
        near, far = (math.hypot(strength, float(learned[k])) for k in (-1, 0))  # of random direction: at right angles
        return _Begin(strength, strength, near, far, missed, missed)
    if task.shape != shape or product.shape != shape:
        raise InvalidInput(
            f"start as a matrix needs the task as a matrix too, both of shape (n_out, n_in) = {shape}; got "
            f"{tuple(product.shape)} and {tuple(task.shape)}."
        )
    strengths = torch.linalg.svdvals(product)
    rank = int((strengths > 1e-9 * strengths[:1].clamp_min(1e-300)).sum())
    if rank > n_hidden:
        raise InvalidInput(
            f"start must be a product of two layers: it has rank {rank}, and {n_hidden} hidden units give at most "
            f"{n_hidden}."
        )
    u, size, vh = torch.linalg.svd(task, full_matrices=False)
    reachable = (u[:, :n_hidden] * size[:n_hidden]) @ vh[:n_hidden]
    # beyond the modes of the task there are only those of the start, which are to be lost
    strengths, distance = (modes[: len(learned)] for modes in (strengths, torch.linalg.svdvals(reachable - product)))
    left = distance[distance > 1e-9 * float(learned[0])]
    near, far = (float(left[-1]), float(left[0])) if left.numel() else (0.0, 0.0)
    missed, to_turn = (_missed(product, part, balance, n_hidden) for part in (task, reachable))
    return _Begin(float(strengths[-1]), float(strengths[0]), near, far, missed, to_turn)


def _missed(product: Tensor, task: Tensor, balance: float, n_hidden: int) -> float:
    """Expected share of the task outside the heavy layer, which contains the start and is random beside it."""
    product, task = (product, task) if balance > 0 else (product.mT, task.mT)
    basis, s, _ = torch.linalg.svd(product)
    rank = min(int((s > 1e-12 * s[:1].clamp_min(1e-300)).sum()), n_hidden)
    outside = basis[:, rank:].mT @ task
    free = product.shape[0] - rank
    share = max(0, product.shape[0] - n_hidden) / free if free else 0.0
    return share * float(outside.square().sum() / task.square().sum())


def _decide(lam: float, begin: _Begin, n_hidden: int, width: int, name: str) -> tuple[Regime, str]:
    if begin.farthest == 0:
        return Regime.LAZY, "the start is the task: nothing is left to learn"
    if math.hypot(lam, 2 * begin.strongest) < _SMALL * begin.nearest:
        return (
            Regime.RICH,
            "balance and start are small against every mode of the task: modes grow one after another",
        )
    if lam > _LARGE * begin.farthest and n_hidden < width and begin.to_turn > _MISSED:
        return (
            Regime.DELAYED_RICH,
            f"the balance is large but n_hidden = {n_hidden} < {name} = {width}: the heavy layer must turn",
        )
    if math.hypot(lam, 2 * begin.weakest) <= _LARGE * begin.farthest:
        return Regime.INTERMEDIATE, "the kernel at the start is of the size of what has to be learned"
    if lam <= _LARGE * begin.farthest:
        return Regime.LAZY, "the start is near the task: what has to be learned is small against every mode's kernel"
    onto = f"onto (n_hidden = {n_hidden} >= {name} = {width})" if n_hidden >= width else "onto the task already"
    return Regime.LAZY, f"the balance is large and the heavy layer is {onto}"


@formula("separatrix", "plateau of the delayed rich regime")
def plateau_loss(
    w1: Float[Tensor, "*batch h i"],
    w2: Float[Tensor, "*batch o h"],
    corr_yx: Float[Tensor, "*batch o i"],
    balance: float,
) -> Float[Tensor, "*batch"]:
    r"""Excess loss on the plateau: what the heavy layer cannot express before it turns.

    .. math:: \tfrac12 |(I - \Pi)\Sigma|^2

    with the projector on the columns of ``w2`` (positive balance) or on the rows of ``w1`` (negative balance).
    Exact as ``|balance|`` goes to infinity.
    """
    require_pair(w1, w2)
    heavy, target = (w2, corr_yx) if balance >= 0 else (w1.mT, corr_yx.mT)
    basis, s, _ = torch.linalg.svd(heavy, full_matrices=False)
    basis = basis * (s > 1e-12 * s[..., :1])[..., None, :]
    return (target - basis @ (basis.mT @ target)).square().sum((-2, -1)) / 2


@formula("anguita2024", "Theorem 4.2.3, Eq. (4.26)", erratum="anguita2024-large-balance-lazy")
def lazy_product(
    t: Any, start: Float[Tensor, "*batch o i"], corr_yx: Float[Tensor, "*batch o i"], balance: float, tau: float = 1.0
) -> Float[Tensor, "*lead o i"]:
    r"""Product of a lazy network: :math:`W(t) = \Sigma + (W_0 - \Sigma) e^{-|\lambda| t/\tau}`, error of order
    1/balance².

    Holds if the heavy layer is onto: ``n_hidden = n_out`` (positive balance) or ``n_hidden = n_in`` (negative).
    """
    times = as_float64(t, "t")
    fade = torch.exp(-abs(balance) * times / tau).reshape(*times.shape, *(1,) * start.ndim)
    return corr_yx + (start - corr_yx) * fade
