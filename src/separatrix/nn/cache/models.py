"""Which models of Hugging Face a bounded cache can serve, and where they say how they attend."""

from __future__ import annotations

from typing import Any

from separatrix.core.errors import InvalidInput
from separatrix.core.scalars import in_words

FULL = "full_attention"


def require_model(model: Any) -> int:
    """The number of layers of a model that a bounded cache can serve; any other is refused."""
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        raise InvalidInput(
            f"model must be a model of transformers itself, not a wrapper around it; got {in_words(model)}."
        )
    name = type(model).__name__
    if model.config.is_encoder_decoder:
        raise InvalidInput(f"{name} has an encoder and a decoder; a RelevanceCache is for decoders alone.")
    if model.training:
        raise InvalidInput(f"{name} is in training mode, where attention is random: call model.eval() first.")
    config = model.config.get_text_config(decoder=True)
    others = sorted(set(_layer_types(config)) - {FULL})
    if others:
        raise InvalidInput(f"{name} has layers of type {', '.join(others)}; a RelevanceCache is for full attention.")
    if getattr(config, "num_kv_shared_layers", None):
        raise InvalidInput(f"{name} has layers that share keys; a RelevanceCache has keys for every layer.")
    return int(config.num_hidden_layers)


def _layer_types(config: Any) -> list[str]:
    """As the configuration lists them, or as its settings imply."""
    listed = getattr(config, "layer_types", None)
    if listed is not None:
        return list(listed)
    if getattr(config, "sliding_window", None) is not None:
        return ["sliding_attention"]
    return ["chunked_attention"] if getattr(config, "attention_chunk_size", None) is not None else [FULL]


def attention_configs(model: Any) -> list[Any]:
    """All configurations in the model that name an attention implementation, that of the model first."""
    found = {id(model.config): model.config}
    waiting = [model.config, *(module.config for module in model.modules() if hasattr(module, "config"))]
    while waiting:
        config = waiting.pop()
        if hasattr(config, "_attn_implementation_internal"):
            found.setdefault(id(config), config)
        for name in getattr(config, "sub_configs", ()):
            inner = getattr(config, name, None)
            if inner is not None and id(inner) not in found:
                waiting.append(inner)
    return list(found.values())
