"""From one layer to the next along the graph: the law of the pair, or the reason there is none."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import final

from torch import nn

from .graph import SHAPE_ONLY, Graph, Op
from .homogeneity import Effect, passage
from .laws import Law, LayerPair
from .layers import Layer, describe_layer, join
from .rows import RowView, whole

Found = tuple[list[LayerPair], dict[str, str]]
"""Pairs, and for layers from which no pair starts the reason."""

_TRAINING = "holds in training mode (statistics of the batch)"
_EPSILON = "holds up to the norm's own eps"


@final
@dataclasses.dataclass
class _Walk:
    """What was met so far on the way from a layer: names, homogeneity, what broke it.

    ``channels_first`` says that positions follow the units (images), so that pooling and flattening go over positions;
    in other networks the units are the last axis, and the same operations would mix them.
    """

    names: list[str]
    channels_first: bool
    degree: float = 1.0
    linear: bool = True
    broken: str = ""
    flattened: bool = False

    def between(self) -> str:
        return " - ".join(self.names) if self.names else "nothing"


def pairs_of_graph(graph: Graph, modules: Mapping[str, nn.Module], irregular: Mapping[str, str]) -> Found:
    """Every pair of layers that face each other in the graph.

    Args:
        graph: operations of the model.
        modules: modules by full name.
        irregular: parameters that no law covers (shared, parametrised, used outside their layer), with the reason.
    """
    pairs: list[LayerPair] = []
    reasons: dict[str, str] = {}
    for op in graph.ops:
        source = _rows_of(op, modules)
        if source is None or op.module is None:
            continue
        found = _follow(op, source, modules)
        if isinstance(found, str):
            reasons.setdefault(op.module, found)
        else:
            pairs += [without_irregular(pair, irregular) for pair in found]
    return pairs, reasons


def _rows_of(op: Op, modules: Mapping[str, nn.Module]) -> RowView | None:
    """The rows that an operation puts out: a layer's output units, or the gains and shifts of a norm."""
    if op.module is None or op.module not in modules:
        return None
    module = modules[op.module]
    layer = describe_layer(op.module, module)
    if layer is not None:
        return layer.outgoing()
    weight = getattr(module, "weight", None)
    if passage(op.name).effect is Effect.NORMALISES and weight is not None and weight.ndim == 1:
        parts = [whole(join(op.module, "weight"), 0, weight.numel())]
        if getattr(module, "bias", None) is not None:
            parts.append(whole(join(op.module, "bias"), 0, weight.numel()))
        return RowView(tuple(parts))
    return None


def _follow(start: Op, rows: RowView, modules: Mapping[str, nn.Module]) -> list[LayerPair] | str:
    """Walk from ``start`` to the next layer or norm."""
    first = describe_layer(start.module or "", modules[start.module or ""])
    channels_first = first.is_conv if first is not None else start.name.startswith(("batchnorm", "instancenorm"))
    walk, op = _Walk([], channels_first), start
    if first is None or first.groups > 1:  # gains act unit by unit; a grouped convolution mixes only inside groups
        walk.linear = False
    while True:
        users = [user for user in op.users if user.name not in SHAPE_ONLY]
        if not users or users[0].name == "output":
            return "its output is not read by another layer that could be traced"
        if len(users) > 1:
            return "its output is used in more than one place (a residual or parallel branch)"
        previous, op = op, users[0]
        target = describe_layer(op.module, modules[op.module]) if op.module in modules and op.module else None
        if target is not None:
            return _close(start, rows, target, walk)
        effect = passage(op.name, op.constants).effect
        if effect is Effect.NORMALISES:
            return _close_at_norm(start, rows, op, walk, first)
        problem = _step(walk, op, previous)
        if problem:
            return problem


def _step(walk: _Walk, op: Op, previous: Op) -> str | None:
    """Take one operation into the walk; a sentence if it ends there."""
    step = passage(op.name, op.constants)
    tensors = op.inputs
    walk.names.append(op.name)
    if op.name in ("mul", "div", "truediv") and len(tensors) == 2:
        if tensors[0] is tensors[1] and op.name == "mul":
            walk.degree, walk.linear = 2 * walk.degree, False
            return None
        if tensors[0] is not previous and op.name != "mul":
            return "its output divides something"
        walk.linear = False  # multiplied unit by unit with another branch: a gate
        return None
    if op.name in ("add", "sub") and len(tensors) == 2:
        return "its output enters an addition (a residual connection): no law goes across it"
    if op.name == "mean" and _mean_keeps_units(op, walk):
        return None
    if "pool" in op.name and not walk.channels_first:
        return f"its output passes through {op.name!r}, which pools over units here"
    if step.effect is Effect.FLATTENS:
        walk.flattened = True
    elif step.effect is Effect.HOMOGENEOUS:
        walk.degree, walk.linear = walk.degree * step.degree, False
    elif step.effect is Effect.BREAKS:
        walk.broken, walk.linear = op.name, False
    elif step.effect is not Effect.LINEAR:
        return f"its output passes through {op.name!r}, whose effect on the law is not known"
    return None


def _mean_keeps_units(op: Op, walk: _Walk) -> bool:
    """Whether a mean runs over positions only, not over the units."""
    axes = {axis for value in op.constants for axis in (value if isinstance(value, list | tuple) else [value])}
    allowed = {2, 3, 4, -1, -2, -3} if walk.channels_first else {-2}
    return bool(axes) and all(not isinstance(axis, bool) and axis in allowed for axis in axes)


def _close(start: Op, rows: RowView, target: Layer, walk: _Walk) -> list[LayerPair] | str:
    """The pair of a start and the layer that was reached."""
    n_hidden = rows.n_rows
    in_blocks = walk.flattened and walk.channels_first and target.n_in % n_hidden == 0
    fits = target.n_in == n_hidden or in_blocks
    if not fits or target.groups > 1:
        return f"its {n_hidden} units do not enter {target.name!r} one by one ({target.n_in} inputs)"
    law = Law.NOTHING if walk.broken else Law.FULL if walk.linear else Law.DIAGONAL
    return [
        LayerPair(
            name=f"{start.module} -> {target.name}",
            first=rows,
            second=target.incoming(n_hidden),
            law=law,
            between=walk.between(),
            degree=walk.degree,
            reason=f"{walk.broken} is not homogeneous" if walk.broken else "",
        )
    ]


def _close_at_norm(start: Op, rows: RowView, norm: Op, walk: _Walk, first: Layer | None) -> list[LayerPair] | str:
    """The law of a layer that is normalised: its scale, alone."""
    if first is None:
        return f"one norm follows another ({norm.module or norm.name})"
    per_neuron = norm.name.startswith(("batchnorm", "instancenorm"))
    if walk.broken:
        return f"{walk.broken} stands between it and its norm"
    if per_neuron and not walk.names:  # the norm removes the bias: only the weights count
        rows = RowView(tuple(part for part in rows.parts if part.parameter != first.bias))
    return [
        LayerPair(
            name=f"{start.module} -> {norm.module or norm.name}",
            first=None,
            second=rows,
            law=Law.NORM_PER_NEURON if per_neuron else Law.NORM,
            between=walk.between(),
            condition=_TRAINING if norm.name.startswith("batchnorm") else _EPSILON,
            of_batch=norm.name.startswith("batchnorm"),
        )
    ]


def without_irregular(pair: LayerPair, irregular: Mapping[str, str]) -> LayerPair:
    """The same pair with the law ``NOTHING`` if one of its parameters is shared or changed by something else."""
    for parameter in pair.parameters:
        if parameter in irregular:
            return dataclasses.replace(pair, law=Law.NOTHING, reason=f"{parameter} {irregular[parameter]}")
    return pair
