"""What a recurrent matrix is by itself: spectrum, non-normality, Schur form. No judgement about the network."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, final

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from separatrix.core import Result
from separatrix.core.arithmetic.eigenvalues import eig
from separatrix.matrices import (
    complex_schur_form,
    kreiss_constant,
    numerical_abscissa,
    schur_parts,
)

KREISS_LIMIT = 48
"""Units up to which the Kreiss constant is computed, in about a second; ``matrices.kreiss_constant`` has more."""
_ANGLE_BINS = 36
_BINS = 24


@final
@dataclasses.dataclass(frozen=True, repr=False)
class SchurPicture(Result):
    """The Schur form in lower-triangular convention, blocks by falling modulus and then rising angle."""

    angle_histogram: Int[Tensor, " 36"]
    """Eigenvalues by angle, 36 bins from 0 to 2 pi."""
    modulus_edges: Float[Tensor, " e"]
    modulus_histogram: Int[Tensor, " _"]
    diagonal_means: Float[Tensor, " d"]
    """Mean modulus of the entries of the k-th sub-diagonal, k = 1 .. N - 1, with entries inside 2 x 2 blocks."""
    feedforward_means: Float[Tensor, " d"]
    """The same without them: what Schur modes feed forward."""
    entry_edges: Float[Tensor, " f"]
    entry_histogram: Int[Tensor, " _"]
    """Moduli of the entries below the blocks."""
    form: Float[Tensor, "n n"] = dataclasses.field(repr=False)
    """|form|, for a picture."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class BlockMeasures(Result):
    """Measures of one square recurrent matrix."""

    gate: str
    size: int
    spectral_radius: float
    largest_singular: float
    smallest_singular: float
    frobenius: float
    henrici: float
    relative_henrici: float
    numerical_abscissa: float
    kreiss: float | None
    """None where the radius exceeds one (it is infinite) or the matrix is large (it takes long)."""
    eigenbasis_condition: float
    """Condition number of the matrix of unit eigenvectors; infinite if they do not span the space."""
    eigenvalues: Complex[Tensor, " n"]
    schur: SchurPicture | None = None
    """None for complex matrices, whose Schur form is triangular."""

    def row(self) -> dict[str, Any]:
        """The numbers for a table."""
        return {
            "gate": self.gate,
            "radius": self.spectral_radius,
            "largest singular": self.largest_singular,
            "smallest singular": self.smallest_singular,
            "Henrici": self.henrici,
            "relative Henrici": self.relative_henrici,
            "abscissa": self.numerical_abscissa,
            "Kreiss": self.kreiss,
            "eigenbasis condition": self.eigenbasis_condition,
        }


def measured_blocks(matrices: Mapping[str, Tensor]) -> list[BlockMeasures]:
    """All measures of square matrices of one size by the names of their gates, in double precision.

    Source:
        kerg2022, sections 2.3 and 3.4; Figure 3 of chapter 3.

    Cost: a Schur form, an eigenbasis and singular values each, O(n^3); up to 48 units Kreiss constants besides.
    """
    blocks = [_measured(gate, matrix) for gate, matrix in matrices.items()]
    small = [k for k, block in enumerate(blocks) if block.spectral_radius <= 1 and block.size <= KREISS_LIMIT]
    if small:  # all at once: most of the time is spent on small operations
        stacked = torch.stack([list(matrices.values())[k].to(torch.complex128) for k in small])
        constants = kreiss_constant(stacked, n_radii=12, n_angles=64).tolist()
        for k, constant in zip(small, constants, strict=True):
            blocks[k] = dataclasses.replace(blocks[k], kreiss=constant)
    return blocks


def _measured(gate: str, matrix: Tensor) -> BlockMeasures:
    """All but the Kreiss constant."""
    wide = matrix.to(torch.complex128 if matrix.is_complex() else torch.float64)
    triangle = complex_schur_form(wide)
    eigenvalues, departure = triangle.diagonal(), float(torch.linalg.matrix_norm(triangle.triu(1)))
    eigenvalues = eigenvalues[eigenvalues.abs().argsort(descending=True)]
    size = float(torch.linalg.matrix_norm(wide))
    singular = torch.linalg.svdvals(wide)
    radius = float(eigenvalues.abs().max())
    return BlockMeasures(
        gate=gate,
        size=len(wide),
        spectral_radius=radius,
        largest_singular=float(singular[0]),
        smallest_singular=float(singular[-1]),
        frobenius=size,
        henrici=departure,
        relative_henrici=departure / size if size else 0.0,
        numerical_abscissa=float(numerical_abscissa(wide)),
        kreiss=None,
        eigenbasis_condition=_eigenbasis_condition(wide),
        eigenvalues=eigenvalues,
        schur=None if wide.is_complex() else schur_picture(wide, eigenvalues),
    )


def schur_picture(matrix: Float[Tensor, "n n"], values: Complex[Tensor, " n"]) -> SchurPicture:
    """Histograms of a real Schur form and the means of its sub-diagonals."""
    parts = schur_parts(matrix)
    form, size = parts.schur_form, len(matrix)
    angles = torch.remainder(values.angle(), 2 * math.pi)
    turn = torch.clamp((angles * (_ANGLE_BINS / (2 * math.pi))).long(), max=_ANGLE_BINS - 1)
    below = (~torch.eye(size, dtype=torch.bool)).tril() & (parts.rotations == 0)
    entries = parts.feedforward.abs()[below]
    modulus_histogram, modulus_edges = _histogram(values.abs())
    entry_histogram, entry_edges = _histogram(entries)
    return SchurPicture(
        angle_histogram=torch.bincount(turn, minlength=_ANGLE_BINS),
        modulus_edges=modulus_edges,
        modulus_histogram=modulus_histogram,
        diagonal_means=_diagonal_means(form.abs(), torch.ones_like(below)),
        feedforward_means=_diagonal_means(form.abs(), below),
        entry_edges=entry_edges,
        entry_histogram=entry_histogram,
        form=form.abs(),
    )


def _diagonal_means(form: Tensor, counted: Tensor) -> Tensor:
    rows = []
    for k in range(1, len(form)):
        entries, kept = form.diagonal(-k), counted.diagonal(-k)
        rows.append(entries[kept].mean() if bool(kept.any()) else torch.zeros((), dtype=form.dtype))
    return torch.stack(rows) if rows else form.new_zeros(0)


def _histogram(values: Tensor) -> tuple[Tensor, Tensor]:
    top = float(values.max()) if len(values) else 1.0
    found = torch.histogram(values.double().cpu(), _BINS, range=(0.0, top or 1.0))
    return found.hist.long(), found.bin_edges


def _eigenbasis_condition(matrix: Tensor) -> float:
    try:
        vectors = eig(matrix)[1]
    except torch.linalg.LinAlgError:
        return math.inf
    values = torch.linalg.svdvals(vectors)
    return float(values[0] / values[-1]) if float(values[-1]) > 0 else math.inf
