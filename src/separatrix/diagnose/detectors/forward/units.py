"""Units that never switch on, that are saturated, that are copies of each other."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.core import stream_seed

from ...findings.finding import Finding, Place
from ...findings.thresholds import threshold
from ...recording.observed import Observed
from ..reporting import beyond, fine, judged, module_of, softened

_TRAINED = "The loss says the model is trained: one level milder."


def dead_units(facts: Observed) -> list[Finding]:
    """Per rectification: the share of units that are off for all samples and positions, of those with >= 16 values."""
    fault, note = threshold("dead_units", "fault"), threshold("dead_units", "note")
    found, worst = [], 0.0
    for key, unit in facts.forward.operations.units.rectified.items():
        if unit.values < threshold("dead_units", "values") or unit.on.numel() < 2:
            continue
        worst = max(worst, unit.dead)
        if unit.dead < note:
            continue
        op, module, weights = key[:3]
        finding = judged(
            "dead_units", "fault" if unit.dead >= fault else "note", unit.dead, fault if unit.dead >= fault else note,
            f"{unit.dead:.0%} of the {unit.on.numel()} units after {weights[0] if weights else module or op} are off "
            f"on all {unit.values} values: no gradient reaches what feeds them.",
            scale="share", where=Place(module or (module_of(weights[0]) if weights else ""), op),
            certainty=beyond("dead_units"), unit="share",
            advice="Start with bias 0 and He initialisation, lower the learning rate, or use a leaky rectifier.",
            code="nn.init.zeros_(layer.bias)",
        )  # fmt: skip
        found.append(softened(finding, _TRAINED) if facts.trained else finding)
    facts.measures["dead_units"] = worst
    return found or ([fine("dead_units", worst, f"dead units at most {worst:.0%}")] if worst else [])


def saturated(facts: Observed) -> list[Finding]:
    """Share of |tanh| > 0.98, or of sigmoid outside (0.01, 0.99), per operation."""
    warning, fault = threshold("saturated", "warning"), threshold("saturated", "fault")
    found, worst = [], 0.0
    address = facts.forward.predicted.data_ptr()
    for (op, module, weights), unit in facts.forward.operations.units.squashed.items():
        if unit.last_address == address:
            continue  # the output itself may be sure of what it says
        worst = max(worst, unit.share)
        if unit.share <= warning:
            continue
        strong = unit.share > fault
        finding = judged(
            "saturated", "fault" if strong else "warning", unit.share, fault if strong else warning,
            f"{unit.share:.0%} of the values of {op} after {weights[0] if weights else module or 'the input'} lie in "
            "its flat ends: gradients through them vanish.",
            scale="share", where=Place(module or (module_of(weights[0]) if weights else ""), op), unit="share",
            certainty=beyond("saturated"),
            advice="Scale the weights or inputs before it down, by about 3 to begin with.",
            code="layer.weight.data.div_(3)",
        )  # fmt: skip
        found.append(softened(finding, _TRAINED) if facts.trained else finding)
    facts.measures["saturated"] = worst
    return found or ([fine("saturated", worst, f"saturated values at most {worst:.1%}")] if worst else [])


def symmetric_units(facts: Observed) -> list[Finding]:
    """Share of rows with a twin: W_i = W_j and dL/dW_i = dL/dW_j to 1e-5, by two random projections, sorted.

    Rows without a gradient are left out, unless all rows are equal, not zero, and none has a gradient. Cost: linear in
    the number of weights; no table of rows by rows.
    """
    limit, found = threshold("symmetric_units", "fault"), []
    for name, weight in facts.matrices.items():
        gradient = facts.gradients.get(name)
        if gradient is None or gradient.is_sparse:
            continue
        sides = [(weight.detach().flatten(1), gradient.flatten(1))]
        if weight.ndim == 2 and weight.shape[1] > 1:
            sides.append((weight.detach().T, gradient.T))
        share = max(_twins(*side, facts.subject.seed) for side in sides)
        facts.measures["symmetric_units"] = max(share, facts.measures.get("symmetric_units", 0.0))
        if share > limit:
            found.append(
                judged(
                    "symmetric_units",
                    "fault",
                    share,
                    limit,
                    f"{share:.0%} of the units of {name} have a twin with equal weights and equal gradients: they "
                    "stay copies of each other whatever the training.",
                    where=Place(module_of(name), name),
                    unit="share",
                    advice="Initialise this layer at random.",
                    code="nn.init.kaiming_uniform_(layer.weight)",
                    scale="share",
                )
            )
    return found


def _twins(weight: Tensor, gradient: Tensor, seed: int) -> float:
    """Share of rows with a twin among the rows that have a gradient."""
    if weight.shape[0] < 2 or not torch.isfinite(weight).all() or not torch.isfinite(gradient).all():
        return 0.0
    generator = torch.Generator().manual_seed(stream_seed(seed, "check", "rows"))
    lots = torch.randn(weight.shape[1], 2, generator=generator, dtype=torch.float64).to(weight.device)
    w, g = weight.double() @ lots, gradient.double() @ lots
    active = (gradient != 0).any(1)
    if not bool(active.any()):
        first = weight[0]
        return 1.0 if bool((first != 0).any()) and bool((weight == first).all()) else 0.0
    if int(active.sum()) < 2:
        return 0.0
    w, g = w[active], g[active]
    near = threshold("symmetric_units", "relative")
    step = w.square().mean().sqrt() * near
    coarse = (w[:, 0] / step).round() if float(step) > 0 else torch.zeros_like(w[:, 0])
    order = g[:, 0].argsort(stable=True)
    order = order[coarse[order].argsort(stable=True)]
    w, g = w[order], g[order]
    size = torch.maximum(g[1:].abs(), g[:-1].abs()).amax(1, keepdim=True)
    equal = ((w[1:] - w[:-1]).abs() <= step).all(1) & ((g[1:] - g[:-1]).abs() <= near * size).all(1)
    twins = torch.zeros(len(w), dtype=torch.bool, device=w.device)
    twins[1:] |= equal
    twins[:-1] |= equal
    return float(twins.double().mean())
