"""Recurrent networks whose matrix stays orthogonal or unitary, by any of ten parametrisations."""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor

from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options
from separatrix.core.random import default_generator

from ..orthogonal.attach import OrthogonalMatrix
from ..orthogonal.catalogue import find_orthogonal_map
from ..orthogonal.givens import Givens
from ..orthogonal.householder import Householder
from ..orthogonal.manifold import AbstractOrthogonalMap
from ..orthogonal.singular import SingularMargin
from .elman_core import AbstractElman


@final
@suggest_options
class OrthogonalRNN(AbstractElman):
    """``h' = modReLU(V h + U x; b)`` with V orthogonal (real maps) or unitary (complex maps) at every step of training.

    Any torch optimiser keeps V on its manifold: the parametrisation sees to it in the forward pass of training. Give
    the parameters below ``matrix.`` a rate of their own, about a tenth of the others.

    Args:
        input_size: features of a step.
        hidden_size: N.
        map: ``"exp"``, ``"cayley"``, ``"householder"``, ``"givens"``, ``"fft"``, ``"urnn"``, ``"full_capacity"``,
            ``"lie_u"``, ``"complex_cayley"``, ``"svd"``, or a map object with options of its own.
        start: initial V: ``"henaff"``, ``"cayley"``, ``"haar"``, ``"identity"``, ``"uniform-skew"``; by default
            Henaff's for ``"exp"`` and ``"svd"``, and the map's own for the others.
        nonlinearity: ``"modrelu"``, ``"tanh"``, ``"relu"`` or ``"linear"``; complex maps take the first and the last.
        batch_first: as in torch, but true by default.
        generator: source of randomness; by default one with seed 0.
        dtype: of the parameters.

    Source: kerg2022, sections 2.4 and 3.3, appendix D.

    Example:
        >>> rnn = OrthogonalRNN(3, 8)
        >>> output, h_n = rnn(torch.zeros(2, 5, 3))
        >>> output.shape, h_n.shape
        (torch.Size([2, 5, 8]), torch.Size([1, 2, 8]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        map: str | AbstractOrthogonalMap = "exp",
        *,
        start: str | None = None,
        nonlinearity: str = "modrelu",
        batch_first: bool = True,
        generator: torch.Generator | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, nonlinearity=nonlinearity, batch_first=batch_first)
        generator = default_generator(generator)
        chart = find_orthogonal_map(map, self.hidden_size)
        self.is_complex = chart.is_complex
        if self.is_complex and self.nonlinearity not in ("modrelu", "linear"):
            raise InvalidInput(f"nonlinearity must be 'modrelu' or 'linear' with the complex map {chart.name!r}.")
        if start is None and chart.name in ("exp", "svd"):
            start = "henaff"
        self.matrix = OrthogonalMatrix(chart, start, generator=generator, dtype=dtype)
        self._build_input(generator, dtype)

    def recurrent(self) -> Tensor:
        """V."""
        matrix: Tensor = self.matrix()
        return matrix


def ExpRNN(input_size: int, hidden_size: int, **options: Any) -> OrthogonalRNN:
    """``OrthogonalRNN`` by the exponential map, rebased at every step; further options are those of that class."""
    return OrthogonalRNN(input_size, hidden_size, "exp", **options)


def ScoRNN(input_size: int, hidden_size: int, **options: Any) -> OrthogonalRNN:
    """``OrthogonalRNN`` by the scaled Cayley transform, half of the signs negative."""
    return OrthogonalRNN(input_size, hidden_size, "cayley", **options)


def HouseholderRNN(
    input_size: int, hidden_size: int, n_reflections: int | None = None, **options: Any
) -> OrthogonalRNN:
    """``OrthogonalRNN`` by a product of reflections (oRNN)."""
    return OrthogonalRNN(input_size, hidden_size, Householder(hidden_size, n_reflections), **options)


def EURNN(input_size: int, hidden_size: int, capacity: int = 2, **options: Any) -> OrthogonalRNN:
    """``OrthogonalRNN`` by layers of plane rotations (Jing et al. 2017)."""
    return OrthogonalRNN(input_size, hidden_size, Givens(hidden_size, capacity), **options)


def URNN(input_size: int, hidden_size: int, **options: Any) -> OrthogonalRNN:
    """``OrthogonalRNN`` by the recipe of the first unitary network, 7N numbers."""
    return OrthogonalRNN(input_size, hidden_size, "urnn", **options)


def SVDRNN(input_size: int, hidden_size: int, margin: float = 0.1, **options: Any) -> OrthogonalRNN:
    """``OrthogonalRNN`` whose singular values may leave one by a margin (Vorontsov et al. 2017)."""
    return OrthogonalRNN(input_size, hidden_size, SingularMargin(hidden_size, margin), **options)
