"""One small step against the gradient: how much the last features move for what the loss falls.

A note at most: from one step the regime is not reliably told (``separatrix.diagnose.rich_lazy`` trains to tell).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as tree

from ...findings.finding import Finding, Place
from ...findings.thresholds import threshold
from ...recording.functions import CONTRACTIONS, WeightUse
from ...recording.observed import Observed
from ...recording.protection import moved
from ...recording.subject import as_left
from ..reporting import beyond

_THEORY = "anguita2024, chapter 4: rich and lazy regimes; separatrix.diagnose.rich_lazy"


class _Entering(TorchFunctionMode):
    """Keeps what enters the contractions of one weight."""

    def __init__(self, weights: list[Tensor]) -> None:
        super().__init__()
        self.held = [*weights]
        self.entered: Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in CONTRACTIONS:
            parts = [part for part in tree.tree_leaves((args, kwargs)) if isinstance(part, Tensor)]
            if any(part is weight for part in parts for weight in self.held):
                others = [part for part in parts if part.is_floating_point()
                          and not any(part is weight for weight in self.held)]  # fmt: skip
                self.entered = others[0].detach().double() if others else None
        return result


def lazy(facts: Observed) -> list[Finding]:
    """Relative change of the head's input per relative fall of the loss, for a step that should lower it by 5 %.

    Cost: two forwards.
    """
    head, loss = facts.forward.head, facts.loss
    squares = sum(float(g.double().square().sum()) for g in facts.gradients.values() if g is not None)
    if loss is None or head is None or not squares > 0 or not float(loss) > 0 or not math.isfinite(squares):
        return []
    if facts.zero_matrices:
        facts.skip("lazy", "a weight of zeros hides the rest from the first step", "training (rich_lazy)")
        return []
    rate = threshold("lazy", "step") * float(loss) / squares
    steps = {
        value: value.detach() - rate * gradient
        for name, value in facts.subject.trainable.items()
        if (gradient := facts.gradients.get(name)) is not None
    }
    before, start = _features(facts, head, {})
    after, end = _features(facts, head, steps)
    fall = (start - end) / start if start > 0 else 0.0
    if before is None or after is None or before.shape != after.shape or not fall > 0.2 * threshold("lazy", "step"):
        facts.skip("lazy", "one small step does not lower the loss as predicted", "training (rich_lazy)")
        return []
    size = float(before.norm())
    value = float((after - before).norm()) / size / fall if size > 0 else 0.0
    facts.measures["lazy"] = value
    if not value < threshold("lazy", "note"):
        return []
    return [
        Finding(
            "lazy", "note", Place(head.module or head.roots[0]), value,
            f"a step that lowers the loss by {100 * fall:.1f}% moves the last features by {value * fall:.2g} of their "
            "size: training may be lazy.", "Train a few steps to tell (separatrix.diagnose.rich_lazy); smaller output "
            "scale makes features move.", theory=_THEORY, threshold=threshold("lazy", "note"), certainty=beyond("lazy"),
            evidence="one step is a weak sign; rich_lazy trains to tell",
        )
    ]  # fmt: skip


def _features(facts: Observed, head: WeightUse, values: dict[Tensor, Tensor]) -> tuple[Tensor | None, float]:
    """What enters the head, and the loss, with other parameters."""
    subject = facts.subject
    watch = _Entering([subject.parameters[root] for root in head.roots if root in subject.parameters])
    with moved(values), as_left(subject.model), torch.no_grad():
        with watch:
            output, _ = subject.forward()
        return watch.entered, float(subject.loss_of(output))  # type: ignore[arg-type]
