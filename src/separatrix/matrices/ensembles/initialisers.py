"""Fill a layer's weight in place from a matrix family, as ``torch.nn.init`` does, from an explicit generator.

``weight_var`` is the variance of an entry times the fan-in (the number of columns). Symmetric and antisymmetric
families refuse a weight that is not square; nothing falls back to another family.
"""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

from separatrix.core import InvalidInput, ShapeError

from .catalogue import find_ensemble
from .dense_block import Family
from .gaussian import GOE, Antisymmetric, Gaussian
from .invariant import Haar
from .rectangular import AbstractRectangularEnsemble

Target = TypeVar("Target", bound=nn.Module | Tensor)


@torch.no_grad()
def initialise_(
    target: Target, ensemble: Family, weight_var: float | int = 1.0, *, generator: torch.Generator
) -> Target:
    """Fill a weight from any family.

    Args:
        target: a parameter, a tensor, or a module with a ``weight`` (``nn.Linear``), which is filled in place.
        ensemble: a family or its name; one that is only square refuses another shape.
        weight_var: variance of an entry times the fan-in.
        generator: the source of randomness.

    Returns:
        The target.

    Example:
        >>> layer = torch.nn.Linear(4, 4)
        >>> initialise_(layer, "symmetric-orthogonal", 0.5, generator=torch.Generator().manual_seed(0)) is layer
        True
    """
    weight = _weight(target)
    if weight.ndim < 2:
        raise ShapeError(f"the weight must be a matrix (rows, columns); got shape {tuple(weight.shape)}.")
    *batch, rows, columns = weight.shape
    if isinstance(ensemble, AbstractRectangularEnsemble):
        form: AbstractRectangularEnsemble | None = ensemble
    else:
        ensemble = find_ensemble(ensemble)
        form = ensemble.rectangular()
        if form is None and rows != columns:
            raise ShapeError(
                f"the weight must be square for the {ensemble.name} family; got shape {tuple(weight.shape)}. "
                "Use a family that has a rectangular form, such as 'gaussian' or 'haar'."
            )
        if rows == columns:
            weight.copy_(ensemble.sample(rows, weight_var, generator=generator, batch=tuple(batch)))
            return target
    assert form is not None
    weight.copy_(form.sample(rows, columns, weight_var, generator=generator, batch=tuple(batch)))
    return target


def gaussian_(target: Target, weight_var: float | int = 1.0, *, generator: torch.Generator) -> Target:
    """Fill with independent N(0, weight_var / fan_in) entries; any matrix or batch of matrices.

    Args:
        target: a parameter, a tensor, or a module with a ``weight`` (``nn.Linear``), which is filled in place.
        weight_var: variance of an entry times the fan-in.
        generator: the source of randomness.

    Returns:
        The target.

    Example:
        >>> layer = torch.nn.Linear(3, 5)
        >>> gaussian_(layer, 0.5, generator=torch.Generator().manual_seed(0)) is layer
        True
    """
    return initialise_(target, Gaussian(), weight_var, generator=generator)


def haar_(target: Target, weight_var: float | int = 1.0, *, generator: torch.Generator) -> Target:
    """Fill with a uniform orthogonal matrix (semi-orthogonal if not square), entries of variance weight_var / fan_in.

    Unlike ``torch.nn.init.orthogonal_`` a tall weight is scaled so that its entries have the variance that
    ``gaussian_`` gives them; for square and wide weights the two scales agree.
    """
    return initialise_(target, Haar(), weight_var, generator=generator)


def goe_(target: Target, weight_var: float | int = 1.0, *, generator: torch.Generator) -> Target:
    """Fill a square weight with a symmetric Gaussian matrix (variance weight_var / width off the diagonal)."""
    return initialise_(target, GOE(), weight_var, generator=generator)


def antisymmetric_(target: Target, weight_var: float | int = 1.0, *, generator: torch.Generator) -> Target:
    """Fill a square weight with an antisymmetric Gaussian matrix (variance weight_var / width off the diagonal)."""
    return initialise_(target, Antisymmetric(), weight_var, generator=generator)


def _weight(target: nn.Module | Tensor) -> Tensor:
    if isinstance(target, Tensor):
        return target
    weight = dict(target.named_parameters(recurse=False)).get("weight")
    if weight is None:
        raise InvalidInput(f"target must be a tensor or a module with a weight; got {type(target).__name__}.")
    return weight
