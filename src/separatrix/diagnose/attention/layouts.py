"""Attention layers out of state dicts: where BERT, GPT-2, Llama and torch keep their projections.

Every layout is found by the names of its tensors. What looks like attention but cannot be read exactly is named with
the reason.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, final

import torch
from torch import Tensor

from separatrix.core import InvalidInput

from .layer import AttentionLayer, Normaliser

State: TypeAlias = Mapping[str, Tensor]


class Unreadable(Exception):
    """A layer that cannot be read exactly; the message is the reason."""


@final
@dataclasses.dataclass(frozen=True)
class LayerFacts:
    """What a state dict does not tell."""

    n_heads: int | None = None
    causal: bool | None = None
    norm: str = "auto"
    pre_norm: bool | None = None
    """Whether a torch encoder layer normalises before attention; None if unknown."""


@final
@dataclasses.dataclass(frozen=True)
class Layout:
    """A family of names: the tensor that marks a layer, and how to read the layer from its prefix."""

    name: str
    mark: re.Pattern[str]
    read: Callable[[State, str, LayerFacts], AttentionLayer]


def read_state(state: State, facts: LayerFacts) -> tuple[list[AttentionLayer], dict[str, str]]:
    """All layers of a state dict in the order of their numbers, and those skipped with the reason."""
    layers, skipped = [], {}
    for name in sorted(state, key=_natural):
        for layout in LAYOUTS:
            match = layout.mark.fullmatch(name)
            if match is None:
                continue
            try:
                layers.append(layout.read(state, match["prefix"], facts))
            except Unreadable as reason:
                skipped[match["prefix"].rstrip(".") or name] = str(reason)
            break
        else:
            if _FOREIGN.search(name):
                skipped[name] = "names of this layout are not known"
    return layers, skipped


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _bert(state: State, prefix: str, facts: LayerFacts) -> AttentionLayer:
    q, k, v = (_linear(state, f"{prefix}self.{part}") for part in ("query", "key", "value"))
    layer = _assemble(prefix.rstrip("."), q, k, v, _linear(state, f"{prefix}output.dense"), facts, causal=False)
    return dataclasses.replace(
        layer,
        variable="residual stream, with the gain and bias of the norm before it",
        writes_through=_norm(state, f"{prefix}output.LayerNorm"),
    )


def _gpt2(state: State, prefix: str, facts: LayerFacts) -> AttentionLayer:
    joint, bias = _get(state, f"{prefix}c_attn.weight").mT, state.get(f"{prefix}c_attn.bias")
    if joint.shape[0] != 3 * joint.shape[1]:
        raise Unreadable(f"c_attn must have shape (d, 3 d); got {tuple(joint.mT.shape)}")
    q, k, v = _thirds(joint, bias)
    weight, out_bias = _linear(state, f"{prefix}c_proj")
    layer = _assemble(prefix.rstrip("."), q, k, v, (weight.mT, out_bias), facts, causal=True)
    return _through(layer, _norm(state, f"{_parent(prefix)}ln_1"), facts)


def _projections(state: State, prefix: str, facts: LayerFacts) -> AttentionLayer:
    q, k, v = (_linear(state, f"{prefix}{part}_proj") for part in "qkv")
    out = next((name for name in ("o_proj", "out_proj", "dense") if f"{prefix}{name}.weight" in state), "o_proj")
    layer = _assemble(prefix.rstrip("."), q, k, v, _linear(state, f"{prefix}{out}"), facts, causal=out == "o_proj")
    note = "couplings are those of tokens at one place: position enters by rotation if the model has rotary embeddings"
    layer = dataclasses.replace(layer, note=note if out == "o_proj" else "")
    return _through(layer, _norm(state, f"{_parent(prefix)}input_layernorm"), facts)


def _torch(state: State, prefix: str, facts: LayerFacts) -> AttentionLayer:
    if f"{prefix}bias_k" in state:
        raise Unreadable("it appends a learned key to the tokens (add_bias_kv), which a flow of tokens cannot hold")
    q, k, v = _thirds(_get(state, f"{prefix}in_proj_weight"), state.get(f"{prefix}in_proj_bias"))
    layer = _assemble(prefix.rstrip("."), q, k, v, _linear(state, f"{prefix}out_proj"), facts, causal=False)
    norm = _norm(state, f"{_parent(prefix)}norm1")
    if facts.pre_norm:
        return _through(layer, norm, facts)
    if facts.pre_norm is False:
        return dataclasses.replace(layer, writes_through=norm)
    return layer


_NOT_ONE_WIDTH = "queries, keys and values must come from tokens of one width; this layer has kdim or vdim of its own"


def _torch_apart(state: State, prefix: str, facts: LayerFacts) -> AttentionLayer:
    raise Unreadable(_NOT_ONE_WIDTH)


LAYOUTS = (
    Layout("BERT", re.compile(r"(?P<prefix>(?:.*\.)?attention\.)self\.query\.weight"), _bert),
    Layout("GPT-2", re.compile(r"(?P<prefix>(?:.*\.)?)c_attn\.weight"), _gpt2),
    Layout("separate projections", re.compile(r"(?P<prefix>(?:.*\.)?)q_proj\.weight"), _projections),
    Layout("torch", re.compile(r"(?P<prefix>(?:.*\.)?)in_proj_weight"), _torch),
    Layout("torch, other widths", re.compile(r"(?P<prefix>(?:.*\.)?)q_proj_weight"), _torch_apart),
)
_FOREIGN = re.compile(r"(q_lin|query_key_value|qkv|Wqkv|qkv_proj|to_q)\.weight$")


def _assemble(
    name: str,
    query: tuple[Tensor, Tensor | None],
    key: tuple[Tensor, Tensor | None],
    value: tuple[Tensor, Tensor | None],
    output: tuple[Tensor, Tensor | None],
    facts: LayerFacts,
    *,
    causal: bool,
) -> AttentionLayer:
    """Cut the projections into heads; grouped keys and values are repeated for the queries that share them."""
    if facts.n_heads is None:
        raise InvalidInput(f"n_heads must be given: the tensors of {name} do not tell the number of heads.")
    heads, width = facts.n_heads, query[0].shape[0]
    if width % heads:
        raise InvalidInput(f"n_heads must divide the {width} rows of the queries of {name}; got {heads}.")
    size = width // heads
    if key[0].shape != value[0].shape or key[0].shape[0] % size or heads % (key[0].shape[0] // size):
        raise Unreadable(f"keys {tuple(key[0].shape)} and values {tuple(value[0].shape)} do not fit {heads} heads")
    if query[0].shape[1] != key[0].shape[1] or output[0].shape != (query[0].shape[1], width):
        raise Unreadable("queries, keys, values and output are not of one width")
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
        causal=causal if facts.causal is None else facts.causal,
    )


def _through(layer: AttentionLayer, norm: Normaliser | None, facts: LayerFacts) -> AttentionLayer:
    """A layer that reads the stream through a norm: folded, so that the flow moves normalised tokens."""
    if norm is None or facts.norm == "keep":
        return layer
    return layer.folded(norm, "normalised token, before gain and bias of the norm the layer reads through")


def _parent(prefix: str) -> str:
    head = prefix.rstrip(".").rpartition(".")[0]
    return f"{head}." if head else ""


def _get(state: State, name: str) -> Tensor:
    if name not in state:
        raise Unreadable(f"{name} is missing")
    return _plain(state[name], name)


def _plain(tensor: Tensor, name: str) -> Tensor:
    if not tensor.is_floating_point():
        raise Unreadable(f"{name} has dtype {tensor.dtype}; quantised weights must be converted to floats first")
    if not bool(torch.isfinite(tensor).all()):
        raise InvalidInput(f"{name} must be finite; it holds NaN or infinity.")
    return tensor.detach().to(device="cpu", dtype=torch.float64)


def _linear(state: State, name: str) -> tuple[Tensor, Tensor | None]:
    bias = f"{name}.bias"
    return _get(state, f"{name}.weight"), _get(state, bias) if state.get(bias) is not None else None


def _thirds(joint: Tensor, bias: Tensor | None) -> list[tuple[Tensor, Tensor | None]]:
    biases = [None] * 3 if bias is None else list(_plain(bias, "bias").chunk(3))
    return list(zip(joint.chunk(3), biases, strict=True))


def _norm(state: State, name: str) -> Normaliser | None:
    if f"{name}.weight" not in state:
        return None
    gain, bias = _linear(state, name)
    return Normaliser(gain, bias, centred=bias is not None)
