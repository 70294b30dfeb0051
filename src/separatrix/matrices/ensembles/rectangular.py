"""Rectangular families.

``weight_var`` is the variance of an entry times the number of columns, the fan-in, so that both families keep the
mean square of their input at ``weight_var`` times it.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, require_integer
from separatrix.core.described import Described
from separatrix.core.names import suggest_options

from .base import Scale, haar_orthogonal, normal_entries, weight_scale


class AbstractRectangularEnsemble(Described, abc.ABC):
    """A family of random matrices of any shape; write ``name``, ``law`` and ``unit``."""

    name: ClassVar[str]
    law: ClassVar[str]

    @abc.abstractmethod
    def unit(
        self, rows: int, columns: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch rows columns"]:
        """Matrices at unit scale."""

    def sample(
        self,
        rows: int,
        columns: int,
        weight_var: Scale,
        *,
        generator: torch.Generator,
        batch: tuple[int, ...] = (),
        dtype: torch.dtype = torch.float64,
    ) -> Float[Tensor, "*batch rows columns"]:
        """Draw matrices of shape ``(*batch, rows, columns)``; arguments as in ``AbstractEnsemble.sample``."""
        rows = require_integer(rows, "rows", at_least=1)
        columns = require_integer(columns, "columns", at_least=1)
        scale = weight_scale(weight_var, tuple(batch)).to(generator.device)
        unit = self.unit(rows, columns, generator=generator, batch=tuple(batch))
        return (unit * scale[..., None, None]).to(dtype)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class RectangularGaussian(AbstractRectangularEnsemble):
    """Independent entries N(0, weight_var / columns)."""

    name: ClassVar[str] = "rectangular-gaussian"
    law: ClassVar[str] = "independent entries N(0, weight_var / columns)"

    def unit(
        self, rows: int, columns: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch rows columns"]:
        """Entries N(0, 1 / columns)."""
        return normal_entries(*batch, rows, columns, generator=generator) / math.sqrt(columns)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class RectangularOrthogonal(AbstractRectangularEnsemble):
    """Orthonormal rows or columns, uniform.

    Args:
        scale: ``"fan_in"`` gives an entry the variance weight_var / columns, as in ``RectangularGaussian``;
            ``"isometry"`` leaves the singular values at sqrt(weight_var). They differ for tall matrices, and the
            source document does not say which it used.
    """

    scale: str = "fan_in"

    name: ClassVar[str] = "rectangular-orthogonal"
    law: ClassVar[str] = "semi-orthogonal, uniform, times sqrt(weight_var) and a factor for tall matrices"

    def __post_init__(self) -> None:
        if self.scale not in ("fan_in", "isometry"):
            raise InvalidInput(f"scale must be 'fan_in' or 'isometry'; got {self.scale!r}.")

    def unit(
        self, rows: int, columns: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch rows columns"]:
        """Semi-orthogonal, times sqrt(max(rows, columns) / columns) for the fan-in scale."""
        factor = math.sqrt(max(rows, columns) / columns) if self.scale == "fan_in" else 1.0
        return factor * haar_orthogonal(rows, columns, generator=generator, batch=batch)
