"""The tensors of one recurrent layer in torch's layout: gates below one another, two biases, perhaps a projection."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, require_finite


@final
@dataclasses.dataclass(frozen=True)
class LayerWeights:
    """Weights in float64: ``weight_ih (gates h, in)``, ``weight_hh (gates h, p)``; biases are zero where absent."""

    weight_ih: Float[Tensor, "rows i"]
    weight_hh: Float[Tensor, "rows p"]
    bias_ih: Float[Tensor, " rows"]
    bias_hh: Float[Tensor, " rows"]
    weight_hr: Float[Tensor, "p h"] | None = None
    """Projection of an LSTM's output; then p is smaller than h."""

    @property
    def n_gates(self) -> int:
        """1 for a plain network, 3 for a GRU, 4 for an LSTM."""
        return len(self.weight_hh) // self.hidden_size

    @property
    def hidden_size(self) -> int:
        """Units of a gate."""
        return int(self.weight_hh.shape[1] if self.weight_hr is None else self.weight_hr.shape[1])


def layer_weights(tensors: dict[str, Tensor], name: str) -> LayerWeights:
    """Check the tensors of a layer, by their names without layer number, and bring them to float64.

    Raises:
        InvalidInput: a tensor is missing, not finite, or does not fit the others.
    """
    for needed in ("weight_ih", "weight_hh"):
        if needed not in tensors:
            raise InvalidInput(f"{name}: {needed} is missing beside its other weights.")
    wide = {key: _wide(tensor, f"{name} {key}") for key, tensor in tensors.items()}
    weight_ih, weight_hh, weight_hr = wide["weight_ih"], wide["weight_hh"], wide.get("weight_hr")
    rows = len(weight_hh)
    zero = torch.zeros(rows, dtype=torch.float64)
    biases = [wide.get(key, zero) for key in ("bias_ih", "bias_hh")]
    hidden = weight_hh.shape[-1] if weight_hr is None else weight_hr.shape[-1]
    fits = (
        weight_ih.ndim == weight_hh.ndim == 2
        and len(weight_ih) == rows
        and rows > 0
        and rows % hidden == 0
        and all(bias.shape == (rows,) for bias in biases)
        and (weight_hr is None or (weight_hr.ndim == 2 and len(weight_hr) == weight_hh.shape[1]))
    )
    if not fits:
        shapes = ", ".join(f"{key} {tuple(tensor.shape)}" for key, tensor in tensors.items())
        raise InvalidInput(f"{name}: the tensors of a recurrent layer must fit each other; got {shapes}.")
    return LayerWeights(weight_ih, weight_hh, biases[0], biases[1], weight_hr)


def _wide(tensor: Tensor, name: str) -> Tensor:
    if tensor.is_complex() or tensor.is_quantized:
        raise InvalidInput(f"{name} must hold real numbers, not quantised; got {tensor.dtype}.")
    wide = tensor.detach().to("cpu", torch.float64)
    require_finite(wide, name)
    return wide
