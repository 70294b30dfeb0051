"""What every matrix family promises, and the checks they share.

A family is declared at unit scale and sampled at ``weight_var``, the expected normalised trace of W^T W (for a
matrix with independent entries: the variance of an entry times the width). It says what it knows of itself as plain
``Facts``; what follows from them (moments, spectral edges, critical scales) is derived in ``separatrix.theory``.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, as_float64, require_integer
from separatrix.core.described import Described
from separatrix.core.doors.kinds import hyphenated

from .facts import Facts

if TYPE_CHECKING:
    from .rectangular import AbstractRectangularEnsemble

Scale: TypeAlias = float | int | Tensor
"""A non-negative number, or a tensor of them that broadcasts to the batch."""


class AbstractEnsemble(Described, abc.ABC):
    """A family of random square matrices.

    To add one, write ``law`` and ``unit`` (and ``name``, if the class's will not do); ``sample`` checks the
    arguments, draws in float64 and scales. With
    ``facts`` theory and advice cover the family; with ``rectangular`` it fills weights that are not square; ``label``,
    ``colour`` and ``marker`` are for figures. Enter it with ``register_ensemble`` (ours: in ``catalogue.py``) to have
    it found by name, and in the contract test.
    """

    name: ClassVar[str]
    """As on the command line; the name of the class, in small letters with hyphens, if left out."""

    law: ClassVar[str]
    """The distribution at unit scale, in one line."""

    label: ClassVar[str]
    """What figures call it; the name if left out."""

    colour: ClassVar[str] = "grey"
    """In figures: a name of the house's palette (``report.figures.house``)."""

    marker: ClassVar[str] = "x"
    """In figures: a marker of matplotlib."""

    _derived_name: ClassVar[bool]
    """Present in classes that were not given a name."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        given = vars(cls).get("name")
        if given is not None and not isinstance(given, str | property):
            raise InvalidInput(f"name of the family {cls.__name__} must be text; got {given!r}.")
        if getattr(cls, "name", None) is None or (given is None and "_derived_name" in vars(cls.__base__ or object)):
            cls.name = hyphenated(cls.__name__)
            cls._derived_name = True
        if not hasattr(cls, "label"):
            cls.label = cls.name

    @classmethod
    def parse(cls, text: str) -> AbstractEnsemble:
        """The family whose parameter is written ``text`` (of ``name:text``); for families with one parameter."""
        raise InvalidInput(f"the {cls.name} family takes no parameter; got {text!r}.")

    def facts(self) -> Facts | None:
        """What is known of the family at unit scale; ``None`` if no theory is to cover it."""
        return None

    def rectangular(self) -> AbstractRectangularEnsemble | None:
        """The form of the family with any number of rows and columns; ``None`` if it is only square."""
        return None

    @abc.abstractmethod
    def unit(
        self, width: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
    ) -> Float[Tensor, "*batch n n"]:
        """Matrices at unit scale, E tr W^T W = 1 (normalised trace) as the width grows."""

    def sample(
        self,
        width: int,
        weight_var: Scale,
        *,
        generator: torch.Generator,
        batch: tuple[int, ...] = (),
        dtype: torch.dtype = torch.float64,
    ) -> Float[Tensor, "*batch n n"]:
        """Draw matrices of shape ``(*batch, width, width)`` on the generator's device.

        Args:
            width: number of rows and columns, at least 1.
            weight_var: expected normalised trace of W^T W; a number or a tensor that broadcasts to ``batch``.
            generator: the source of randomness; the global one is not touched.
            batch: leading axes.
            dtype: of the result. Numbers are drawn in float64 and rounded, so seeds mean the same in every dtype.

        Raises:
            InvalidInput: ``width`` below 1, or ``weight_var`` negative or not finite.

        Cost: that of ``width**2`` normal numbers per matrix, and a QR factorisation for the families with a random
        basis.

        Example:
            >>> from separatrix.matrices.ensembles import Haar
            >>> generator = torch.Generator().manual_seed(0)
            >>> from separatrix.matrices import Haar
            >>> Haar().sample(3, 0.25, generator=generator, batch=(5,)).shape
            torch.Size([5, 3, 3])
        """
        width = require_integer(width, "width", at_least=1)
        scale = weight_scale(weight_var, tuple(batch)).to(generator.device)
        unit = self.unit(width, generator=generator, batch=tuple(batch))
        if unit.shape != (*batch, width, width):
            raise ShapeError(
                f"unit of the family {self.name!r} must give matrices of shape {(*batch, width, width)}; "
                f"got {tuple(unit.shape)}."
            )
        return (unit * scale[..., None, None]).to(dtype)


def weight_scale(weight_var: Scale, batch: tuple[int, ...]) -> Float[Tensor, ...]:
    """The square root of ``weight_var``, checked: finite, not negative, broadcastable to the batch."""
    variance = as_float64(weight_var, "weight_var")
    if bool((variance < 0).any()):
        raise InvalidInput(f"weight_var must be at least 0; got {float(variance.min())}.")
    try:
        fits = torch.broadcast_shapes(variance.shape, batch) == batch
    except RuntimeError:
        fits = False
    if not fits:
        raise InvalidInput(f"weight_var must broadcast to batch {batch}; got shape {tuple(variance.shape)}.")
    return variance.sqrt()


def normal_entries(*shape: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Float[Tensor, ...]:
    """Independent standard normal numbers on the generator's device."""
    return torch.randn(*shape, generator=generator, device=generator.device, dtype=dtype)


def haar_orthogonal(
    rows: int, columns: int, *, generator: torch.Generator, batch: tuple[int, ...] = ()
) -> Float[Tensor, "*batch rows columns"]:
    """Matrices with orthonormal columns (rows, if there are fewer), uniform on their manifold.

    QR of a normal matrix, each column of Q multiplied by the sign of the diagonal of R: without that sign the
    distribution depends on the convention of the factorisation and is not uniform.
    """
    tall = (max(rows, columns), min(rows, columns))
    q, r = torch.linalg.qr(normal_entries(*batch, *tall, generator=generator))
    signs = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q.dtype)
    q = q * signs[..., None, :]
    return q if rows >= columns else q.mT
