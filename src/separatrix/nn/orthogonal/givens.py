"""Products of layers of plane rotations, each layer turning disjoint pairs of coordinates."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options

from .manifold import AbstractOrthogonalMap


@final
@suggest_options
class Givens(AbstractOrthogonalMap):
    """Layers that turn the pairs (0,1)(2,3).. and (1,2)(3,4).. by turns, the tunable form of the efficient unitary RNN.

    Args:
        n: size, even.
        capacity: number of layers, even, at most n; n(n-1)/2 angles and every rotation at capacity n.

    Source: kerg2022, section 3.3; the attribution by erratum kerg2022-eurnn.

    Cost: O(capacity n^2) to build the matrix, once an update.
    """

    name = "givens"
    free_names = ("angles",)

    def __init__(self, n: int, capacity: int = 2) -> None:
        super().__init__(n)
        require_integer(capacity, "capacity", at_least=2)
        if n % 2 or capacity % 2 or capacity > n:
            raise InvalidInput(
                f"n and capacity must be even, and capacity at most n; got n = {n}, capacity {capacity}."
            )
        self.capacity = capacity

    @property
    def n_angles(self) -> int:
        """n/2 angles in an even layer, n/2 - 1 in an odd one."""
        return self.capacity // 2 * (self.n - 1)

    def forward(self, *free: Tensor) -> Tensor:
        """The matrix: the first layer acts first."""
        even, odd = free[0].reshape(self.capacity // 2, self.n - 1).split([self.n // 2, self.n // 2 - 1], dim=1)
        matrix = torch.eye(self.n, dtype=free[0].dtype, device=free[0].device)
        for first, second in zip(even.unbind(0), odd.unbind(0), strict=True):
            matrix = _turned(matrix, first)
            matrix = torch.cat([matrix[:1], _turned(matrix[1:-1], second), matrix[-1:]])
        return matrix

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """Not known: a mesh of rotations is assigned only what it drew itself."""
        raise InvalidInput(_NO_INVERSE.format(name=self.name))

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Uniform angles, or none at all (``"identity"``)."""
        return (_draw_angles(self.name, self.n_angles, start, generator),)

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"{self.n}, capacity={self.capacity}"


@final
@suggest_options
class Fft(AbstractOrthogonalMap):
    """log2(n) layers of rotations, layer i turning coordinates n / 2^(i+1) apart, as a fast Fourier transform does.

    Args:
        n: size, a power of two of at least 2; n log2(n) / 2 angles.

    Source: kerg2022, section 3.3 and appendix D.3.
    """

    name = "fft"
    free_names = ("angles",)

    def __init__(self, n: int) -> None:
        super().__init__(n)
        if n < 2 or n & (n - 1):
            raise InvalidInput(f"n must be a power of two of at least 2 for the fft map; got {n}.")
        self.n_layers = n.bit_length() - 1

    def forward(self, *free: Tensor) -> Tensor:
        """The matrix: the widest pairs first."""
        matrix = torch.eye(self.n, dtype=free[0].dtype, device=free[0].device)
        for layer, angles in enumerate(free[0].reshape(self.n_layers, self.n // 2).unbind(0)):
            paired = matrix.reshape(2**layer, 2, self.n >> (layer + 1), self.n).transpose(1, 2)
            turned = _turned(paired.reshape(self.n, self.n), angles)
            matrix = turned.reshape(2**layer, self.n >> (layer + 1), 2, self.n).transpose(1, 2).reshape(self.n, self.n)
        return matrix

    def invert(self, matrix: Tensor) -> tuple[Tensor, ...]:
        """Not known: the family is smaller than all rotations, and is assigned only what it drew itself."""
        raise InvalidInput(_NO_INVERSE.format(name=self.name))

    def draw(self, start: str | None, *, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Uniform angles, or none at all (``"identity"``)."""
        return (_draw_angles(self.name, self.n_layers * self.n // 2, start, generator),)


_NO_INVERSE = "the {name} map has no inverse here; it starts from its own random angles, or from 'identity'."


def _turned(rows: Tensor, angles: Tensor) -> Tensor:
    """Rows 2k and 2k + 1 turned by angle k."""
    cos, sin = torch.cos(angles).unsqueeze(1), torch.sin(angles).unsqueeze(1)
    first, second = rows[0::2], rows[1::2]
    return torch.stack([cos * first - sin * second, sin * first + cos * second], dim=1).reshape(rows.shape)


def _draw_angles(name: str, count: int, start: str | None, generator: torch.Generator) -> Tensor:
    if start == "identity":
        return torch.zeros(count, dtype=torch.float64)
    if start is not None:
        raise InvalidInput(f"unknown start {start!r} of the {name} map: {_NO_INVERSE.format(name=name)}")
    return (2 * torch.rand(count, dtype=torch.float64, generator=generator) - 1) * math.pi
