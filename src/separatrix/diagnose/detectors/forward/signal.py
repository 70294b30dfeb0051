"""What depth does to signals and gradients.

For the output h of a contraction with n units: a = rms(h), c = rms of what differs between samples, b = |gradient of
v.f by a shift of each unit at all its positions| / sqrt(n) with a random v (pooling over positions leaves it as it
is). gV is the largest b over the first third of weights used once, over b at the
head's input, in decades; cV the same for c against the input. Measured at the first layers and at the head alone: what
lies in residual branches says nothing about the trunk.
"""

from __future__ import annotations

import itertools
import math

from ...findings.finding import Finding, Place
from ...findings.thresholds import threshold
from ...recording.functions import WeightUse
from ...recording.observed import Observed
from ..reporting import beyond, fine, judged


def depth_measures(facts: Observed) -> tuple[float | None, float | None]:
    """gV and cV in decades; None where they cannot be told. Also fills the profile over depth."""
    _ = facts.input_gradients
    forward = facts.forward
    uses = forward.once
    facts.profiles.setdefault("depth", [_row(use) for use in forward.functions.uses[:512]])
    head = forward.head
    if head is None:
        return None, None
    before = [use for use in uses if use is not head and use.gradient_out is not None]
    first = [use.gradient_out or 0.0 for use in before[: math.ceil(len(before) / 3)]]
    gradient = _decades(max(first, default=0.0), head.gradient_in or 0.0)
    spread = _decades(head.centred_in, facts.input_spread)
    if gradient is not None:
        facts.measures["gradient_decades"] = gradient
    if spread is not None:
        facts.measures["signal_decades"] = spread
    facts.measures["head_rms"] = head.rms_in
    return gradient, spread


def _decades(above: float | None, below: float | None) -> float | None:
    if above is None or below is None or not above > 0 or not below > 0 or math.isinf(above) or math.isinf(below):
        return None
    return math.log10(above / below)


def _row(use: WeightUse) -> dict[str, object]:
    return {
        "module": use.module or use.roots[0],
        "weight": use.roots[0],
        "op": use.op,
        "rms": use.rms_out,
        "centred": use.centred_out,
        "gradient": use.gradient_out,
        "diversity": use.diversity_in,
    }


def input_lost(facts: Observed) -> list[Finding]:
    """c / a at the head's input: how much of what enters the head depends on the sample."""
    depth_measures(facts)
    head = facts.forward.head
    if facts.subject.sample.n < 2:
        facts.skip("input_lost", "one sample", "a batch of at least 2")
        return []
    if head is None or head.centred_in is None or facts.subject.sample.packed:
        return _unconnected(facts)
    share = head.centred_in / head.rms_in if head.rms_in > 0 else 0.0
    zero_weight = any(not bool((value != 0).any()) for value in facts.matrices.values())
    facts.measures["input_lost"] = share
    limit = threshold("input_lost", "fault")
    if _same_samples(facts) or (zero_weight and head.rms_in == 0):
        return []
    if share >= limit:
        return [fine("input_lost", share, f"head input differs between samples by {share:.2g} of its size")]
    place, said = _where_lost(facts, head)
    return [
        judged(
            "input_lost", "fault", share, limit,
            f"the head's input differs between samples by {share:.2g} of its size: the input is lost; {said}",
            where=place, certainty=beyond("input_lost"),
            advice="Mend that place: a normalisation over an axis of length 1, too many layers for their initial "
            "scale, or a path that does not use the input; He initialisation or residual blocks for depth.",
            code='nn.init.kaiming_normal_(layer.weight, nonlinearity="relu"); nn.init.zeros_(layer.bias)',
        )
    ]  # fmt: skip


def _same_samples(facts: Observed) -> bool:
    return facts.input_spread == 0.0


def _unconnected(facts: Observed) -> list[Finding]:
    """No contraction lies between input and prediction with a gradient: does the prediction depend on the input?"""
    found = facts.input_gradients
    known = [gradient for gradient in found if gradient is not None]
    if not found or not facts.forward.predicted.requires_grad or facts.forward.functions.uses:
        return []
    if not known and not facts.subject.trainable:
        facts.skip("input_lost", "operations without a gradient (quantised?)", "the model before quantisation")
        return []
    if any(bool((gradient != 0).any()) for gradient in known):
        return []
    return [
        Finding(
            "input_lost", "fault", Place(), 0.0, "the prediction does not depend on the input at all: its gradient "
            "by every input is zero or absent.", "Follow the input through the forward: it is replaced or detached.",
        )
    ]  # fmt: skip


def _where_lost(facts: Observed, head: WeightUse) -> tuple[Place, str]:
    """The contraction before which the share that depends on the sample falls by a thousand, or the steady fall."""
    shares = [
        (use, use.centred_in / use.rms_in) for use in facts.forward.functions.uses
        if use.centred_in is not None and use.rms_in > 0
    ]  # fmt: skip
    for (before, share), (use, later) in itertools.pairwise(shares):
        if share > 0 and later < 1e-3 * share:
            return _place(use), f"it falls by {later / share:.1g} between {_name(before)} and {_name(use)}."
    if len(shares) > 2 and shares[0][1] > 0:
        rate = (max(shares[-1][1], 1e-300) / shares[0][1]) ** (1 / (len(shares) - 1))
        return _place(shares[0][0]), f"it fades steadily, x {rate:.2g} per layer from {_name(shares[0][0])} on."
    return _place(head), f"seen at {_name(head)}."


def _name(use: WeightUse) -> str:
    return use.module or use.roots[0]


def _place(use: WeightUse) -> Place:
    return Place(_name(use), use.op, use.source)


def vanishing(facts: Observed) -> list[Finding]:
    """gV + cV < -4, or one of them < -3.5, or gV < -2.5 for tokens."""
    gradient, spread = depth_measures(facts)
    if gradient is None:
        facts.skip("depth", "no two weights in series with a gradient between them")
        return []
    both = [value for value in (gradient, spread) if value is not None]
    total, least = sum(both), min(both)
    one, low_sum = threshold("vanishing", "one"), threshold("vanishing", "sum")
    strong = least < one
    told = strong or (spread is not None and total < low_sum)
    if facts.tokens:
        told = told or gradient < threshold("vanishing", "tokens")
    if not told:
        return [fine("depth", gradient, f"depth: gradient x 10^{gradient:.2g} from head to first layers")]
    value = least if strong else total if spread is not None and total < low_sum else gradient
    limit = one if strong else low_sum if spread is not None and total < low_sum else threshold("vanishing", "tokens")
    return [
        judged(
            "vanishing", "fault" if strong else "warning", value, limit,
            f"from head to first layers the gradient changes by 10^{gradient:.2g}"
            + (f", the signal between samples by 10^{spread:.2g}" if spread is not None else "")
            + "; early layers hardly learn (worse under SGD than under Adam).",
            scale="decades", where=_first_place(facts), unit="decades", certainty=beyond("gradient_decades"),
            advice="He initialisation for ReLU, Xavier or orthogonal for tanh; residual blocks with normalisation.",
            code='nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")',
        )
    ]  # fmt: skip


def exploding(facts: Observed) -> list[Finding]:
    """gV + cV > 4 with both > 1; tokens: gV > 2.5 and a(head) > 10; or excess of the first loss > 3, a(head) > 5."""
    gradient, spread = depth_measures(facts)
    head = facts.forward.head
    if gradient is None or head is None:
        return []
    each, top = threshold("exploding", "each"), threshold("exploding", "sum")
    excess = facts.measures.get("initial_loss", 0.0)
    if spread is not None and gradient + spread > top and min(gradient, spread) > each:
        value, limit = gradient + spread, top
    elif (
        facts.tokens
        and gradient > threshold("exploding", "tokens")
        and head.rms_in > threshold("exploding", "tokens_rms")
    ):
        value, limit = gradient, threshold("exploding", "tokens")
    elif excess > threshold("exploding", "loss") and head.rms_in > threshold("exploding", "loss_rms"):
        value, limit = math.log10(head.rms_in), math.log10(threshold("exploding", "loss_rms"))
    else:
        return []
    count = max(len(facts.forward.once) - 1, 1)
    factor = 10 ** (max(spread or 0.0, math.log10(max(head.rms_in, 1e-30)), 0.0) / count)
    return [
        judged(
            "exploding", "fault", value, limit,
            f"signals grow on their way: the head's input has rms {head.rms_in:.3g}, the gradient changes by "
            f"10^{gradient:.2g} from head to first layers, about x {factor:.2g} per layer.",
            scale="decades", where=_first_place(facts), unit="decades", certainty=beyond("gradient_decades"),
            advice=f"Divide the weights by the growth per layer ({factor:.2g}), or add normalisation.",
            code=f"layer.weight.data.div_({factor:.3g})",
        )
    ]  # fmt: skip


def _first_place(facts: Observed) -> Place:
    uses = facts.forward.once
    return _place(uses[0]) if uses else Place()
