r"""Conservation laws of layer pairs, and the quantities they keep along gradient flow.

With one row per hidden unit on each side, :math:`A` (first layer, bias appended) and :math:`B` (second layer), and an
activation that is positively homogeneous of degree :math:`p`, every law is a part of

.. math:: D = p\, B B^\top - A A^\top .

Linear units keep all of :math:`D`; ReLU keeps its diagonal; rotary position embeddings keep the trace of each 2 x 2
block that is rotated together; normalised layers keep norms of one layer alone; tanh, GELU and SiLU keep nothing.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.names import suggest_options

from .rows import RowView


class Law(enum.Enum):
    """Which part of D gradient flow keeps; ``UNCHECKED`` where the model could not be run to find out."""

    FULL = "full matrix"
    DIAGONAL = "diagonal"
    ROTATION_PAIRS = "trace of rotation pairs"
    NORM_PER_NEURON = "norm per neuron"
    NORM = "norm of the layer"
    NOTHING = "nothing"
    UNCHECKED = "not checked"

    @property
    def label(self) -> str:
        """As shown to people."""
        return self.value


HOLDS_BELOW = 1e-4
"""Residual below which a law is said to hold: rounding in float32 stays below it, broken laws lie above 1e-2."""

BALANCED_LAWS = (Law.FULL, Law.DIAGONAL, Law.ROTATION_PAIRS)
"""Laws between two layers, whose balance ``set_balance`` can move without changing the function."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class LayerPair:
    """Two layers that face each other across hidden units, and what gradient flow keeps of them.

    ``first`` is ``None`` for the laws of a single normalised layer. ``between`` names what lies between the layers;
    ``reason`` says, where the law is ``NOTHING``, what destroys it; ``condition`` what the law assumes (``of_batch``:
    batch normalisation in training mode).

    A pair from ``find_pairs`` has the law that its operations and names suggest. ``residual`` is how far the model was
    from it when it was run (NaN: it was not), and ``unchecked`` says why it was not.
    """

    name: str
    first: RowView | None
    second: RowView
    law: Law
    between: str
    degree: float = 1.0
    reason: str = ""
    condition: str = ""
    rotation: str = ""
    of_batch: bool = False
    residual: float = math.nan
    unchecked: str = ""

    @property
    def n_hidden(self) -> int:
        """Number of hidden units of the pair."""
        return self.second.n_rows

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters of the pair, each once."""
        first = self.first.parameters if self.first else ()
        return tuple(dict.fromkeys(first + self.second.parameters))

    @property
    def settable(self) -> bool:
        """Whether a pair with this law has a balance that can be moved without changing the function."""
        return self.law in BALANCED_LAWS

    @property
    def checked_law(self) -> Law:
        """The law if the model was run and has it, ``UNCHECKED`` if it was not run; ``NOTHING`` needs no check."""
        return self.law if self.law is Law.NOTHING or not math.isnan(self.residual) else Law.UNCHECKED


def conserved_form(pair: LayerPair, left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> Tensor:
    """The law's part of ``degree * B B'^T - A A'^T``, symmetrised, with A, B from ``left`` and A', B' from ``right``.

    Parameters on both sides give the conserved quantity; gradients and parameters half its rate along the gradient;
    gradients on both sides the second-order term of a gradient step. A matrix (h, h) for the full law, a vector
    otherwise: per unit, per rotation pair, or one number for a whole layer.
    """
    total = pair.degree * _part(pair, pair.second.read(left), pair.second.read(right))
    if pair.first is not None:
        total = total - _part(pair, pair.first.read(left), pair.first.read(right))
    return total


def second_part(pair: LayerPair, left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> Tensor:
    """The second layer's share of ``conserved_form``: the scale that residuals are measured against."""
    return pair.degree * _part(pair, pair.second.read(left), pair.second.read(right))


def _part(pair: LayerPair, left: Float[Tensor, "h m"], right: Float[Tensor, "h m"]) -> Tensor:
    if pair.law is Law.FULL:
        product = left @ right.mT
        return (product + product.mT) / 2
    diagonal = (left * right).sum(-1)
    if pair.law is Law.ROTATION_PAIRS:
        return rotation_blocks(diagonal, pair.rotation).sum(-1)
    if pair.law is Law.NORM:
        return diagonal.sum().reshape(1)
    return diagonal


def rotation_blocks(per_unit: Float[Tensor, " h"], rotation: str) -> Float[Tensor, "pairs two"]:
    """Entries of units that are rotated together side by side: units i and i + h/2 (``half``) or 2i and 2i + 1."""
    if rotation == "half":
        return per_unit.reshape(2, -1).mT
    return per_unit.reshape(-1, 2)


def mean_balance(pair: LayerPair, quantity: Tensor) -> float:
    """lambda* = Tr(D) / n_h, the multiple of the identity nearest to D (the squared norm for the law of a layer)."""
    if pair.law is Law.FULL:
        return float(torch.trace(quantity)) / pair.n_hidden
    return float(quantity.sum()) / (1 if pair.law is Law.NORM else pair.n_hidden)


def spectrum(pair: LayerPair, quantity: Tensor) -> Float[Tensor, " k"]:
    """Values per direction whose mean is lambda*: eigenvalues of a full D, its diagonal, half of each pair's trace."""
    if pair.law is Law.FULL:
        return torch.linalg.eigvalsh(quantity)
    return (quantity / 2 if pair.law is Law.ROTATION_PAIRS else quantity).sort().values
