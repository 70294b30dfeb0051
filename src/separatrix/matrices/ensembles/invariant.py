"""Families with a random orthogonal basis: given eigenvalues, given singular values, or a law in the plane."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, as_float64, as_tensor
from separatrix.core.names import suggest_options

from .base import AbstractEnsemble, haar_orthogonal
from .facts import REAL, Facts
from .rectangular import RectangularOrthogonal


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Haar(AbstractEnsemble):
    """sqrt(weight_var) times a uniformly distributed orthogonal matrix; every |eigenvalue| is sqrt(weight_var)."""

    name: ClassVar[str] = "haar"
    law: ClassVar[str] = "sqrt(weight_var) times an orthogonal matrix, uniform on the group"
    label: ClassVar[str] = "orthogonal"
    colour: ClassVar[str] = "vermilion"
    marker: ClassVar[str] = "s"

    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """Uniform on the orthogonal group."""
        return haar_orthogonal(width, width, generator=generator, batch=batch)

    def facts(self) -> Facts:
        """All singular values equal."""
        return Facts.two_sided(excess=0.0)

    def rectangular(self) -> RectangularOrthogonal:
        """Orthonormal rows or columns, entries of variance weight_var / columns."""
        return RectangularOrthogonal("fan_in")


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class SymmetricOrthogonal(AbstractEnsemble):
    """Symmetric and orthogonal up to scale: eigenvalues +sqrt(weight_var) and -sqrt(weight_var), half each."""

    name: ClassVar[str] = "symmetric-orthogonal"
    law: ClassVar[str] = "O diag(+1, ..., -1) O^T with balanced signs and O uniform, times sqrt(weight_var)"
    label: ClassVar[str] = "symmetric orthogonal"
    colour: ClassVar[str] = "orange"
    marker: ClassVar[str] = "D"

    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """A reflection; at odd width the odd sign is drawn."""
        basis = haar_orthogonal(width, width, generator=generator, batch=batch)
        signs = 1.0 - 2.0 * (torch.arange(width, device=basis.device) % 2).to(basis.dtype)
        flip = torch.randint(0, 2, (*batch, 1), generator=generator, device=basis.device).to(basis.dtype)
        signs = signs * (1 - 2 * flip)
        return (basis * signs[..., None, :]) @ basis.mT

    def facts(self) -> Facts:
        """Eigenvalues 1 and -1, half each."""
        return Facts.normal([1.0, -1.0])


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False)
class RotationInvariant(AbstractEnsemble):
    """Symmetric with a given law of eigenvalues and a uniform basis.

    Args:
        eigenvalues: a sample of the law, at least one value not zero. Only its shape counts: the matrix is scaled
            so that the mean squared eigenvalue is ``weight_var``.
    """

    eigenvalues: Any

    name: ClassVar[str] = "rotation-invariant"
    law: ClassVar[str] = "O diag(eigenvalues) O^T with O uniform, scaled to mean squared eigenvalue weight_var"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eigenvalues", _unit_sample(self.eigenvalues, "eigenvalues"))

    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """Eigenvalues by systematic resampling of the given sample."""
        values = _resample(self.eigenvalues, width, generator, batch)
        basis = haar_orthogonal(width, width, generator=generator, batch=batch)
        return (basis * values[..., None, :]) @ basis.mT

    def facts(self) -> Facts:
        """The given eigenvalues."""
        return Facts.normal(self.eigenvalues)


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False)
class BiInvariant(AbstractEnsemble):
    """Given law of singular values, independent uniform left and right bases.

    Args:
        singular_values: a sample of the law, not negative, at least one not zero. Only its shape counts: the matrix
            is scaled so that the mean squared singular value is ``weight_var``.
    """

    singular_values: Any

    name: ClassVar[str] = "bi-invariant"
    law: ClassVar[str] = "O1 diag(s) O2 with O1, O2 uniform, scaled to mean squared singular value weight_var"

    def __post_init__(self) -> None:
        values = _unit_sample(self.singular_values, "singular_values")
        if bool((values < 0).any()):
            raise InvalidInput(f"singular_values must be at least 0; got {float(values.min())} (after scaling).")
        object.__setattr__(self, "singular_values", values)

    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """Singular values by systematic resampling of the given sample."""
        values = _resample(self.singular_values, width, generator, batch)
        left = haar_orthogonal(width, width, generator=generator, batch=batch)
        right = haar_orthogonal(width, width, generator=generator, batch=batch)
        return (left * values[..., None, :]) @ right

    def facts(self) -> Facts:
        """The fourth moment of the given singular values."""
        return Facts.two_sided(excess=max(float(self.singular_values.pow(4).mean()) - 1, 0.0))


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False)
class Normal(AbstractEnsemble):
    """Real normal matrices with a given law of eigenvalues in the complex plane and a uniform basis.

    Args:
        eigenvalues: a sample of the law, closed under conjugation. Only its shape counts: the matrix is scaled so
            that the mean squared modulus is ``weight_var``.
    """

    eigenvalues: Any

    name: ClassVar[str] = "normal"
    law: ClassVar[str] = "O B O^T with O uniform, B of 1x1 blocks and rotations [[a, -b], [b, a]], scaled"

    def __post_init__(self) -> None:
        values = as_tensor(self.eigenvalues, "eigenvalues", dtype=torch.complex128).reshape(-1)
        power = float(values.abs().square().mean()) if values.numel() else 0.0
        if power == 0:
            raise InvalidInput("eigenvalues must hold at least one value that is not zero.")
        values = values / math.sqrt(power)
        if not _closed_under_conjugation(values):
            raise InvalidInput("eigenvalues must be closed under conjugation, as those of a real matrix are.")
        object.__setattr__(self, "eigenvalues", values)

    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """Real eigenvalues and conjugate pairs in their proportions, each by systematic resampling."""
        real = self.eigenvalues[self.eigenvalues.imag.abs() <= REAL].real
        upper = self.eigenvalues[self.eigenvalues.imag > REAL]
        n_pairs = _count_pairs(width, len(real), len(upper), generator)
        blocks = torch.zeros(*batch, width, width, dtype=torch.float64, device=generator.device)
        if n_pairs:
            picked = _resample(upper, n_pairs, generator, batch)
            first = torch.arange(n_pairs, device=generator.device) * 2
            blocks[..., first, first] = blocks[..., first + 1, first + 1] = picked.real
            blocks[..., first, first + 1] = -picked.imag
            blocks[..., first + 1, first] = picked.imag
        if 2 * n_pairs < width:
            rest = torch.arange(2 * n_pairs, width, device=generator.device)
            blocks[..., rest, rest] = _resample(real, len(rest), generator, batch)
        basis = haar_orthogonal(width, width, generator=generator, batch=batch)
        return basis @ blocks @ basis.mT

    def facts(self) -> Facts:
        """The given eigenvalues."""
        return Facts.normal(self.eigenvalues)


def _unit_sample(values: Any, name: str) -> Tensor:
    sample = as_float64(values, name).reshape(-1)
    power = float(sample.square().mean()) if sample.numel() else 0.0
    if power == 0:
        raise InvalidInput(f"{name} must hold at least one value that is not zero.")
    return (sample / math.sqrt(power)).sort().values


def _resample(sample: Tensor, count: int, generator: torch.Generator, batch: tuple[int, ...]) -> Tensor:
    """``count`` values with the proportions of the sample: one uniform shift per matrix, then equal strides.

    When ``count`` is a multiple of the sample's length every value appears equally often, so the spectrum does not
    fluctuate; otherwise the expected proportions are exact.
    """
    shift = torch.rand(*batch, 1, generator=generator, device=generator.device, dtype=torch.float64)
    strides = torch.arange(count, device=generator.device, dtype=torch.float64)
    index = ((strides + shift) * (len(sample) / count)).floor().long().clamp_max(len(sample) - 1)
    return sample.to(generator.device)[index]


def _closed_under_conjugation(values: Tensor) -> bool:
    def in_order(sample: Tensor) -> list[tuple[float, float]]:
        rounded = (torch.view_as_real(sample) * 1e10).round() / 1e10 + 0.0  # + 0.0 turns -0.0 into 0.0
        return sorted((float(re), float(im)) for re, im in rounded)

    return in_order(values) == in_order(values.conj().resolve_conj())


def _count_pairs(width: int, n_real: int, n_upper: int, generator: torch.Generator) -> int:
    if n_real == 0 and width % 2:
        raise InvalidInput(f"width must be even when no eigenvalue of the law is real; got {width}.")
    if n_real == 0:
        return width // 2
    shift = float(torch.rand((), generator=generator, device=generator.device, dtype=torch.float64))
    return min(math.floor(width * n_upper / (n_real + 2 * n_upper) + shift), width // 2) if n_upper else 0
