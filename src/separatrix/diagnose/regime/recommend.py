"""Which balance makes a network rich or lazy, and which learning rate keeps the comparison fair."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any, final

import torch
from torch import nn

from separatrix.core.arrays import require_positive
from separatrix.core.names import choose
from separatrix.core.result import Result

from ..balance.certificate import certify
from ..balance.exact_moves import unit_factors
from ..balance.pairs.laws import BALANCED_LAWS, Law, LayerPair
from ..balance.pairs.search import Pairs, SkippedLayer, find_pairs
from ..balance.profile import parameters_of
from ..balance.rebalance import set_balance
from ..model_call import Pick, prediction
from .equal_loss import stable_lr

REGIMES = ("rich", "lazy")


@final
@dataclasses.dataclass(frozen=True)
class PairAdvice:
    """The balance to set, and the typical factor it means: first layer divided by alpha, second multiplied by it."""

    pair: str
    balance: float
    alpha: float


@final
@dataclasses.dataclass(frozen=True, repr=False)
class InitAdvice(Result):
    """Advice for ``set_balance``.

    Attributes:
        regime: ``rich`` or ``lazy``.
        pairs: the balance of each pair; ``balances`` is the dictionary that ``set_balance`` takes.
        left: pairs for which balance cannot reach it, with the reason.
        lr: learning rate of matched stability (2/3 of 1/curvature) for the present weights; NaN without inputs.
        lr_after: the same after setting the balance.
    """

    regime: str
    pairs: tuple[PairAdvice, ...]
    left: tuple[SkippedLayer, ...]
    lr: float
    lr_after: float

    @property
    def balances(self) -> dict[str, float]:
        """Balance by pair, as ``set_balance`` takes it."""
        return {advice.pair: advice.balance for advice in self.pairs}

    @property
    def lr_factor(self) -> float:
        """By how much to multiply the learning rate."""
        return self.lr_after / self.lr

    def __repr__(self) -> str:
        lines = [f"InitAdvice: {self.regime}"]
        for advice in self.pairs:
            lines.append(f"  {advice.pair}: balance {advice.balance:.4g} (alpha {advice.alpha:.3g})")
        lines += [f"  left: {layer.layer}: {layer.reason}" for layer in self.left]
        if math.isfinite(self.lr) and math.isfinite(self.lr_after):
            lines.append(f"  learning rate {self.lr:.3g} -> {self.lr_after:.3g} for matched stability")
        else:
            lines.append("  learning rate of matched stability: not measured; give inputs")
        return "\n".join(lines)


def recommend_init(
    model: nn.Module,
    regime: str,
    inputs: Any = None,
    *,
    pairs: Pairs = "auto",
    contrast: float = 4.0,
    rotary: str = "auto",
    output: Pick = prediction,
) -> InitAdvice:
    """Recommend a balance per layer pair that makes training rich or lazy at the same initial function.

    Rich: balance 0, both layers of every unit equally heavy. Lazy: the side that must not move is made heavy, by
    ``contrast`` in norm on each side of the balanced point. For ReLU that is the first layer (negative balance); a
    positive imbalance stays rich there. For a linear pair it is a layer that is onto (as many hidden units as outputs,
    or as inputs); where neither is, a large balance only delays rich learning and the pair is left.

    Args:
        model: any model; unchanged.
        regime: ``"rich"`` or ``"lazy"``.
        inputs: a batch, to find the learning rates of matched stability before and after.
        pairs: as in ``balance_profile``.
        contrast: factor between the norm of each side and the balanced one (4 is alpha = 1/4).
        rotary: as in ``balance_profile``.
        output: takes the model's output and returns the prediction.

    Returns:
        Balance and typical factor per pair, and learning rates.

    Raises:
        InvalidInput: an unknown regime, no pair that can be set.

    Cost: as ``set_balance`` on a copy, plus two tangent kernels if inputs are given.
    """
    choose("regime", regime, REGIMES)
    require_positive(contrast - 1, "contrast - 1")
    search = find_pairs(model, pairs, example_inputs=inputs, rotary=rotary)
    checked = certify(model, search.pairs, inputs, output=output)
    found = [_advise(model, pair, regime, contrast) for pair in checked]
    advice = [item for item in found if isinstance(item, PairAdvice)]
    left = [item for item in found if isinstance(item, SkippedLayer)]
    lr = after = float("nan")
    if inputs is not None and advice:
        changed = copy.deepcopy(model)
        chosen = [pair for pair in checked if pair.name in {item.pair for item in advice}]
        set_balance(changed, {item.pair: item.balance for item in advice}, chosen, example_inputs=inputs, output=output)
        lr, after = stable_lr(model, inputs, output=output), stable_lr(changed, inputs, output=output)
    return InitAdvice(regime, tuple(advice), (*left, *search.skipped), lr, after)


def _advise(model: nn.Module, pair: LayerPair, regime: str, contrast: float) -> PairAdvice | SkippedLayer:
    if pair.checked_law not in BALANCED_LAWS or pair.first is None:
        return SkippedLayer(pair.name, pair.reason or pair.unchecked or f"its law is the {pair.law.label}")
    tensors = parameters_of(model, (pair,))
    first, second = pair.first.read(tensors), pair.second.read(tensors)
    a, b = first.square().sum(-1), second.square().sum(-1)
    alive = (a > 0) & (b > 0)
    if not bool(alive.any()):
        return SkippedLayer(pair.name, "all of its units are dead")
    heavy = float((a * b)[alive].sqrt().mean()) * (contrast**2 - contrast**-2)
    balance = 0.0
    if regime == "lazy":
        sign = _heavy_side(pair, first.shape[1], second.shape[1])
        if sign == 0:
            reason = "no side is onto (fewer hidden units than inputs and outputs): large balance only delays it"
            return SkippedLayer(pair.name, reason)
        balance = sign * heavy
    alpha = torch.nanmedian(unit_factors(a, b, balance, pair.degree))
    return PairAdvice(pair.name, balance, float(alpha))


def _heavy_side(pair: LayerPair, n_first: int, n_second: int) -> int:
    """+1 if the second layer is to be heavy, -1 for the first, 0 if neither makes a linear pair lazy."""
    if pair.law is not Law.FULL:
        return -1
    if pair.n_hidden == n_second:
        return 1
    return -1 if pair.n_hidden == n_first else 0
