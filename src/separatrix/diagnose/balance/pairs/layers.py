"""Layers with weights, described by where their inputs and outputs lie in the weight."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias, final

from torch import Tensor, nn

from .rows import Part, RowView, whole


@final
@dataclasses.dataclass(frozen=True)
class Layer:
    """A module that multiplies by a weight: which axis counts outputs and which inputs, and what is unusual."""

    name: str
    out_axis: int
    n_out: int
    in_axis: int
    n_in: int
    has_bias: bool
    is_conv: bool = False
    groups: int = 1

    @property
    def weight(self) -> str:
        """Full name of the weight."""
        return join(self.name, "weight")

    @property
    def bias(self) -> str:
        """Full name of the bias."""
        return join(self.name, "bias")

    def outgoing(self) -> RowView:
        """One row per output unit: its weights and, if there is one, its bias."""
        return RowView(tuple(self.output_parts(0, self.n_out)))

    def output_parts(self, start: int, count: int) -> list[Part]:
        """Parts of the output units from ``start``."""
        parts = [Part(self.weight, self.out_axis, start, count)]
        return [*parts, Part(self.bias, 0, start, count)] if self.has_bias else parts

    def incoming(self, n_hidden: int) -> RowView:
        """One row per hidden unit: the weights that read it (several entries each after a flattening)."""
        return RowView((whole(self.weight, self.in_axis, n_hidden, self.n_in // n_hidden),))


def join(*names: str) -> str:
    """A dotted name, leaving out empty parts."""
    return ".".join(name for name in names if name)


Description: TypeAlias = Callable[[str, Any], "Layer | None"]


def _linear(name: str, module: nn.Linear) -> Layer:
    return Layer(name, 0, module.out_features, 1, module.in_features, module.bias is not None)


def _convolution(name: str, module: nn.Conv1d | nn.Conv2d | nn.Conv3d) -> Layer:
    has_bias = module.bias is not None
    return Layer(name, 0, module.out_channels, 1, module.in_channels, has_bias, True, module.groups)


def _embedding(name: str, module: nn.Embedding) -> Layer | None:
    if module.padding_idx is not None or module.max_norm is not None:
        return None
    return Layer(name, 1, module.embedding_dim, 0, module.num_embeddings, False)


LAYERS: dict[type[nn.Module], Description] = {
    nn.Linear: _linear,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.Conv3d: _convolution,
    nn.Embedding: _embedding,
}
"""How to describe each class of layer, subclasses included.

A new one is a function above, a line here, and the name of the function of torch that does its work in ``LAYER_CALLS``
if it is not there. The contract (``tests/diagnose/balance/pairs/test_layer_contract.py``, one line) then asks that
``set_balance`` reaches the balance and leaves the output.
"""

LAYER_CALLS = frozenset(
    {"linear", "conv1d", "conv2d", "conv3d", "embedding", "batchnorm", "layernorm", "rmsnorm", "instancenorm"}
    | {"prelu", "convtranspose1d", "convtranspose2d", "convtranspose3d", "groupnorm", "bilinear", "addmm"}
)
"""Functions of torch by which a module is seen to use its weight when a call is watched (names as ``plain_name``)."""


def describe_layer(name: str, module: object) -> Layer | None:
    """The layer behind a module, or ``None`` for a module that is no plain linear map."""
    for kind, description in LAYERS.items():
        if isinstance(module, kind):
            return description(name, module)
    weight = getattr(module, "weight", None)
    if type(module).__name__ == "Conv1D" and isinstance(weight, Tensor):  # as in GPT-2: weight (in, out)
        n_in, n_out = weight.shape
        return Layer(name, 1, int(n_out), 0, int(n_in), getattr(module, "bias", None) is not None)
    return None


_REASONS: dict[type[nn.Module], str] = {
    nn.RNNBase: "recurrent layers use each weight at every time step: no law of a pair applies",
    nn.RNNCellBase: "recurrent layers use each weight at every time step: no law of a pair applies",
    nn.Embedding: "an embedding with padding_idx or max_norm is not a plain linear map",
    nn.Bilinear: "a bilinear layer has two inputs: no law of a pair is known here",
    nn.modules.conv._ConvTransposeNd: "transposed convolutions are not covered",
    nn.GroupNorm: "group normalisation is not covered",
}


def why_not_a_layer(module: nn.Module) -> str | None:
    """For a module with weights that is not a plain layer, the reason it has no law here; ``None`` for the others."""
    return next((reason for kind, reason in _REASONS.items() if isinstance(module, kind)), None)
