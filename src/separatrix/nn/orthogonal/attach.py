"""Keep a square weight of any layer orthogonal, and hold an orthogonal matrix inside a module of our own."""

from __future__ import annotations

from typing import Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import default_generator

from .catalogue import find_orthogonal_map
from .manifold import AbstractOrthogonalMap, nearest_orthogonal
from .starts import STARTS

Layer = TypeVar("Layer", bound=nn.Module)


@suggest_options
class OrthogonalMatrix(nn.Module):
    """An orthogonal matrix as part of a module: a map and its free numbers as parameters under their own names.

    Made by recurrent cores; for a layer of your own, ``make_orthogonal_`` is the shorter way.
    """

    def __init__(
        self,
        map: AbstractOrthogonalMap,
        start: str | None,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        generator = default_generator(generator)
        super().__init__()
        require_real_dtype(dtype, map)
        self.map = map.to(dtype)
        wanted = dtype.to_complex() if map.is_complex else dtype
        free = map.right_inverse(map.sample(start, generator=generator).to(wanted))
        for name, value in zip(map.free_names, free if isinstance(free, tuple) else (free,), strict=True):
            self.register_parameter(name, nn.Parameter(value.to(dtype)))

    def forward(self) -> Tensor:
        """The matrix."""
        matrix: Tensor = self.map(*(getattr(self, name) for name in self.map.free_names))
        return matrix

    @torch.no_grad()
    def assign_(self, matrix: Tensor) -> OrthogonalMatrix:
        """Become a given member."""
        free = self.map.right_inverse(matrix)
        for name, value in zip(self.map.free_names, free if isinstance(free, tuple) else (free,), strict=True):
            self.get_parameter(name).copy_(value)
        return self


def require_real_dtype(dtype: object, map: AbstractOrthogonalMap) -> None:
    """Refuse a precision that free numbers of a map cannot have."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise InvalidInput(f"dtype must be a real floating-point precision; got {dtype!r}.")
    if map.is_complex and dtype not in (torch.float32, torch.float64):
        raise InvalidInput(f"dtype must be float32 or float64 with the complex map {map.name!r}; got {dtype}.")


def require_unparametrized(layer: nn.Module, name: str) -> None:
    """Refuse a weight that something else already computes."""
    if parametrize.is_parametrized(layer, name):
        raise InvalidInput(
            f"the layer's {name!r} must be a plain weight; it is parametrised already. Take that off first with "
            "torch.nn.utils.parametrize.remove_parametrizations."
        )


def make_orthogonal_(
    layer: Layer,
    map: str | AbstractOrthogonalMap = "exp",
    *,
    name: str = "weight",
    start: str = "nearest",
    generator: torch.Generator | None = None,
) -> Layer:
    """Keep a square weight of a layer orthogonal from now on, whatever optimiser moves it.

    Args:
        layer: any module with a square matrix of that name; its ``state_dict`` holds the free numbers afterwards.
        map: a name of ``ORTHOGONAL_MAPS``, or an object with options of its own.
        name: of the parameter.
        start: ``"nearest"`` (the orthogonal matrix nearest to the present weight), an initialisation (``"henaff"``,
            ``"cayley"``, ``"haar"``, ``"identity"``, ``"uniform-skew"``), or ``"usual"`` for the map's own.
        generator: source of randomness of a start that needs one; seed 0 by default.

    Returns:
        The layer. Inside a loop over time read the weight once, or use ``torch.nn.utils.parametrize.cached()``.

    Raises:
        ShapeError: the weight is not a square matrix.
        InvalidInput: a start that the map does not reach, or a weight that is parametrised already.

    Example:
        >>> layer = make_orthogonal_(torch.nn.Linear(4, 4), "cayley", start="cayley")
        >>> bool((layer.weight.mT @ layer.weight - torch.eye(4)).abs().max() < 1e-5)
        True
    """
    weight = getattr(layer, name, None)
    if not isinstance(weight, Tensor) or weight.ndim != 2 or weight.shape[0] != weight.shape[1]:
        found = tuple(weight.shape) if isinstance(weight, Tensor) else type(weight).__name__
        raise ShapeError(f"the layer must have a square matrix {name!r}; got {found}.")
    require_unparametrized(layer, name)
    choose("start", start, ("nearest", "usual", *STARTS))
    found_map = find_orthogonal_map(map, weight.shape[0]).to(weight.abs().dtype)
    if start == "nearest":
        member = nearest_orthogonal(weight.detach())
    else:
        source = torch.Generator().manual_seed(0) if generator is None else generator
        member = found_map.sample(None if start == "usual" else start, generator=source)
    with torch.no_grad():
        if found_map.is_complex and not weight.is_complex():
            raise ShapeError(f"the {found_map.name} map is complex; the weight {name!r} is real.")
        weight.copy_(member)
    parametrize.register_parametrization(layer, name, found_map, unsafe=True)
    return layer


def orthogonality_penalty(
    weight: Float[Tensor, "rows columns"], norm: Literal["frobenius", "spectral"] = "frobenius"
) -> Float[Tensor, ""]:
    """The soft constraint: the squared norm of ``W'W - I``, to be added to a loss with a factor.

    Args:
        weight: any matrix; for a wide one ``W W' - I`` is meant.
        norm: ``"frobenius"``, or ``"spectral"`` for the largest deviation of a squared singular value.

    Source: kerg2022, appendix D.3.
    """
    choose("norm", norm, ("frobenius", "spectral"))
    gram = weight.mT @ weight if weight.shape[0] >= weight.shape[1] else weight @ weight.mT
    gap = gram - torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    if norm == "frobenius":
        return gap.square().sum()
    return torch.linalg.matrix_norm(gap, ord=2).square()
