"""Do tokens lean to the directions that attention amplifies? Energy in an invariant subspace, against three nulls.

The subspace is the dominant r-dimensional invariant subspace of V_S (largest real parts, complex pairs whole). Energy
is the mean squared share of a vector in it; chance is r/d. The nulls: random subspaces; the subspaces of the other
layers; and the layer with its values rotated, V_h R with R a random rotation, whose singular values are the same. The
last one also moves the update, which lies in the amplified directions of its own matrix whatever the tokens are.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, require_integer
from separatrix.core.arithmetic.eigenvalues import eig
from separatrix.core.random import default_generator

from .layer import AttentionLayer
from .token_geometry import Interval

WHAT = ("tokens", "update", "output")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Null(Result):
    """The middle 95% of the energies that a null gives, and their mean; NaN if there is nothing to draw from."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, draws: Sequence[float]) -> Null:
        """The quantiles of draws."""
        if not draws:
            return cls(math.nan, math.nan, math.nan)
        values = torch.tensor(draws, dtype=torch.float64)
        low, high = torch.quantile(values, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
        return cls(float(values.mean()), low, high)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Alignment(Result):
    """Energy of one kind of vector in the dominant invariant subspace of one layer.

    Attributes:
        name: the layer.
        what: ``"tokens"`` that enter, the attention ``"update"``, or the ``"output"`` of the sublayer.
        rank: dimension r of the subspace.
        energy: mean over texts with its interval.
        chance: r/d.
        random, other_layers, rotated: the nulls.
    """

    name: str
    what: str
    rank: int
    energy: Interval
    chance: float
    random: Null
    other_layers: Null
    rotated: Null

    @property
    def above_chance(self) -> bool:
        """Whether the interval over texts lies above what random subspaces and rotated layers give."""
        beaten = [null.high for null in (self.random, self.rotated) if not math.isnan(null.high)]
        return bool(beaten) and self.energy.low > max(beaten)


def dominant_subspace(value: Float[Tensor, "d d"], rank: int) -> Float[Tensor, "d r"]:
    """Orthonormal basis of the invariant subspace of the ``rank`` eigenvalues of largest real part.

    A complex pair is kept whole: if the pair would be cut, the subspace has one dimension more.
    """
    require_integer(rank, "rank", at_least=1)
    d = value.shape[-1]
    if rank >= d:
        raise InvalidInput(f"rank must be smaller than the dimension {d}; got {rank}.")
    eigenvalues, vectors = eig(value.double())
    order = eigenvalues.real.argsort(descending=True, stable=True)
    chosen = eigenvalues[order]
    # In this order the members of a pair stand side by side; a pair that would be cut is kept whole.
    cut = bool(chosen[rank - 1].imag != 0) and bool((chosen[rank - 1].conj() == chosen[rank]).item())
    size = rank + 1 if cut and int((chosen[:rank].imag != 0).sum()) % 2 else rank
    columns = vectors[:, order[:size]]
    spanning = torch.cat([columns.real, columns.imag], dim=1)
    return torch.linalg.svd(spanning, full_matrices=False).U[:, :size]


def energy(vectors: Float[Tensor, "*batch n d"], basis: Float[Tensor, "d r"]) -> float:
    """Mean over vectors of the squared share in the span of ``basis``."""
    inside = (vectors @ basis).square().sum(dim=-1)
    return float((inside / vectors.square().sum(dim=-1)).mean())


def alignments(
    layers: Sequence[AttentionLayer],
    streams: Sequence[Sequence[Float[Tensor, "_ d"]]],
    *,
    rank: int = 8,
    n_null: int = 200,
    n_rotated: int = 20,
    generator: torch.Generator | None = None,
) -> list[list[Alignment]]:
    """For each layer the energies of its tokens, of its update and of its output.

    Args:
        layers: the layers.
        streams: for each layer the residual stream (n, d) of each text as it enters the layer.
        rank: dimension of the dominant subspace.
        n_null: random subspaces.
        n_rotated: rotated layers (each costs an eigendecomposition).
        generator: for the nulls.
    """
    generator = default_generator(generator)
    bases = [dominant_subspace(layer.value_sum, rank) for layer in layers]
    return [
        _of_layer(layer, texts, bases[i], bases[:i] + bases[i + 1 :], n_null, n_rotated, generator)
        for i, (layer, texts) in enumerate(zip(layers, streams, strict=True))
    ]


def _of_layer(
    layer: AttentionLayer,
    texts: Sequence[Tensor],
    basis: Float[Tensor, "d r"],
    others: Sequence[Tensor],
    n_null: int,
    n_rotated: int,
    generator: torch.Generator,
) -> list[Alignment]:
    d, r = basis.shape
    seen = _vectors(layer, texts)
    random = _orthonormal(n_null, d, r, generator)
    turned: dict[str, list[float]] = {what: [] for what in WHAT}
    for _ in range(n_rotated):
        rotation = _orthonormal(1, d, d, generator)[0]
        other = dataclasses.replace(layer, value=layer.value @ rotation)
        own = dominant_subspace(other.value_sum, r)
        for what, vectors in _vectors(other, texts).items():
            turned[what].append(float(_energies(_moment(vectors), own)))
    found = []
    for what in WHAT:
        moment = _moment(seen[what])
        found.append(
            Alignment(
                name=layer.name,
                what=what,
                rank=r,
                energy=Interval.over([energy(vectors, basis) for vectors in seen[what]]),
                chance=r / d,
                random=Null.of(_energies(moment, random).tolist()),
                other_layers=Null.of([float(_energies(moment, other)) for other in others]),
                rotated=Null.of(turned[what]),
            )
        )
    return found


def _vectors(layer: AttentionLayer, texts: Sequence[Tensor]) -> dict[str, list[Tensor]]:
    """Tokens in the variable of the flow, the update without its constant, and the stream after the sublayer."""
    tokens = [layer.read(text.double()) for text in texts]
    updates = [layer.update(read) for read in tokens]
    outputs = [text.double() + update for text, update in zip(texts, updates, strict=True)]
    if layer.writes_through is not None:
        outputs = [layer.writes_through(output) for output in outputs]
    moving = [update - layer.constant for update in updates]
    return {"tokens": tokens, "update": moving, "output": outputs}


def _moment(vectors: Sequence[Tensor]) -> Float[Tensor, "d d"]:
    """Second moment of the directions, averaged over tokens and then over texts: all that an energy depends on."""
    unit = [torch.nn.functional.normalize(tokens, dim=-1) for tokens in vectors]
    return torch.stack([tokens.mT @ tokens / len(tokens) for tokens in unit]).mean(dim=0)


def _energies(moment: Float[Tensor, "d d"], basis: Float[Tensor, "*batch d r"]) -> Float[Tensor, "*batch"]:
    return (basis * (moment @ basis)).sum(dim=(-2, -1))


def _orthonormal(count: int, d: int, r: int, generator: torch.Generator) -> Float[Tensor, "count d r"]:
    """Uniformly random orthonormal bases of r vectors."""
    q, triangle = torch.linalg.qr(torch.randn(count, d, r, generator=generator, dtype=torch.float64))
    return q * torch.diagonal(triangle, dim1=-2, dim2=-1).sign().unsqueeze(-2)
