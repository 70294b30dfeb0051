"""From the tensors of a layer to its heads: how joint projections are cut, and what is folded into them."""

from __future__ import annotations

import dataclasses

from torch import Tensor

from separatrix.core import InvalidInput

from .layer import AttentionLayer, Normaliser
from .tensors import LayerFacts, Linear, Tensors, Unreadable


def assemble(
    prefix: str,
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    facts: LayerFacts,
    *,
    causal: bool | None,
    scale: float | None = None,
) -> AttentionLayer:
    """Cut the projections into heads; grouped keys and values are repeated for the queries that share them."""
    name = prefix.rstrip(".")
    heads, width = facts.heads(prefix), query[0].shape[0]
    if width % heads:
        raise InvalidInput(f"n_heads must divide the {width} rows of the queries of {name}; got {heads}.")
    size = width // heads
    if key[0].shape != value[0].shape or key[0].shape[0] % size or heads % (key[0].shape[0] // size):
        raise Unreadable(f"keys {tuple(key[0].shape)} and values {tuple(value[0].shape)} do not fit {heads} heads")
    if query[0].shape[1] != key[0].shape[1] or output[0].shape != (query[0].shape[1], width):
        raise Unreadable("queries, keys, values and output are not of one width")
    for part, projection in {"query": query, "key": key, "value": value, "output": output}.items():
        require_bias(projection, f"the {part}")
    shared = heads // (key[0].shape[0] // size)
    return AttentionLayer(
        name=name,
        query=query[0].unflatten(0, (heads, size)),
        key=key[0].unflatten(0, (-1, size)).repeat_interleave(shared, dim=0),
        value=value[0].unflatten(0, (-1, size)).repeat_interleave(shared, dim=0),
        output=output[0].unflatten(1, (heads, size)).movedim(1, 0),
        query_bias=None if query[1] is None else query[1].unflatten(0, (heads, size)),
        value_bias=None if value[1] is None else value[1].unflatten(0, (-1, size)).repeat_interleave(shared, dim=0),
        output_bias=output[1],
        scale=scale,
        causal=facts.is_causal(causal, name or "the layer"),
    )


def through(
    layer: AttentionLayer,
    tensors: Tensors,
    block: str,
    names: tuple[str, ...],
    facts: LayerFacts,
    *,
    centred: bool | None,
) -> AttentionLayer:
    """A layer that reads the stream through a norm: folded, so that the flow moves normalised tokens.

    ``centred`` says what a norm without bias is in this layout: a layer norm, one by the root mean square, or unknown.
    """
    found = tensors.first(*(f"{block}{name}" for name in names))
    if found is None or facts.norm == "keep":
        return layer
    if centred is None and found not in facts.norms and f"{found}.bias" not in tensors:
        raise Unreadable(f"{found} has no bias, and names do not tell whether it centres tokens; pass norm='keep'")
    norm: Normaliser | None = tensors.norm(found, facts, centred=bool(centred))
    if norm is None:
        return layer
    if len(norm.gain) != layer.dim:
        raise Unreadable(f"{found} has {len(norm.gain)} gains for tokens of {layer.dim} entries")
    return layer.folded(norm, "normalised token, before gain and bias of the norm the layer reads through")


def layer_scale(tensors: Tensors, block: str, layer: AttentionLayer) -> AttentionLayer:
    """What the block multiplies the output of attention by, coordinate by coordinate (LayerScale)."""
    names = [name for name in (f"{block}ls1.gamma", f"{block}layer_scale1.lambda1") if name in tensors]
    if not names:
        return layer
    gain = tensors.get(names[0])
    bias = None if layer.output_bias is None else gain * layer.output_bias
    return dataclasses.replace(layer, output=gain[:, None] * layer.output, output_bias=bias)


def by_path(prefix: str) -> bool | None:
    """What the path says: a decoder hides the future, an encoder does not; None if it has neither or both."""
    parts = prefix.lower().split(".")
    decodes, encodes = (any(part.startswith(word) for part in parts) for word in ("decoder", "encoder"))
    sees_images = any(part.startswith("vision") for part in parts)
    if "text_model" in parts:  # CLIP's is causal, SigLIP's is not
        return None
    return False if sees_images else None if decodes == encodes else decodes


def parent(prefix: str) -> str:
    """The prefix of what holds the layer."""
    head = prefix.rstrip(".").rpartition(".")[0]
    return f"{head}." if head else ""


def thirds(joint: Linear, name: str) -> list[Linear]:
    """All queries, all keys, all values."""
    weight, bias = joint
    if weight.ndim != 2 or weight.shape[0] != 3 * weight.shape[1]:
        raise Unreadable(f"{name} must hold queries, keys and values of one width; got shape {tuple(weight.shape)}")
    require_bias(joint, name)
    biases = [None] * 3 if bias is None else list(bias.chunk(3))
    return list(zip(weight.chunk(3), biases, strict=True))


def queries_then_shared(joint: Linear, width: int, name: str) -> list[Linear]:
    """All queries, then keys and values of fewer heads."""
    weight, bias = joint
    rest, odd = divmod(weight.shape[0] - width, 2)
    if odd or rest < 1:
        raise Unreadable(f"{name} {tuple(weight.shape)} is too short for queries of {width} rows, keys and values")
    require_bias(joint, name)
    biases = [None] * 3 if bias is None else list(bias.split((width, rest, rest)))
    return list(zip(weight.split((width, rest, rest)), biases, strict=True))


def require_bias(projection: Linear, name: str) -> None:
    """Refuse a bias that has not one entry per row of its weight."""
    weight, bias = projection
    if bias is not None and len(bias) != weight.shape[0]:
        raise Unreadable(f"the bias of {name} has {len(bias)} entries for {weight.shape[0]} rows")


def by_head(joint: Linear, groups: int, queries: int) -> list[Linear]:
    """Rows grouped as (queries of the group, its key, its value), each of a head's size."""
    require_bias(joint, "queries, keys and values")
    parts: list[list[Tensor | None]] = []
    for tensor in joint:
        if tensor is None:
            parts.append([None] * 3)
            continue
        rows = tensor.unflatten(0, (groups, queries + 2, -1))
        parts.append(
            [rows[:, :queries].flatten(0, 2), rows[:, queries].flatten(0, 1), rows[:, queries + 1].flatten(0, 1)]
        )
    return [(weight, bias) for weight, bias in zip(*parts, strict=True) if weight is not None]
