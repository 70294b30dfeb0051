"""Attention layers of whatever a user has: a module, a safetensors file, a checkpoint, a state dict."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, MissingData, Result, choose, require_integer

from .layer import AttentionLayer
from .layouts import LayerFacts, read_state


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

    Args:
        source: a module (Hugging Face, ``nn.TransformerEncoder``, ``nn.MultiheadAttention``), a state dict, a
            ``.safetensors`` file or a checkpoint that ``torch.load(weights_only=True)`` reads.
        n_heads: number of heads, where neither the module nor a ``config.json`` beside the file tells it.
        causal: whether tokens see only the past; by default GPT-2 and Llama layouts do.
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
        layers, skipped = read_state(_tensors(source), facts)
    else:
        path = Path(source)
        state, heads = _read_file(path), n_heads or _heads_beside(path)
        layers, skipped = read_state(state, dataclasses.replace(facts, n_heads=heads))
    if not layers:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in list(skipped.items())[:3])
        raise InvalidInput(
            "source must hold attention layers of a known layout (BERT, GPT-2, q_proj/k_proj/v_proj, "
            f"nn.MultiheadAttention); none was found{f' ({reasons})' if reasons else ''}."
        )
    return AttentionLayers(tuple(layers), skipped)


def _of_module(model: nn.Module, facts: LayerFacts) -> tuple[list[AttentionLayer], dict[str, str]]:
    modules = dict(model.named_modules())
    layers: list[AttentionLayer] = []
    skipped: dict[str, str] = {}
    for name, module in modules.items():
        if isinstance(module, nn.MultiheadAttention):
            found, left = _of_multihead(name, module, modules.get(name.rpartition(".")[0]), facts)
            layers, skipped = layers + found, skipped | left
    if layers or skipped:
        return layers, skipped
    heads = facts.n_heads or _configured_heads(getattr(model, "config", None))
    return read_state(model.state_dict(), dataclasses.replace(facts, n_heads=heads))


def _of_multihead(
    name: str, module: nn.MultiheadAttention, parent: nn.Module | None, facts: LayerFacts
) -> tuple[list[AttentionLayer], dict[str, str]]:
    if module.add_zero_attn:
        return [], {name: "it appends a zero key to the tokens (add_zero_attn), which a flow of tokens cannot hold"}
    if name.endswith("multihead_attn"):
        return [], {name: "it attends to another sequence, so its tokens are not one flow"}
    state = {f"{name}.{key}" if name else key: tensor for key, tensor in module.state_dict().items()}
    pre_norm = None
    if isinstance(parent, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
        pre_norm = bool(parent.norm_first)
        own = {f"norm1.{key}": tensor for key, tensor in parent.norm1.state_dict().items()}
        state |= {f"{name.rpartition('.')[0]}.{key}".lstrip("."): tensor for key, tensor in own.items()}
    return read_state(state, dataclasses.replace(facts, n_heads=module.num_heads, pre_norm=pre_norm))


def _configured_heads(config: Any) -> int | None:
    values = config if isinstance(config, Mapping) else vars(config) if hasattr(config, "__dict__") else {}
    found = [values.get(name) for name in ("num_attention_heads", "n_head", "num_heads")]
    return next((int(number) for number in found if isinstance(number, int)), None)


def _heads_beside(path: Path) -> int | None:
    config = path.with_name("config.json")
    if not config.is_file():
        return None
    try:
        return _configured_heads(json.loads(config.read_text(encoding="utf-8")))
    except ValueError:
        raise InvalidInput(f"{str(config)!r} must be JSON, or n_heads be given.") from None


def _read_file(path: Path) -> dict[str, Tensor]:
    """Tensors by name; nothing in the file is executed."""
    if not path.is_file():
        raise MissingData(f"there is no file {str(path)!r}.")
    if path.suffix == ".safetensors":
        import safetensors
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except safetensors.SafetensorError as error:
            raise InvalidInput(f"{str(path)!r} is not a whole safetensors file ({error}).") from None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # what an unpickler makes of arbitrary bytes: IndexError, KeyError, UnicodeDecodeError and more
        raise InvalidInput(
            f"{str(path)!r} is not a plain collection of tensors, and loading anything else would execute code from "
            "the file. Save model.state_dict() with safetensors or torch.save."
        ) from None
    return _tensors(content)


def _tensors(content: Any) -> dict[str, Tensor]:
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping):
        raise InvalidInput(f"source must hold tensors by name; got {type(content).__name__}.")
    return {str(name): tensor for name, tensor in content.items() if isinstance(tensor, Tensor)}
