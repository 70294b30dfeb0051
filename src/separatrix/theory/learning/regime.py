"""What balance does to learning: rich, lazy, delayed rich, and the time scales of each.

A large balance makes learning lazy and fast only if the heavy layer is onto: ``n_hidden = n_out`` for a positive
balance, ``n_hidden = n_in`` for a negative one. Otherwise the network first fits what its heavy layer can already
express, waits on a plateau, and then turns the heavy layer slowly: rich after all, and the later the larger the
balance. Thresholds: ``|balance|`` above 10 times the largest singular value of the task is large, below a tenth of
the smallest one is small.
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
from separatrix.matrices import require_pair

_LARGE = 10.0
_SMALL = 0.1


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
    """Time for the slowest mode to grow from ``start`` at balance zero: ``ln(s / start) / (2 s)``."""
    delayed_time: float
    """Time in which turning the heavy layer lowers the loss e-fold: ``|balance| / (2 s_min^2)``."""
    plateau: float
    """Expected excess loss of the plateau for a randomly oriented heavy layer; 0 where there is none."""
    final: float
    """Excess loss that a bottleneck leaves for ever."""


@formula("separatrix", "regime and time scales from sizes and balance", erratum="anguita2024-large-balance-lazy")
def classify_regime(
    n_in: int, n_hidden: int, n_out: int, balance: float, task_s: Any, start: float = 0.01
) -> RegimeMap:
    """Predict the learning regime from sizes, balance and the task's singular values.

    Args:
        n_in: inputs.
        n_hidden: hidden units.
        n_out: outputs.
        balance: coefficient of the balanced start.
        task_s: singular values of ``corr_yx``; zeros are left out of the time scales.
        start: strength of the product's modes at the start, for the rich time scale.

    Example:
        >>> classify_regime(2, 3, 5, 1000.0, [2.0, 1.0]).regime.label
        'delayed rich'
        >>> classify_regime(2, 5, 5, 1000.0, [2.0, 1.0]).regime.label
        'lazy'
    """
    for size, name in ((n_in, "n_in"), (n_hidden, "n_hidden"), (n_out, "n_out")):
        require_integer(size, name, at_least=1)
    s = as_float64(task_s, "task_s").reshape(-1)
    if bool((s < 0).any()) or s.numel() == 0 or not bool((s > 0).any()):
        raise InvalidInput("task_s must hold singular values, none negative and at least one above zero.")
    if not start > 0:
        raise InvalidInput(f"start must be positive; got {start}.")
    s = s.sort(descending=True).values
    learned = s[s > 0][:n_hidden]
    largest, smallest, lam = float(learned[0]), float(learned[-1]), abs(balance)
    width, name = (n_out, "n_out") if balance > 0 else (n_in, "n_in")
    regime, why = _decide(lam, largest, smallest, n_hidden, width, name)
    missing = max(0, width - n_hidden) / width if regime is Regime.DELAYED_RICH else 0.0
    return RegimeMap(
        regime,
        why,
        lazy_time=1 / math.hypot(lam, 2 * smallest),
        rich_time=math.log(max(smallest / start, 1.0)) / (2 * smallest),
        delayed_time=lam / (2 * smallest**2) if bool((s[: min(n_hidden, s.numel())] > 0).all()) else math.inf,
        plateau=missing * float(s.square().sum()) / 2,
        final=float(s[n_hidden:].square().sum()) / 2,
    )


def _decide(lam: float, largest: float, smallest: float, n_hidden: int, width: int, name: str) -> tuple[Regime, str]:
    if lam < _SMALL * smallest:
        return Regime.RICH, "the balance is small against every mode of the task: modes grow one after another"
    if lam <= _LARGE * largest:
        return Regime.INTERMEDIATE, "the balance is of the size of the task's modes"
    if n_hidden < width:
        return (
            Regime.DELAYED_RICH,
            f"the balance is large but n_hidden = {n_hidden} < {name} = {width}: the heavy layer must turn",
        )
    return Regime.LAZY, f"the balance is large and the heavy layer is onto (n_hidden = {n_hidden} >= {name} = {width})"


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
