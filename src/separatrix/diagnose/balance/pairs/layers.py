"""Layers with weights, described by where their inputs and outputs lie in the weight."""

from __future__ import annotations

import dataclasses
from typing import final

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


def describe_layer(name: str, module: object) -> Layer | None:
    """The layer behind a module, or ``None`` for a module that is no plain linear map."""
    has_bias = getattr(module, "bias", None) is not None
    if isinstance(module, nn.Linear):
        return Layer(name, 0, module.out_features, 1, module.in_features, has_bias)
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return Layer(name, 0, module.out_channels, 1, module.in_channels, has_bias, True, module.groups)
    if isinstance(module, nn.Embedding) and module.padding_idx is None and module.max_norm is None:
        return Layer(name, 1, module.embedding_dim, 0, module.num_embeddings, False)
    weight = getattr(module, "weight", None)
    if type(module).__name__ == "Conv1D" and isinstance(weight, Tensor):  # as in GPT-2: weight (in, out)
        n_in, n_out = weight.shape
        return Layer(name, 1, int(n_out), 0, int(n_in), has_bias)
    return None


def why_not_a_layer(module: nn.Module) -> str | None:
    """For a module with weights that is not a plain layer, the reason it has no law here; ``None`` for the others."""
    if isinstance(module, nn.RNNBase | nn.RNNCellBase):
        return "recurrent layers use each weight at every time step: no law of a pair applies"
    if isinstance(module, nn.Embedding):
        return "an embedding with padding_idx or max_norm is not a plain linear map"
    if isinstance(module, nn.Bilinear):
        return "a bilinear layer has two inputs: no law of a pair is known here"
    if isinstance(module, nn.modules.conv._ConvTransposeNd):
        return "transposed convolutions are not covered"
    if isinstance(module, nn.GroupNorm):
        return "group normalisation is not covered"
    return None
