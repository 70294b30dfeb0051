"""Ask a module itself: what its norms do, and whether its attention is what was read from its tensors."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from separatrix.core.networks.modes import evaluation_mode

from .layer import AttentionLayer, Normaliser
from .tensors import LayerFacts

AGREES = 1e-4
"""Largest relative difference between a layer as read and its own forward: single precision and a small epsilon."""

N_TOKENS = 6
RELATIVE = "couplings leave out the relative position bias, which is added to the logits"
UNCHECKED = "not compared with the model's own forward, which cannot be called with tokens alone"


def probed_norm(module: nn.Module, name: str) -> Normaliser | str | None:
    """The norm that a module with a gain is, found by calling it; a sentence if it is none; None if it is no norm."""
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    if not isinstance(weight, Tensor) or weight.ndim != 1 or not weight.is_floating_point():
        return None
    gain = weight.detach().double().cpu()
    shift = bias.detach().double().cpu() if isinstance(bias, Tensor) else None
    x = 3.0 * _tokens(len(gain)) + 1.0
    seen = next(_answers(module, x), None)
    if seen is None:
        return f"{name} could not be called with tokens, so that it is not known what it does to them"
    for added in (0.0, 1.0):
        for centred in (True, False):
            norm = Normaliser(gain + added, shift, centred=centred)
            if _close(norm(x), seen):
                return norm
    return f"{name} is neither a layer norm nor a norm by the root mean square: its output is another"


def certified(model: nn.Module, layer: AttentionLayer, facts: LayerFacts, *, told: bool) -> AttentionLayer | str:
    """The layer as its own forward shows it, with the right mask, or the sentence why it is not that layer.

    A forward that hides the future by itself is causal. One that shows it may still be given a mask from outside: then
    what the layout tells stands, with a note. Where the forward cannot be called with tokens alone, the layer is handed
    back with a note that says so.

    Args:
        model: what holds the layer.
        layer: as it was read from the tensors.
        facts: what the user gave.
        told: whether given facts, settings or the layout tell about the mask.
    """
    module = dict(model.named_modules()).get(layer.name)
    x = math.sqrt(2.0) * _tokens(layer.dim)
    read = x if layer.reads_through is None else layer.reads_through(x)
    if module is not None and layer.note is not None and RELATIVE in layer.note:
        module = _without_bias(module)  # the layer leaves it out, and says so: the rest is what has to agree
    answers = [] if module is None else list(_answers(module, read))
    if module is None or not answers:
        unknown = None if told else _UNKNOWN
        return unknown or dataclasses.replace(layer, note=joined(layer.note, UNCHECKED))
    agreeing = [causal for causal in (True, False) if _agrees(dataclasses.replace(layer, causal=causal), x, answers)]
    if not agreeing:
        nearest = min(_difference(layer.update(layer.read(x)), seen) for seen in answers)
        return (
            "its own forward computes something else than softmax attention of these projections (relative difference "
            f"{nearest:.2g})"
        )
    if facts.causal is not None or True in agreeing or not _takes_mask(module):
        return layer if facts.causal is not None else dataclasses.replace(layer, causal=agreeing[0])
    if getattr(module, "is_causal", None) is False:  # what Hugging Face hands to the kernel where no mask is given
        return dataclasses.replace(layer, causal=False)
    if not told:
        return _UNKNOWN
    return dataclasses.replace(layer, note=joined(layer.note, MASKED_FROM_OUTSIDE)) if layer.causal else layer


def _without_bias(module: nn.Module) -> nn.Module:
    """A copy whose tables of relative positions, if it has any, are zero."""
    tables = [name for name, _ in module.named_parameters() if name.endswith("relative_attention_bias.weight")]
    if not tables:
        return module
    module = copy.deepcopy(module)
    with torch.no_grad():
        for name in tables:
            module.get_parameter(name).zero_()
    return module


_UNKNOWN = "neither its names nor its forward tell whether tokens see only the past; pass causal="
MASKED_FROM_OUTSIDE = "taken as causal, as its layout is: its forward hides the future only if it is given a mask"


def _agrees(layer: AttentionLayer, x: Tensor, answers: list[Tensor]) -> bool:
    """Whether a module's output is the layer's, before or after the norm that follows."""
    expected = [layer.update(layer.read(x))]
    if layer.writes_through is not None:
        expected.append(layer.writes_through(x + expected[0]))
    return any(_close(output, seen) for output in expected for seen in answers)


def _takes_mask(module: nn.Module) -> bool:
    """Whether a mask can be given to a forward."""
    parameters = inspect.signature(module.forward).parameters.values()
    return any("mask" in item.name or "causal" in item.name or item.kind is item.VAR_KEYWORD for item in parameters)


def _tokens(dim: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(N_TOKENS, dim, generator=generator, dtype=torch.float64)


def _answers(module: nn.Module, x: Tensor) -> Iterator[Tensor]:
    """What a module makes of tokens (n, d), called in the ways that people write: batch first, batch second, no batch;
    once, or as query, key and value. Without dropout, gradient or change; nothing if it refuses them all."""
    like = next(iter(module.parameters()), x)
    tokens = x.to(device=like.device, dtype=like.dtype)
    with torch.no_grad(), evaluation_mode(module), torch.random.fork_rng(devices=[]):
        for shaped in (tokens.unsqueeze(0), tokens.unsqueeze(1), tokens):
            for times in (1, 3):
                try:
                    found = module(*[shaped] * times)
                except Exception:  # a forward of somebody else's may raise anything when called in another way
                    continue
                found = found[0] if isinstance(found, tuple | list) and found else found
                if isinstance(found, Tensor) and found.shape == shaped.shape and found.is_floating_point():
                    yield found.reshape(x.shape).detach().double().cpu()


def _difference(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max().clamp_min(1e-300))


def _close(a: Tensor, b: Tensor) -> bool:
    return _difference(a, b) <= AGREES


def joined(*notes: str) -> str:
    """Notes as one sentence."""
    return "; ".join(note for note in notes if note)
