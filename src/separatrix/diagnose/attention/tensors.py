"""The tensors of a state dict as a reader of attention uses them, and what it left unread."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, TypeAlias, final

import torch
from torch import Tensor

from separatrix.core import InvalidInput

from .layer import Normaliser

Linear: TypeAlias = tuple[Tensor, Tensor | None]
"""Weight with rows as outputs, and bias."""

_BUFFER = re.compile(r"(inv_freq|rotary_emb\..*|masked_bias|causal_mask|attn_mask|mask|relative_position_index)$")
_TELLING = re.compile(r"(norm|_ln|ln_|lora|sink|scale|gate|rel_pos|relative|bias_table|alibi|temperature)", re.I)


class Unreadable(Exception):
    """A layer that cannot be read exactly; the message is the reason."""


@final
@dataclasses.dataclass(frozen=True)
class LayerFacts:
    """What a state dict does not tell."""

    n_heads: int | None = None
    heads_of: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """Numbers of heads that the modules of a model name, by the module."""
    causal: bool | None = None
    norm: str = "auto"
    pre_norm: bool | None = None
    """Whether a torch encoder layer normalises before attention; None if unknown."""
    config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The settings of the model, as Hugging Face writes them into ``config.json``."""
    norms: Mapping[str, Normaliser | str] = dataclasses.field(default_factory=dict)
    """Norms of a module by name, as a probe showed them; a string is the reason why one is not known."""
    probed: bool = False
    """Whether the layer's own forward will be asked, so that a default may be a guess."""

    @property
    def family(self) -> str:
        """The model type of the settings, or an empty string."""
        return str(self.config.get("model_type", ""))

    def heads(self, prefix: str) -> int:
        """The number of heads of the layer at ``prefix``: as given, as its module says, as the settings say."""
        where = prefix.rstrip(".")
        if self.n_heads is not None:
            return self.n_heads
        places = (where, f"{where}.self", f"{where}.attention", where.rpartition(".")[0])
        if (known := next((self.heads_of[place] for place in places if place in self.heads_of), None)) is not None:
            return known
        if (known := configured_heads(self.config, decodes="decoder." in prefix)) is not None:
            return known
        raise InvalidInput(
            f"n_heads must be given: the tensors of {where or 'the layer'} do not tell the number of heads."
        )

    def is_causal(self, default: bool | None, name: str) -> bool:
        """Whether tokens see only the past, as given, as the settings say, or by what the layout is known for."""
        if self.causal is not None:
            return self.causal
        if self.config.get("is_decoder") is True:
            return True
        if default is None and not self.probed:
            raise Unreadable(f"the names of {name} do not tell whether tokens see only the past; pass causal=")
        return bool(default)


HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
"""Names that modules and settings give to the number of heads."""


def configured_heads(config: Mapping[str, Any], *, decodes: bool = False) -> int | None:
    """The number of heads in the settings of a model."""
    part = "decoder_attention_heads" if decodes else "encoder_attention_heads"
    found = [config.get(name) for name in (part, *HEADS)]
    return next((number for number in found if isinstance(number, int) and not isinstance(number, bool)), None)


class Tensors:
    """A state dict that remembers what was asked for."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self.state = state
        self._used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.state

    def get(self, name: str) -> Tensor:
        """A tensor in float64 on the CPU."""
        if name not in self.state:
            raise Unreadable(f"{name} is missing")
        self._used.add(name)
        return as_weights(self.state[name], name)

    def linear(self, name: str) -> Linear:
        """Weight and bias of a linear map; the bias may be absent."""
        weight, bias = self.get(f"{name}.weight"), self.vector(f"{name}.bias")
        if weight.ndim != 2 or not weight.numel():
            raise Unreadable(f"{name}.weight must be a matrix; got shape {tuple(weight.shape)}")
        if bias is not None and len(bias) not in weight.shape:
            raise Unreadable(f"{name}.bias {tuple(bias.shape)} does not fit its weight {tuple(weight.shape)}")
        return weight, bias

    def vector(self, name: str) -> Tensor | None:
        """A tensor of one axis, or None if it is absent."""
        if self.state.get(name) is None:
            return None
        found = self.get(name)
        if found.ndim != 1:
            raise Unreadable(f"{name} must have one axis; got shape {tuple(found.shape)}")
        return found

    def first(self, *names: str) -> str | None:
        """The first of these names that has a weight."""
        return next((name for name in names if f"{name}.weight" in self.state), None)

    def norm(self, name: str, facts: LayerFacts, *, centred: bool) -> Normaliser | None:
        """A norm: as a probe of its module showed it, else by its tensors and what its layout is known for."""
        if f"{name}.weight" not in self.state:
            return None
        gain, bias = self.vector(f"{name}.weight"), self.vector(f"{name}.bias")  # asked for, whoever answers
        if (seen := facts.norms.get(name)) is not None:
            if isinstance(seen, str):
                raise Unreadable(seen)
            return seen
        if gain is None or (bias is not None and bias.shape != gain.shape):
            raise Unreadable(f"gain and bias of {name} must have one length")
        gain = gain + 1 if facts.family.startswith("gemma") else gain
        return Normaliser(gain, bias, centred=centred or bias is not None or facts.family.startswith("cohere"))

    def unread(self, prefix: str) -> list[str]:
        """Tensors of the layer that nobody asked for and that are no tables of positions or masks."""
        own = [name for name in self.state if name.startswith(prefix) and name not in self._used]
        left = [name for name in own if not _BUFFER.search(name) and not self._is_mask(name, prefix)]
        return left if prefix else [name for name in left if "." not in name or _TELLING.search(name.split(".")[0])]

    def mask(self, prefix: str) -> bool | None:
        """Whether a buffer of the layer hides the future; None if it has no buffer for a mask."""
        name = f"{prefix}bias"
        if not self._is_mask(name, prefix):
            return None
        table = self.state[name].flatten(0, -3)[0] if self.state[name].ndim > 2 else self.state[name]
        return not bool(torch.triu(table != 0, 1).any())

    def _is_mask(self, name: str, prefix: str) -> bool:
        return name == f"{prefix}bias" and name in self.state and self.state[name].ndim >= 2


def as_weights(tensor: Tensor, name: str) -> Tensor:
    """The tensor in float64 on the CPU; quantised, NaN and infinite weights are refused."""
    if not tensor.is_floating_point():
        raise Unreadable(f"{name} has dtype {tensor.dtype}; quantised weights must be converted to floats first")
    if not bool(torch.isfinite(tensor).all()):
        raise InvalidInput(f"{name} must be finite; it holds NaN or infinity.")
    return tensor.detach().to(device="cpu", dtype=torch.float64)
