"""Attention layers out of state dicts: where known models keep their projections.

A layout is found by the names of its tensors and confirmed by their shapes. A layer with tensors that its reader does
not know (a norm of the queries, a table of biases, an adapter) is not read: what looks like attention but cannot be
read exactly is named with the reason.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, final

from torch import Tensor

from separatrix.core import InvalidInput

from .assembly import assemble, by_head, by_path, layer_scale, parent, queries_then_shared, thirds, through
from .layer import AttentionLayer
from .probes import RELATIVE
from .tensors import LayerFacts, Linear, Tensors, Unreadable

State: TypeAlias = Mapping[str, Tensor]
Reader: TypeAlias = Callable[[Tensors, str, LayerFacts], AttentionLayer]

ROTARY = "couplings are those of tokens at one place: position enters by rotation if the model has rotary embeddings"
ALIBI = "couplings are those of tokens at one place: position enters by a bias that grows with distance (ALiBi)"
DECODES = "taken as causal, as decoders are; pass causal=False if it sees all tokens"
OTHER_SEQUENCE = "it attends to another sequence, so its tokens are not one flow"


@final
@dataclasses.dataclass(frozen=True)
class Layout:
    """A family of names: the tensor that marks a layer, and how to read the layer from its prefix."""

    name: str
    mark: re.Pattern[str]
    read: Reader


def read_state(state: State, facts: LayerFacts) -> tuple[list[AttentionLayer], dict[str, str]]:
    """All layers of a state dict in the order of their numbers, and those skipped with the reason."""
    layers: list[AttentionLayer] = []
    skipped: dict[str, str] = {}
    for name in sorted(state, key=natural):
        if crossed := _CROSS.match(name):
            skipped.setdefault(crossed["prefix"], OTHER_SEQUENCE)
            continue
        found = next(((layout, match) for layout in LAYOUTS if (match := layout.mark.fullmatch(name))), None)
        if found is None:
            if _FOREIGN.search(name):
                skipped[name] = "names of this layout are not known"
            continue
        layout, match = found
        try:
            layers.append(_read(layout.read, state, match["prefix"], facts))
        except Unreadable as reason:
            skipped[match["prefix"].rstrip(".") or name] = str(reason)
    return layers, skipped


def _read(reader: Reader, state: State, prefix: str, facts: LayerFacts) -> AttentionLayer:
    tensors = Tensors(state)
    if facts.config.get("attn_logit_softcapping") is not None:
        raise Unreadable("its logits are capped (attn_logit_softcapping), so that they are no bilinear form of tokens")
    layer = reader(tensors, prefix, facts)
    if left := tensors.unread(prefix):
        raise Unreadable(_why_unread([name.removeprefix(prefix) for name in left]))
    return layer


def _why_unread(names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    if any(re.search(r"(q|k|query|key)\w*(norm|ln)|norm_(q|k)|(q|k)_ln", name, re.I) for name in names):
        return f"queries or keys are normalised ({shown}), so that logits are no bilinear form of tokens"
    if any(re.search(r"relative|rel_pos|bias_table|distance_embedding", name) for name in names):
        return f"it has a bias by position ({shown}) that depends on where tokens stand"
    return f"it holds tensors that its layout does not have: {shown}"


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers inside names by their size."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


# Encoders


def _bert(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    q, k, v = (tensors.linear(f"{prefix}self.{part}") for part in ("query", "key", "value"))
    decodes = any(name.startswith(f"{parent(prefix)}crossattention.") for name in tensors.state)
    layer = assemble(prefix, q, k, v, tensors.linear(f"{prefix}output.dense"), facts, causal=decodes)
    norm = tensors.norm(f"{prefix}output.LayerNorm", facts, centred=True)
    return dataclasses.replace(
        layer, variable="residual stream, with the gain and bias of the norm before it", writes_through=norm
    )


def _distilbert(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    q, k, v = (tensors.linear(f"{prefix}{part}_lin") for part in "qkv")
    layer = assemble(prefix, q, k, v, tensors.linear(f"{prefix}out_lin"), facts, causal=False)
    norm = tensors.norm(f"{parent(prefix)}sa_layer_norm", facts, centred=True)
    return dataclasses.replace(
        layer, variable="residual stream, with the gain and bias of the norm before it", writes_through=norm
    )


def _vit(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    q, k, v = (tensors.linear(f"{prefix}attention.{part}") for part in ("query", "key", "value"))
    layer = assemble(prefix, q, k, v, tensors.linear(f"{prefix}output.dense"), facts, causal=False)
    layer = layer_scale(tensors, parent(prefix), layer)
    return through(layer, tensors, parent(prefix), ("layernorm_before", "norm1"), facts, centred=None)


def _fused_rows(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    """Rows of ``qkv``: all queries, all keys, all values. Images are seen whole; other uses must say."""
    q, k, v = thirds(tensors.linear(f"{prefix}qkv"), f"{prefix}qkv")
    images = any(re.search(r"(^|\.)(patch_embed|cls_token)", name) for name in tensors.state)
    out = tensors.first(f"{prefix}proj", f"{prefix}out_proj", f"{prefix}c_proj") or f"{prefix}proj"
    layer = assemble(prefix, q, k, v, tensors.linear(out), facts, causal=False if images else None)
    layer = layer_scale(tensors, parent(prefix), layer)
    return through(layer, tensors, parent(prefix), ("norm1", "ln_1", "ln1"), facts, centred=None)


def _t5(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    q, k, v, out = (tensors.linear(f"{prefix}{part}") for part in "qkvo")
    if (table := f"{prefix}relative_attention_bias.weight") in tensors:
        tensors.get(table)
    # the first block of each stack holds the table of biases for all, with a column per head
    tables = [tensor for name, tensor in tensors.state.items() if name.endswith("relative_attention_bias.weight")]
    if facts.n_heads is None and tables and tables[0].ndim == 2:
        facts = dataclasses.replace(facts, n_heads=int(tables[0].shape[1]))
    layer = assemble(prefix, q, k, v, out, facts, causal=by_path(prefix), scale=1.0)
    layer = dataclasses.replace(layer, note=RELATIVE)
    return through(layer, tensors, parent(prefix), ("layer_norm",), facts, centred=False)


# Decoders


def _gpt2(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    """``c_attn`` of GPT-2 has columns as outputs, that of nanoGPT rows; with one key for all heads it is shorter."""
    weight, bias = tensors.linear(f"{prefix}c_attn")
    out, out_bias = tensors.linear(f"{prefix}c_proj")
    causal = tensors.mask(prefix)
    causal = True if causal is None else causal
    if weight.shape[1] == 3 * weight.shape[0]:
        weight, out = weight.mT, out.mT
    if facts.family == "gpt_bigcode" and weight.shape[0] == 3 * weight.shape[1]:
        q, k, v = by_head((weight, bias), facts.heads(prefix), 1)
    elif weight.shape[0] == 3 * weight.shape[1]:
        q, k, v = thirds((weight, bias), f"{prefix}c_attn")
    else:
        q, k, v = queries_then_shared((weight, bias), out.shape[1], f"{prefix}c_attn")
    layer = assemble(prefix, q, k, v, (out, out_bias), facts, causal=causal, scale=_gpt2_scale(q, prefix, facts))
    return through(layer, tensors, parent(prefix), ("ln_1",), facts, centred=True)


def _gpt2_scale(query: Linear, prefix: str, facts: LayerFacts) -> float | None:
    scale = 1.0 if facts.config.get("scale_attn_weights") is False else None
    if facts.config.get("scale_attn_by_inverse_layer_idx"):
        number = re.findall(r"\d+", prefix)
        base = math.sqrt(facts.heads(prefix) / query[0].shape[0]) if scale is None else scale
        return base / (int(number[-1]) + 1)
    return scale


def _projections(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    """``q_proj``, ``k_proj``, ``v_proj`` and an output: Llama and its kin, BART, OPT, GPT-J, CLIP."""
    names = [f"{prefix}{name}" for name in ("o_proj", "out_proj", "dense")]
    out = tensors.first(*names) or names[0]
    q, k, v = (tensors.linear(f"{prefix}{part}_proj") for part in "qkv")
    block = parent(prefix)
    images = f"{block}layernorm_before.weight" in tensors  # ViT since transformers 5
    modern = out != names[1] and not images  # Llama, Mistral, Qwen, Gemma, Phi: decoders with rotary positions
    if f"{block}pre_feedforward_layernorm.weight" in tensors and "attn_logit_softcapping" not in facts.config:
        raise Unreadable("its names are those of Gemma 2, which caps its logits; a config.json can tell otherwise")
    path = False if images else by_path(prefix)
    rotates = modern or bool(re.search(r"\.?h\.\d+\.attn\.$", prefix))
    default = (
        path if path is not None else True if rotates or re.search(r"h\.\d+\.attn\.attention\.$", prefix) else None
    )
    layer = assemble(prefix, q, k, v, tensors.linear(out), facts, causal=default, scale=_scale(prefix, facts))
    layer = dataclasses.replace(layer, note=ROTARY if rotates else "")
    block = block if not prefix.endswith("attn.attention.") else parent(block)
    if modern:
        layer = through(layer, tensors, block, ("input_layernorm",), facts, centred=False)
        bare = facts.norm != "keep" and layer.reads_through is not None and not facts.norms and not facts.family
        return dataclasses.replace(layer, note=f"{layer.note}; {_GAIN}") if bare else layer
    before = ("ln_1", "layer_norm1", "input_layernorm", "layernorm_before")
    if any(f"{block}{name}.weight" in tensors for name in before):
        return through(layer, tensors, block, before, facts, centred=True)
    beside = f"{block}self_attn_layer_norm.weight" in tensors
    return dataclasses.replace(layer, note="; ".join(filter(None, (layer.note, _BESIDE if beside else ""))))


_GAIN = "the gain of the norm is taken to be its weight, as in Llama; Gemma adds one, which only a config.json tells"
_BESIDE = "a norm stands beside attention, before or after it: names do not tell, so it is not folded"


def _scale(prefix: str, facts: LayerFacts) -> float | None:
    """The factor of the logits where it is not 1 / sqrt(d_h)."""
    if (scalar := facts.config.get("query_pre_attn_scalar")) is not None:
        return float(scalar) ** -0.5
    if (factor := facts.config.get("attention_multiplier")) is not None:
        return float(factor)
    return 1.0 if prefix.endswith("attn.attention.") else None  # GPT-Neo does not scale


def _query_key_value(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    """Rows of ``query_key_value`` group by group: queries of a group, then its key, then its value.

    With a group per head this is the layout of GPT-NeoX and BLOOM, with one group that of Falcon with a single key,
    with several that of later Falcons.
    """
    if not re.search(r"(layers\.\d+\.attention|h\.\d+\.self_attention)\.$", prefix):
        raise Unreadable("the order of the rows of query_key_value differs between models, and these names do not tell")
    joint = tensors.linear(f"{prefix}query_key_value")
    heads, width = facts.heads(prefix), joint[0].shape[1]
    if width % heads:
        raise InvalidInput(f"n_heads must divide the {width} columns of {prefix}query_key_value; got {heads}.")
    size = width // heads
    groups, odd = divmod(joint[0].shape[0] - width, 2 * size)
    if odd or groups < 1 or heads % groups:
        raise Unreadable(f"query_key_value {tuple(joint[0].shape)} does not fit {heads} heads")
    q, k, v = by_head(joint, groups, heads // groups)
    layer = assemble(prefix, q, k, v, tensors.linear(f"{prefix}dense"), facts, causal=True)
    slopes = facts.config.get("alibi") is True or facts.family == "bloom"
    layer = dataclasses.replace(
        layer, note=ALIBI if slopes else f"{ROTARY}, and by ALiBi in some" if not facts.config else ROTARY
    )
    return through(layer, tensors, parent(prefix), ("input_layernorm", "ln_attn"), facts, centred=True)


def _qkv_proj(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    """``qkv_proj`` with ``o_proj`` (Phi-3): all queries, then the shared keys, then the values."""
    if f"{prefix}o_proj.weight" not in tensors:
        raise Unreadable("the order of the rows of qkv_proj differs between models, and these names do not tell")
    out = tensors.linear(f"{prefix}o_proj")
    q, k, v = queries_then_shared(tensors.linear(f"{prefix}qkv_proj"), out[0].shape[1], f"{prefix}qkv_proj")
    layer = assemble(prefix, q, k, v, out, facts, causal=True)
    layer = dataclasses.replace(layer, note=ROTARY)
    return through(layer, tensors, parent(prefix), ("input_layernorm",), facts, centred=False)


# torch


def _torch(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    if f"{prefix}bias_k" in tensors:
        raise Unreadable("it appends a learned key to the tokens (add_bias_kv), which a flow of tokens cannot hold")
    joint = (tensors.get(f"{prefix}in_proj_weight"), tensors.vector(f"{prefix}in_proj_bias"))
    q, k, v = thirds(joint, f"{prefix}in_proj_weight")
    decodes = bool(by_path(prefix))
    layer = assemble(prefix, q, k, v, tensors.linear(f"{prefix}out_proj"), facts, causal=decodes)
    if decodes and facts.causal is None:
        layer = dataclasses.replace(layer, note=DECODES)
    if facts.pre_norm:
        return through(layer, tensors, parent(prefix), ("norm1",), facts, centred=True)
    if facts.pre_norm is False:
        return dataclasses.replace(layer, writes_through=tensors.norm(f"{parent(prefix)}norm1", facts, centred=True))
    return layer


_NOT_ONE_WIDTH = "queries, keys and values must come from tokens of one width; this layer has kdim or vdim of its own"


def _torch_apart(tensors: Tensors, prefix: str, facts: LayerFacts) -> AttentionLayer:
    raise Unreadable(_NOT_ONE_WIDTH)


def _mark(ending: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<prefix>(?:.*\.)?){ending}")


LAYOUTS = (
    Layout("BERT", re.compile(r"(?P<prefix>(?:.*\.)?attention\.)self\.query\.weight"), _bert),
    Layout("ViT", re.compile(r"(?P<prefix>(?:.*\.)?attention\.)attention\.query\.weight"), _vit),
    Layout("DistilBERT", re.compile(r"(?P<prefix>(?:.*\.)?attention\.)q_lin\.weight"), _distilbert),
    Layout("T5", re.compile(r"(?P<prefix>(?:.*\.)?SelfAttention\.)q\.weight"), _t5),
    Layout("GPT-2", _mark(r"c_attn\.weight"), _gpt2),
    Layout("separate projections", _mark(r"q_proj\.weight"), _projections),
    Layout("query_key_value", _mark(r"query_key_value\.weight"), _query_key_value),
    Layout("qkv", _mark(r"qkv\.weight"), _fused_rows),
    Layout("qkv_proj", _mark(r"qkv_proj\.weight"), _qkv_proj),
    Layout("torch", _mark(r"in_proj_weight"), _torch),
    Layout("torch, other widths", _mark(r"q_proj_weight"), _torch_apart),
)
_CROSS = re.compile(
    r"(?P<prefix>(?:.*\.)?(?:crossattention|cross_attn|cross_attention|encoder_attn|encoder_attention|EncDecAttention|"
    r"multihead_attn))\."
)
_FOREIGN = re.compile(
    r"(Wqkv|wqkv|to_q|to_qkv|query_proj|in_proj_qkv|attention\.query|attn\.query|attn\.wq|attention\.wq)\.weight$"
)
