"""How parameters hang together: cut off, unused, frozen, nothing in between, a tie that broke."""

from __future__ import annotations

import torch
from torch import Tensor

from ...findings.finding import EXACT, Finding, Place
from ...findings.thresholds import threshold
from ...recording.graph import Graph
from ...recording.influence import without_influence
from ...recording.observed import Observed
from ..reporting import beyond, fine, judged, listed, module_of


def detached(facts: Observed) -> list[Finding]:
    """Trainable parameters that the forward uses and no output depends on."""
    cut = [
        name for name in facts.subject.trainable
        if name not in facts.reached and name in facts.forward.operations.touched
    ]  # fmt: skip
    if cut and facts.forward.predicted.requires_grad:  # a reentrant checkpoint hides its parameters from the graph
        cut = [name for name in cut if facts.gradients.get(name) is None]
    if not cut:
        return _forgotten(facts)
    idle = without_influence(facts.subject, cut)
    cut = [name for name in cut if name not in idle]
    if not cut:
        return [_idle(facts, idle)]
    if not facts.forward.predicted.requires_grad and len(cut) == len(facts.subject.trainable):
        said = "the output has no graph: nothing can be learned from it."
    else:
        said = f"{listed(cut)} take part in the forward and get no gradient: they are cut off from the output."
    events = facts.forward.functions.detached
    module, source = events[-1] if events else (module_of(cut[-1]), "")
    last = [use.module or use.roots[0] for use in facts.forward.functions.uses if use.gradient_out is not None]
    said += f" The gradient comes as far as {last[0]}." if last else ""
    return [
        Finding(
            "detached", "fault", Place(module, "detach" if events else cut[-1], source), float(len(cut)), said,
            "Remove detach(), .data, .item(), numpy() or no_grad() between them and the output.", unit="parameters",
            certainty=EXACT,
        )
    ]  # fmt: skip


def _idle(facts: Observed, idle: list[str]) -> Finding:
    """Parameters that take part, and whose values change nothing: nothing was cut, there is nothing to learn."""
    beside = all(any(module_of(other) == module_of(name) for other in facts.reached) for name in idle)
    said = "changing them changes no output."
    if beside:
        said += " The other parameters of their layers do (the bias of an energy that is differentiated?)."
    return Finding(
        "unused_parameters", "note" if beside else "warning", Place(module_of(idle[0]), idle[0]), float(len(idle)),
        f"{listed(idle)} take part in the forward, and {said}",
        "Use what they compute, or delete them; distributed training waits for their gradients.", unit="parameters",
    )  # fmt: skip


def _forgotten(facts: Observed) -> list[Finding]:
    """Parameters in the graph of what is differentiated whose gradient is None: a backward returns none for them."""
    empty = [name for name in facts.reached if name in facts.gradients and facts.gradients[name] is None]
    if not empty:
        return []
    if facts.loss is not None and not facts.subject.scalar(facts.forward.output).requires_grad:
        return [_loss_without_graph(facts)]
    inside = Graph([facts.subject.scalar(facts.forward.output)], facts.forward.graph.names)
    held = {inside.names.get(id(node.variable)) for node in inside.nodes if hasattr(node, "variable")}
    lost = [name for name in facts.subject.trainable if name in empty and name in held]
    if not lost:
        return _cut_before_loss(facts, [name for name in facts.subject.trainable if name in empty])
    return [
        Finding(
            "detached", "fault", Place(module_of(lost[0]), lost[0]), float(len(lost)),
            f"{listed(lost)} are in the graph of the output and get no gradient: a backward on the way returns None.",
            "Return a gradient for every input that needs one from the backward of your autograd.Function.",
            unit="parameters", certainty=EXACT,
        )
    ]  # fmt: skip


def _loss_without_graph(facts: Observed) -> Finding:
    return Finding(
        "detached", "fault", Place("loss"), float(len(facts.subject.trainable)),
        "the loss has no graph although the prediction has one: nothing can be learned from it.",
        "Remove detach(), .data, .item(), numpy(), argmax or no_grad() inside the loss.", unit="parameters",
        certainty=EXACT,
    )  # fmt: skip


def _cut_before_loss(facts: Observed, lost: list[str]) -> list[Finding]:
    """Parameters that some output depends on and the loss does not: a fault after a detachment, else a note."""
    if not lost or facts.loss is None:
        return []
    events, used = facts.forward.functions.detached, facts.subject.whole or facts.subject.own_loss
    said = f"{listed(lost)} reach an output, and the loss does not depend on them"
    if events and used:
        module, source = events[-1]
        return [
            Finding(
                "detached", "fault", Place(module, "detach", source), float(len(lost)),
                f"{said}: what it takes was cut off on the way.",
                "Remove detach(), .data, .item(), numpy() or no_grad() between them and the loss.",
                unit="parameters", certainty=EXACT,
            )
        ]  # fmt: skip
    return [
        Finding(
            "unused_parameters", "note", Place(module_of(lost[0]), lost[0]), float(len(lost)),
            f"{said}: it trains other parts.", "Add their output to the loss, or ignore this if it is meant.",
            unit="parameters", certainty=EXACT,
        )
    ]  # fmt: skip


def unused_parameters(facts: Observed) -> list[Finding]:
    """Trainable parameters that the forward does not touch; a note if a sibling of equal shape was used."""
    touched = facts.forward.operations.touched
    idle = [name for name in facts.subject.trainable if name not in facts.reached and name not in touched]
    idle = [name for name in idle if facts.subject.parameters[name].numel()]
    if not idle:
        unreached = [name for name in facts.subject.trainable if name not in facts.reached]
        return [] if unreached else [fine("all_reached", 0.0, "all parameters reach an output")]
    lonely = [name for name in idle if not _has_used_sibling(facts, name)]
    shown, severity = (lonely, "warning") if lonely else (idle, "note")
    said = f"{listed(shown)} are trainable and the forward does not use them."
    said += "" if lonely else " Others of equal shape beside them were used: experts or layers left out for this batch?"
    return [
        Finding(
            "unused_parameters", severity, Place(module_of(shown[0]), shown[0]), float(len(shown)), said,  # type: ignore[arg-type]
            "Delete them or use them; distributed training waits for their gradients.", unit="parameters",
        )
    ]  # fmt: skip


def _has_used_sibling(facts: Observed, name: str) -> bool:
    """Whether a parameter that differs in one part of its path, has the same shape, and was used."""
    parts, parameters = name.split("."), facts.subject.parameters
    for other, value in parameters.items():
        pieces = other.split(".")
        if len(pieces) == len(parts) and sum(a != b for a, b in zip(parts, pieces, strict=True)) == 1:
            beside = any(a != b for a, b in zip(parts[:-1], pieces[:-1], strict=True)) or parts[-1].isdigit()
            if beside and value.shape == parameters[name].shape and other in facts.forward.operations.touched:
                return True
    return False


def frozen_layer(facts: Observed) -> list[Finding]:
    """A frozen matrix that runs after a trainable one, if fewer than half are frozen and they are no whole part."""
    order = [name for name in facts.forward.operations.order if name in facts.matrices]
    frozen = [name for name in order if not facts.matrices[name].requires_grad]
    if not frozen or not facts.subject.trainable:
        return []
    weight_of = {name: facts.matrices[name].numel() for name in order}
    few = 2 * len(frozen) < len(order) and 2 * sum(weight_of[name] for name in frozen) < sum(weight_of.values())
    trainable_seen, late = False, []
    for name in order:
        if facts.matrices[name].requires_grad:
            trainable_seen = True
        elif trainable_seen and not _whole_part(facts, name):
            late.append(name)
    if not few or not late:
        return []
    return [
        Finding(
            "frozen_layer", "warning", Place(module_of(late[0]), late[0]), float(len(late)),
            f"{listed(late)} do not train although layers before and after do.",
            "Thaw them, or ignore this if it is meant.", "layer.weight.requires_grad_(True)", unit="matrices",
        )
    ]  # fmt: skip


def _whole_part(facts: Observed, name: str) -> bool:
    """Whether a frozen matrix belongs to a part of the model that has several matrices, all of them frozen."""
    part = module_of(name)
    while part:
        inside = [other for other in facts.matrices if other.startswith(part + ".")]
        if len(inside) > 1 and all(not facts.matrices[other].requires_grad for other in inside):
            return True
        part = module_of(part)
    return False


def missing_activation(facts: Observed) -> list[Finding]:
    """A product with W1 that enters a product with W2 through views, dropout, scaling and batch normalisation alone,
    is consumed by nothing else, is not grouped, and is not narrower than both ends."""
    uses = facts.forward.operations.uses
    found = []
    for pair in facts.forward.graph.adjoining():
        once = all(uses[name].count == 1 for name in (pair.first, pair.second) if name in uses)
        if once and pair.middle >= pair.narrow:
            found.append(
                Finding(
                    "missing_activation",
                    "warning",
                    Place(module_of(pair.second), pair.second),
                    float(pair.middle),
                    f"nothing but linear operations lies between {pair.first} and {pair.second}: together they are "
                    "one linear map.",
                    "Insert the activation, or merge the two layers.",
                    unit="numbers",
                )
            )
    return sorted(found, key=lambda finding: str(finding.where))


def broken_tie(facts: Observed) -> list[Finding]:
    """A table of embeddings and another matrix of equal shape and other memory: correlation of the centred entries."""
    worst, found = 0.0, []
    for name in sorted(facts.forward.operations.tables):
        table = facts.subject.parameters.get(name)
        if table is None or table.ndim != 2:
            continue
        for other, matrix in facts.matrices.items():
            if other == name or matrix.untyped_storage()._cdata == table.untyped_storage()._cdata:
                continue
            value = _correlation(table, matrix)
            worst = max(worst, abs(value))
            if value > threshold("broken_tie", "warning"):
                found.append(
                    judged(
                        "broken_tie",
                        "warning",
                        value,
                        threshold("broken_tie", "warning"),
                        f"{other} holds nearly the numbers of {name} in other memory: they were tied once and are "
                        "trained apart.",
                        scale="share",
                        where=Place(module_of(other), other),
                        advice="Tie them again after loading or moving.",
                        code=f"model.{other} = model.{name}",
                        certainty=beyond("broken_tie"),
                        unit="correlation",
                    )
                )
    facts.measures["broken_tie"] = worst
    return found


def _correlation(a: Tensor, b: Tensor) -> float:
    if a.shape != b.shape:
        b = b.T if b.ndim == 2 and b.T.shape == a.shape else b
    if a.shape != b.shape:
        return 0.0
    x, y = (part.detach().flatten().to(torch.float64) for part in (a, b))
    x, y = x - x.mean(), y - y.mean()
    size = float(x.norm() * y.norm())
    return float(x @ y) / size if size > 0 else 0.0
