"""The residual stream of a model, text by text: from a Hugging Face model and its tokeniser, or as given."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core import InvalidInput, ShapeError, require_finite

Streams: TypeAlias = list[list[Float[Tensor, "_ d"]]]
"""For each layer, what enters it of each text, (tokens, d); one more entry for what leaves the last."""


def streams_of_model(model: nn.Module, texts: Sequence[str], tokenizer: Callable[..., Any], n_layers: int) -> Streams:
    """The hidden states of a model for each text, in float64, without gradients.

    Args:
        model: a Hugging Face model in evaluation mode; it is called with ``output_hidden_states=True``.
        texts: at least one text.
        tokenizer: called as ``tokenizer(text, return_tensors="pt")``.
        n_layers: attention layers found in the model.
    """
    if model.training:
        raise InvalidInput("model must be in evaluation mode, where dropout is off; call model.eval() first.")
    if isinstance(texts, str) or not texts:
        raise InvalidInput("texts must be a list of at least one text.")
    streams: Streams = [[] for _ in range(n_layers + 1)]
    with torch.no_grad():
        for text in texts:
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
            if len(states) != n_layers + 1:
                raise InvalidInput(
                    f"the model returned {len(states)} hidden states for {n_layers} attention layers; pass "
                    "hidden_states yourself, one entry per layer."
                )
            for place, state in zip(streams, states, strict=True):
                place.append(state[0].double())
    return streams


def check_streams(given: Sequence[Sequence[Tensor]], n_layers: int, dim: int) -> Streams:
    """Hidden states as given: one entry per layer (and one for the end, if wanted), each a list of texts (n, d)."""
    if len(given) not in (n_layers, n_layers + 1):
        raise InvalidInput(
            f"hidden_states must have one entry per attention layer ({n_layers}), or one more; got {len(given)}."
        )
    streams: Streams = []
    for i, texts in enumerate(given):
        for j, tokens in enumerate(texts):
            if tokens.ndim != 2 or tokens.shape[-1] != dim or len(tokens) < 2:
                raise ShapeError(
                    f"hidden_states[{i}][{j}] must have shape (tokens, {dim}) with at least two tokens; "
                    f"got {tuple(tokens.shape)}."
                )
            require_finite(tokens, f"hidden_states[{i}][{j}]")
        if not texts or len(texts) != len(given[0]):
            raise InvalidInput(f"hidden_states[{i}] must hold as many texts as the others, at least one.")
        streams.append([tokens.detach().double().cpu() for tokens in texts])
    return streams


def redrawn_model(model: nn.Module, generator: torch.Generator) -> nn.Module:
    """A copy whose matrices are drawn anew, Gaussian with their own standard deviations; vectors stay.

    It stands for a randomly initialised model of the same scale.
    """
    control = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in control.parameters():
            if parameter.ndim >= 2:
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(noise.to(parameter) * parameter.std())
    return control
