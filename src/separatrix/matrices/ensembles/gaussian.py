"""Families with Gaussian entries: independent, symmetric, antisymmetric, and everything in between."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, require_number
from separatrix.core.names import suggest_options

from .base import AbstractEnsemble, normal_entries
from .facts import Facts
from .rectangular import RectangularGaussian


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Gaussian(AbstractEnsemble):
    """Independent entries N(0, weight_var / width); the spectrum fills a disc of radius sqrt(weight_var)."""

    name: ClassVar[str] = "gaussian"
    law: ClassVar[str] = "independent entries N(0, weight_var / width)"
    label: ClassVar[str] = "independent entries"
    colour: ClassVar[str] = "blue"
    marker: ClassVar[str] = "o"

    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """Entries N(0, 1 / width)."""
        return normal_entries(*batch, width, width, generator=generator) / math.sqrt(width)

    def facts(self) -> Facts:
        """Correlation 0."""
        return Facts.gaussian(0.0)

    def rectangular(self) -> RectangularGaussian:
        """Independent entries in any shape."""
        return RectangularGaussian()


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class GOE(AbstractEnsemble):
    """Symmetric, variance weight_var / width off the diagonal and twice that on it; semicircle of radius 2 sqrt(V)."""

    name: ClassVar[str] = "goe"
    law: ClassVar[str] = "(A + A^T) / sqrt(2 width) with A standard normal, times sqrt(weight_var)"
    label: ClassVar[str] = "GOE"
    colour: ClassVar[str] = "green"
    marker: ClassVar[str] = "^"

    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """(A + A^T) / sqrt(2 width)."""
        entries = normal_entries(*batch, width, width, generator=generator)
        return (entries + entries.mT) / math.sqrt(2 * width)

    def facts(self) -> Facts:
        """Correlation 1."""
        return Facts.gaussian(1.0)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Antisymmetric(AbstractEnsemble):
    """Antisymmetric with Gaussian entries; the spectrum lies on the imaginary axis up to 2 sqrt(weight_var)."""

    name: ClassVar[str] = "antisymmetric"
    law: ClassVar[str] = "(A - A^T) / sqrt(2 width) with A standard normal, times sqrt(weight_var)"
    colour: ClassVar[str] = "purple"
    marker: ClassVar[str] = "v"

    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """(A - A^T) / sqrt(2 width)."""
        entries = normal_entries(*batch, width, width, generator=generator)
        return (entries - entries.mT) / math.sqrt(2 * width)

    def facts(self) -> Facts:
        """Correlation -1."""
        return Facts.gaussian(-1.0)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Elliptic(AbstractEnsemble):
    """Gaussian entries with E[W_ij W_ji] = tau weight_var / width: 1 is symmetric, 0 independent, -1 antisymmetric.

    The spectrum fills an ellipse with half-axes sqrt(weight_var) (1 + tau) and sqrt(weight_var) (1 - tau).
    """

    tau: float

    name: ClassVar[str] = "elliptic"
    law: ClassVar[str] = "sqrt((1 + tau) / 2) GOE + sqrt((1 - tau) / 2) antisymmetric, times sqrt(weight_var)"
    colour: ClassVar[str] = "sky"
    marker: ClassVar[str] = "P"

    def __post_init__(self) -> None:
        rule = "a number that lies in [-1, 1], the correlation of W_ij and W_ji"
        require_number(self.tau, "tau", at_least=-1, at_most=1, rule=rule)

    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """Symmetric and antisymmetric parts drawn independently and weighted."""
        symmetric = GOE().unit(width, generator=generator, batch=batch)
        antisymmetric = Antisymmetric().unit(width, generator=generator, batch=batch)
        return math.sqrt((1 + self.tau) / 2) * symmetric + math.sqrt((1 - self.tau) / 2) * antisymmetric

    @property
    def label(self) -> str:  # type: ignore[override]
        """With its correlation."""
        return f"elliptic, τ = {self.tau:g}"

    @classmethod
    def parse(cls, text: str) -> Elliptic:
        """``elliptic:0.5``."""
        try:
            tau = float(text)
        except ValueError:
            raise InvalidInput(f"elliptic:TAU needs a number as tau; got {text!r}.") from None
        return cls(tau)

    def facts(self) -> Facts:
        """Correlation tau."""
        return Facts.gaussian(self.tau)
