"""A model of Hugging Face under the attention of a bounded cache, for as long as a context lasts."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from separatrix.core.errors import InvalidInput
from separatrix.core.scalars import in_words

from .hub import RelevanceCache
from .models import attention_configs, require_model

_NUMBERS = itertools.count()
_HARMLESS = ("position_ids", "cache_position", "position_embeddings", "past_key_values")
"""Tensors that models hand to the attention although it does not use them."""


class Attachment:
    """The attention function and the mask function of one context."""

    def __init__(self, model: Any, cache: RelevanceCache) -> None:
        self.cache = cache
        self.name = f"separatrix_relevance_{next(_NUMBERS)}"
        self._configs = attention_configs(model)
        self._before = [config._attn_implementation_internal for config in self._configs]

    def enter(self, model: Any) -> None:
        """Register both functions under a name of their own and set it everywhere in the model."""
        from transformers import AttentionInterface, AttentionMaskInterface

        AttentionInterface.register(self.name, self.attend)
        AttentionMaskInterface.register(self.name, self.check_mask)
        model.set_attn_implementation(self.name)
        if model.config._attn_implementation != self.name:
            raise InvalidInput(f"the attention of {type(model).__name__} cannot be replaced from outside.")

    def leave(self) -> None:
        """Put everything back as it was."""
        from transformers import AttentionInterface, AttentionMaskInterface

        for config, before in zip(self._configs, self._before, strict=True):
            config._attn_implementation_internal = before
        AttentionInterface._global_mapping.pop(self.name, None)
        AttentionMaskInterface._global_mapping.pop(self.name, None)

    def require_in_force(self) -> None:
        """Refuse if somebody has set another implementation, or opened another context, since."""
        present = self._configs[0]._attn_implementation
        if present != self.name:
            raise InvalidInput(
                f"the attention implementation {present!r} is in force, which gives this cache no weights: use the "
                "cache in its own relevance_attention."
            )

    def attend(
        self,
        module: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float | None = None,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> tuple[Tensor, None]:
        """What ``AttentionInterface`` calls: bounded attention of one layer."""
        if attention_mask is not None:
            raise InvalidInput(
                "a mask of one's own (four dimensions) is not understood by a RelevanceCache; it is causal by itself."
            )
        changing = [name for name, given in kwargs.items() if name not in _HARMLESS and _may_change(given)]
        if changing or dropout:
            words = ", ".join([*changing, *(["dropout"] if dropout else [])])
            raise InvalidInput(f"this attention has what a RelevanceCache does not compute: {words}.")
        if kwargs.get("is_causal") is False or not getattr(module, "is_causal", True):
            raise InvalidInput("a RelevanceCache is for causal attention; this layer looks ahead.")
        layer = self.cache.layers[getattr(module, "layer_idx", 0)]
        held_key, held_value = layer.take_pending(key)
        return layer.bounded.attend(query, held_key, held_value, scaling).transpose(1, 2).contiguous(), None

    def check_mask(
        self, batch_size: int, q_length: int, mask_function: Callable[..., Any], attention_mask: Any = None, **rest: Any
    ) -> None:
        """What ``AttentionMaskInterface`` calls: no mask is made, since positions decide; others are refused."""
        from transformers.masking_utils import causal_mask_function

        if mask_function is not causal_mask_function:
            raise InvalidInput("a RelevanceCache is for plain causal attention; this model has a mask of another kind.")
        if attention_mask is None or bool(attention_mask.all()):
            padding = self.cache.pad_lengths
            if attention_mask is not None and padding is not None and bool(padding.any()):
                raise InvalidInput("the attention mask has no padding, but pad_lengths of the cache says otherwise.")
            return
        length = self.cache.get_seq_length() + q_length
        padding = self.cache.pad_lengths
        if padding is None:
            raise InvalidInput(
                "a padded batch needs pad_lengths: RelevanceCache(..., pad_lengths=(attention_mask == 0).sum(1)), with "
                "padding at the left."
            )
        steps = torch.arange(length, device=attention_mask.device)
        expected = steps >= padding.to(attention_mask.device).unsqueeze(1)
        if attention_mask.shape != expected.shape or not torch.equal(attention_mask.to(torch.bool), expected):
            raise InvalidInput(
                f"the attention mask {tuple(attention_mask.shape)} is not that of pad_lengths = {padding.tolist()} at "
                f"the left of {length} tokens."
            )


def _may_change(given: Any) -> bool:
    """Whether an argument of an attention function may alter its result: all but flags and what is absent."""
    return given is not None and not isinstance(given, bool | str)


@contextlib.contextmanager
def relevance_attention(model: Any, cache: RelevanceCache, *, check: bool = True) -> Iterator[RelevanceCache]:
    """Let a model attend through a bounded cache, inside a ``with`` block.

    For its time every attention layer of the model is computed by the cache, whatever implementation was set (eager,
    sdpa, flash); afterwards, also after an exception, model and registries are as before. Pass
    ``past_key_values=cache`` to every call, ``model.generate`` included. Contexts may be nested, each with its cache.
    Attention weights are not among the outputs (``output_attentions`` finds none); ``BoundedKeys.watch`` shows them.

    Args:
        model: a causal language model of transformers 5 in evaluation mode, all layers with full attention.
        cache: a new one, or one that has already seen part of the sequences of this model.
        check: whether the first context of a cache compares six tokens under an unbounded cache with the model's own
            attention, and refuses a model whose result differs.

    Raises:
        InvalidInput: the model has what the cache does not compute: sliding or linear layers, an encoder, a mask of
            its own kind, padding that was not announced.

    Cost: with ``check`` four calls of the model on six tokens.

    Use it as ``with relevance_attention(model, RelevanceCache(64, 64)) as cache:`` around
    ``model.generate(**inputs, past_key_values=cache)``.
    """
    n_layers = require_model(model)
    if not isinstance(cache, RelevanceCache):
        raise InvalidInput(f"cache must be a RelevanceCache; got {in_words(cache)}.")
    if cache.bind(model, n_layers) and check:
        _certify(model, n_layers)
    with _attached(model, cache):
        yield cache


@contextlib.contextmanager
def _attached(model: Any, cache: RelevanceCache) -> Iterator[None]:
    attachment = Attachment(model, cache)
    cache.attach(attachment)
    failed = True
    try:
        attachment.enter(model)
        yield
        failed = False
    finally:
        attachment.leave()
        cache.attach(None)
        cache.close(failed=failed)


_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}
"""Of the certificate, relative to the largest output; 16 bits have 0.1. Models have softmax in single precision."""


def _certify(model: Any, n_layers: int) -> None:
    """Compare the model's own attention with an unbounded cache on six tokens, four and then two."""
    from transformers import DynamicCache

    vocabulary = int(getattr(model.config.get_text_config(decoder=True), "vocab_size", 6))
    tokens = (torch.arange(6, device=model.device) % max(1, vocabulary)).unsqueeze(0)
    configs = attention_configs(model)
    before = [config._attn_implementation_internal for config in configs]
    try:
        model.set_attn_implementation("eager")
        own = _two_calls(model, tokens, DynamicCache(config=model.config))
    except Exception as error:
        raise InvalidInput(
            f"the model could not be compared with itself on six tokens ({type(error).__name__}: {error}); "
            "relevance_attention(..., check=False) leaves the comparison out."
        ) from error
    finally:
        for config, name in zip(configs, before, strict=True):
            config._attn_implementation_internal = name
    trial = RelevanceCache(8, 0)
    trial.bind(model, n_layers)
    with _attached(model, trial):
        bounded = _two_calls(model, tokens, trial)
    gap = float((own - bounded).abs().max())
    if not gap <= _TOLERANCE.get(own.dtype, 0.1) * max(1e-6, float(own.abs().max())):
        raise InvalidInput(
            f"under an unbounded RelevanceCache the outputs of {type(model).__name__} differ by {gap:.2g} from those "
            "of its own attention: it computes something that the cache does not know."
        )


@torch.no_grad()
def _two_calls(model: Any, tokens: Tensor, cache: Any) -> Tensor:
    outputs = []
    for part in (tokens[:, :4], tokens[:, 4:]):
        result = model(input_ids=part, past_key_values=cache, use_cache=True)
        found = getattr(result, "logits", None)
        outputs.append(result.last_hidden_state if found is None else found)
    return torch.cat(outputs, 1)
