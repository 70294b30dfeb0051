"""Attention layers of whatever a user has: a module, a safetensors file, a checkpoint, a state dict."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, final

from torch import Tensor, nn

from separatrix.core import InvalidInput, Result, choose, require_integer

from ..weight_files import read_weights, tensors_of
from .layer import AttentionLayer
from .layouts import DECODES, OTHER_SEQUENCE, natural, read_state
from .probes import certified, probed_norm
from .tensors import LayerFacts, configured_heads


@final
@dataclasses.dataclass(frozen=True, repr=False)
class AttentionLayers(Result):
    """The layers found, in order, and what was skipped with the reason."""

    layers: tuple[AttentionLayer, ...]
    skipped: Mapping[str, str]


def attention_layers(
    source: nn.Module | Mapping[str, Tensor] | str | Path,
    *,
    n_heads: int | None = None,
    causal: bool | None = None,
    norm: str = "auto",
) -> AttentionLayers:
    """Couplings and values of every attention layer, head by head.

    Layouts are those of BERT, DistilBERT, ViT (Hugging Face and timm), T5, GPT-2, nanoGPT, GPT-BigCode, GPT-J, GPT-Neo,
    GPT-NeoX, BLOOM, Falcon, Llama and its kin, Phi-3, OPT, BART, CLIP and ``nn.MultiheadAttention``. A module is
    moreover asked itself: where its attention can be called with tokens, its output decides about the mask, and a layer
    that computes something else than was read is skipped.

    Args:
        source: a module (Hugging Face, ``nn.TransformerEncoder``, ``nn.MultiheadAttention``), a state dict, a
            ``.safetensors`` file or a checkpoint that ``torch.load(weights_only=True)`` reads.
        n_heads: number of heads, where neither the module nor a ``config.json`` beside the file tells it.
        causal: whether tokens see only the past; by default decoders do, encoders and images do not.
        norm: ``"auto"`` folds the norm a layer reads through into its projections, so that the flow moves normalised
            tokens; ``"keep"`` leaves projections as they are. A layer that reads the stream itself has nothing to fold.

    Returns:
        Layers in float64. Layers that cannot be read exactly are in ``skipped`` with the reason.

    Raises:
        InvalidInput: nothing was found, the number of heads is unknown, or the file is no plain collection of tensors.
        MissingData: there is no such file.
    """
    choose("norm", norm, ("auto", "keep"))
    if n_heads is not None:
        require_integer(n_heads, "n_heads", at_least=1)
    facts = LayerFacts(n_heads=n_heads, causal=causal, norm=norm)
    if isinstance(source, nn.Module):
        layers, skipped = _of_module(source, facts)
    elif isinstance(source, Mapping):
        layers, skipped = read_state(tensors_of(source), facts)
    else:
        path = Path(source)
        state = read_weights(path)
        layers, skipped = read_state(state, dataclasses.replace(facts, config=_config_beside(path, n_heads)))
    if not layers:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(skipped.items())[:3])
        raise InvalidInput(
            "source must hold attention layers of a known layout (BERT, ViT, T5, GPT-2, GPT-NeoX, "
            f"q_proj/k_proj/v_proj, nn.MultiheadAttention); none was found{f' ({reasons})' if reasons else ''}."
        )
    return AttentionLayers(tuple(layers), skipped)


def _of_module(model: nn.Module, facts: LayerFacts) -> tuple[list[AttentionLayer], dict[str, str]]:
    """torch's own modules by their class, all others by their tensors and a probe of their forward."""
    modules = dict(model.named_modules())
    layers: list[AttentionLayer] = []
    skipped: dict[str, str] = {}
    own = [name for name, module in modules.items() if type(module) is nn.MultiheadAttention]
    for name in own:
        module = cast(nn.MultiheadAttention, modules[name])
        found, left = _of_multihead(name, module, modules.get(name.rpartition(".")[0]), facts)
        layers, skipped = layers + found, skipped | left
    rest = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if not any(name.startswith(f"{place}.") or not place for place in own)
    }
    known = dataclasses.replace(facts, **_facts_of(modules, model))
    uncertain = read_state(rest, known)[1]
    read, left = read_state(rest, dataclasses.replace(known, probed=True))
    for layer in read:
        answer = certified(model, layer, facts, told=layer.name not in uncertain)
        if isinstance(answer, str):
            skipped[layer.name] = answer
        else:
            layers.append(answer)
    return sorted(layers, key=lambda layer: natural(layer.name)), skipped | left


def _facts_of(modules: Mapping[str, nn.Module], model: nn.Module) -> dict[str, Any]:
    """What the modules themselves tell: settings, numbers of heads, and their norms by a probe."""
    heads = {
        name: number
        for name, module in modules.items()
        for number in [configured_heads(vars(module))]
        if number is not None
    }
    beside = {f"{name.rpartition('.')[0]}.".lstrip(".") for name in modules if "att" in name.rpartition(".")[2].lower()}
    norms = {
        name: norm
        for name, module in modules.items()
        if not list(module.children()) and any(name.startswith(block) for block in beside)
        for norm in [probed_norm(module, name)]
        if norm is not None
    }
    return {"config": _settings(getattr(model, "config", None)), "heads_of": heads, "norms": norms}


def _of_multihead(
    name: str, module: nn.MultiheadAttention, parent: nn.Module | None, facts: LayerFacts
) -> tuple[list[AttentionLayer], dict[str, str]]:
    if module.add_zero_attn:
        return [], {name: "it appends a zero key to the tokens (add_zero_attn), which a flow of tokens cannot hold"}
    if name.endswith("multihead_attn"):
        return [], {name: OTHER_SEQUENCE}
    state = {f"{name}.{key}" if name else key: tensor for key, tensor in module.state_dict().items()}
    pre_norm, decodes = None, False
    if isinstance(parent, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
        pre_norm, decodes = bool(parent.norm_first), isinstance(parent, nn.TransformerDecoderLayer)
        own = {f"norm1.{key}": tensor for key, tensor in parent.norm1.state_dict().items()}
        state |= {f"{name.rpartition('.')[0]}.{key}".lstrip("."): tensor for key, tensor in own.items()}
    known = dataclasses.replace(facts, n_heads=module.num_heads, pre_norm=pre_norm, config={"is_decoder": decodes})
    layers, skipped = read_state(state, known)
    if decodes and facts.causal is None:
        layers = [dataclasses.replace(layer, note=DECODES) for layer in layers]
    return layers, skipped


def _settings(config: Any) -> dict[str, Any]:
    values = config if isinstance(config, Mapping) else vars(config) if hasattr(config, "__dict__") else {}
    return {str(name): value for name, value in values.items()}


def _config_beside(path: Path, n_heads: int | None) -> dict[str, Any]:
    config = path.with_name("config.json")
    if not config.is_file():
        return {}
    try:
        return _settings(json.loads(config.read_text(encoding="utf-8")))
    except ValueError:
        if n_heads is not None:
            return {}
        raise InvalidInput(f"{str(config)!r} must be JSON, or n_heads be given.") from None
