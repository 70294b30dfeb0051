"""Attention, by the names its parts go by: query, key, value and output of each head.

The function of a head depends on queries and keys only through their product, and on values and output only through
theirs. So each head has two laws, ``W_Q W_Q^T - W_K W_K^T`` and ``W_O^T W_O - W_V W_V^T`` (biases appended). Rotary
position embeddings leave only the trace over dimensions rotated together; normalised queries and keys only norms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import final

from torch import nn

from .laws import Law, LayerPair
from .layers import Layer, describe_layer, join
from .rows import Part, RowView

_SPLIT_NAMES = (
    ("query", "key", "value"),
    ("q_proj", "k_proj", "v_proj"),
    ("to_q", "to_k", "to_v"),
    ("q_lin", "k_lin", "v_lin"),
    ("wq", "wk", "wv"),
)
_FUSED_NAMES = ("c_attn", "qkv", "qkv_proj", "in_proj", "query_key_value", "Wqkv")
_OUTPUT_NAMES = ("o_proj", "out_proj", "c_proj", "proj", "to_out", "out_lin", "wo", "dense")
_HEAD_NAMES = ("num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "nhead")
_GROUP_NAMES = ("num_key_value_heads", "n_kv_heads", "num_kv_heads")


@final
@dataclasses.dataclass(frozen=True)
class Side:
    """Where the units of queries, keys or values lie: from an offset in a weight's outputs and in its bias, if any."""

    weight: str
    bias: str | None
    axis: int
    offset: int
    bias_offset: int

    def head(self, index: int, dim: int) -> list[Part]:
        """The parts of one head."""
        parts = [Part(self.weight, self.axis, self.offset + index * dim, dim)]
        return [*parts, Part(self.bias, 0, self.bias_offset + index * dim, dim)] if self.bias else parts


@final
@dataclasses.dataclass(frozen=True)
class Attention:
    """One attention module taken apart."""

    name: str
    query: Side
    key: Side
    value: Side
    output: Layer
    n_heads: int
    n_groups: int
    head_dim: int
    rotation: str
    normalised: bool


def attention_pairs(model: nn.Module, rotary: str) -> tuple[list[LayerPair], set[str], dict[str, str]]:
    """Pairs of all recognised attention modules.

    Args:
        model: any model.
        rotary: ``"auto"``, ``"none"``, ``"half"`` (units i and i + d/2 rotate together) or ``"interleaved"``.

    Returns:
        The pairs, the names of modules they cover, and reasons for modules that look like attention but were left.
    """
    pairs: list[LayerPair] = []
    covered: set[str] = set()
    reasons: dict[str, str] = {}
    modules = dict(model.named_modules())
    for name, module in modules.items():
        found = _recognise(name, module, modules, rotary)
        if isinstance(found, str):
            reasons[name] = found
        elif found is not None:
            pairs += list(_pairs(found))
            covered |= _covered(found)
    return pairs, covered, reasons


def _covered(found: Attention) -> set[str]:
    parameters = (found.query.weight, found.key.weight, found.value.weight)
    return {found.name, found.output.name, *(parameter.rpartition(".")[0] for parameter in parameters)}


def _recognise(name: str, module: nn.Module, modules: dict[str, nn.Module], rotary: str) -> Attention | str | None:
    if isinstance(module, nn.MultiheadAttention):
        return _torch_attention(name, module)
    sides = _split_sides(name, module) or _fused_sides(name, module)
    if sides is None:
        return None
    output = _output_layer(name, module, modules)
    n_heads = _number(module, _HEAD_NAMES)
    if output is None:
        return "looks like attention, but its output layer was not found: name the pair explicitly"
    if n_heads is None:
        return "looks like attention, but its number of heads was not found: set module.num_heads"
    query, key, value, width = sides
    head_dim = int(getattr(module, "head_dim", 0) or width // n_heads)
    n_groups = _number(module, _GROUP_NAMES) or n_heads
    if head_dim * n_heads != output.n_in or n_heads % n_groups:
        return f"looks like attention, but {n_heads} heads of size {head_dim} do not fill {output.n_in} inputs"
    kind = _rotation(name, modules, rotary)
    normalised = any(getattr(module, f"{part}_norm", None) is not None for part in ("q", "query", "qk"))
    return Attention(name, query, key, value, output, n_heads, n_groups, head_dim, kind, normalised)


def _torch_attention(name: str, module: nn.MultiheadAttention) -> Attention | str:
    if module.bias_k is not None or module.add_zero_attn:
        return "extra keys and values (add_bias_kv, add_zero_attn) are not covered"
    bias = join(name, "in_proj_bias") if module.in_proj_bias is not None else None
    dim = module.embed_dim
    if module._qkv_same_embed_dim:
        fused = join(name, "in_proj_weight")
        sides = [Side(fused, bias, 0, index * dim, index * dim) for index in range(3)]
    else:
        sides = [Side(join(name, f"{part}_proj_weight"), bias, 0, 0, index * dim) for index, part in enumerate("qkv")]
    output = describe_layer(join(name, "out_proj"), module.out_proj)
    assert output is not None
    heads = module.num_heads
    query, key, value = sides
    return Attention(name, query, key, value, output, heads, heads, dim // heads, "", False)


def _split_sides(name: str, module: nn.Module) -> tuple[Side, Side, Side, int] | None:
    for names in _SPLIT_NAMES:
        layers = [describe_layer(join(name, part), getattr(module, part, None)) for part in names]
        if all(layer is not None for layer in layers):
            query, key, value = (_side(layer, 0) for layer in layers if layer is not None)
            return query, key, value, layers[0].n_out  # type: ignore[union-attr]
    return None


def _fused_sides(name: str, module: nn.Module) -> tuple[Side, Side, Side, int] | None:
    for part in _FUSED_NAMES:
        layer = describe_layer(join(name, part), getattr(module, part, None))
        if layer is not None and layer.n_out == 3 * layer.n_in:
            width = layer.n_in
            query, key, value = (_side(layer, index * width) for index in range(3))
            return query, key, value, width
    return None


def _side(layer: Layer, offset: int) -> Side:
    return Side(layer.weight, layer.bias if layer.has_bias else None, layer.out_axis, offset, offset)


def _output_layer(name: str, module: nn.Module, modules: dict[str, nn.Module]) -> Layer | None:
    """The output projection: a child of the module, or ``output.dense`` beside it as in BERT."""
    candidates = [join(name, part) for part in _OUTPUT_NAMES]
    candidates += [join(name, "to_out.0"), join(name.rpartition(".")[0], "output.dense")]
    for candidate in candidates:
        layer = describe_layer(candidate, modules[candidate]) if candidate in modules else None
        if layer is not None:
            return layer
    return None


def _number(module: nn.Module, names: tuple[str, ...]) -> int | None:
    for owner in (module, getattr(module, "config", None)):
        for name in names:
            value = getattr(owner, name, None)
            if isinstance(value, int) and value > 0:
                return value
    return None


def _rotation(name: str, modules: dict[str, nn.Module], rotary: str) -> str:
    """The kind of rotary embedding: given, or ``half`` if the module or one that holds it has a rotary part."""
    if rotary != "auto":
        return "" if rotary == "none" else rotary
    holders = [name.rsplit(".", depth)[0] for depth in range(1, name.count(".") + 1)] + [""]
    for holder in [name, *holders]:
        module = modules[holder]
        parts = {part for part, _ in module.named_children()} | set(vars(module))
        config = getattr(module, "config", None)
        if any("rotary" in part.lower() or "rope" in part.lower() for part in parts) or hasattr(config, "rope_theta"):
            return "half"
    return ""


def _pairs(found: Attention) -> Iterator[LayerPair]:
    share = found.n_heads // found.n_groups  # several query heads may read one key-value head
    for group in range(found.n_groups):
        label = f"{found.name or 'attention'} head {group}" + (f" (x{share})" if share > 1 else "")
        heads = range(group * share, (group + 1) * share)
        queries = RowView(tuple(part for head in heads for part in found.query.head(head, found.head_dim)))
        keys = RowView(tuple(found.key.head(group, found.head_dim)))
        values = RowView(tuple(found.value.head(group, found.head_dim)))
        output = RowView(
            tuple(
                Part(found.output.weight, found.output.in_axis, head * found.head_dim, found.head_dim) for head in heads
            )
        )
        yield from _query_key(found, label, queries, keys)
        yield LayerPair(f"{label} V -> O", values, output, Law.FULL, "attention weights")


def _query_key(found: Attention, label: str, queries: RowView, keys: RowView) -> Iterator[LayerPair]:
    if found.normalised:
        for letter, rows in (("Q", queries), ("K", keys)):
            condition = "holds up to the norm's own eps"
            yield LayerPair(f"{label} {letter}", None, rows, Law.NORM, "query-key norm", condition=condition)
        return
    law = Law.ROTATION_PAIRS if found.rotation else Law.FULL
    between = "rotary embedding - softmax" if found.rotation else "softmax"
    yield LayerPair(f"{label} K -> Q", keys, queries, law, between, rotation=found.rotation)
