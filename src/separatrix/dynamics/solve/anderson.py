"""Anderson acceleration of type II, in difference form, with a history per sample."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput

from .base import AbstractEquilibriumSolver, States
from .maps import CountedMap
from .stacks import combination, inner_products


class AndersonHistory:
    """The last differences of residuals and of images, and the Gram matrix of the former with its ridge.

    The ridge multiplies the diagonal by 1 + ridge, which is the same as scaling the matrix to unit diagonal, adding the
    ridge, and scaling back: it does not depend on the size of the residuals.
    """

    def __init__(self, z: States, memory: int, ridge: float | None) -> None:
        batch, dim = z.shape
        self.memory = memory
        self.ridge = ridge if ridge is not None else _default_ridge(z.dtype)
        self.residual_steps = z.new_zeros(batch, memory, dim)
        self.image_steps = z.new_zeros(batch, memory, dim)
        self.gram = z.new_zeros(batch, memory, memory)
        self.last: tuple[Tensor, Tensor] | None = None
        self.n_seen = 0

    def remember(self, f: States, residual: States) -> None:
        """Take in the image and the residual of one more step."""
        if self.last is not None:
            slot = self.n_seen % self.memory
            self.n_seen += 1
            newest = self.residual_steps[:, slot]
            torch.sub(f, self.last[0], out=self.image_steps[:, slot])
            torch.sub(residual, self.last[1], out=newest)
            filled = self._filled(self.residual_steps)
            row = inner_products(filled, newest)
            row[:, slot] *= 1 + self.ridge
            n = filled.shape[1]
            self.gram[:, slot, :n] = row
            self.gram[:, :n, slot] = row
        self.last = (f, residual)

    def step(self, f: States, residual: States, mixing: float | Tensor = 1.0) -> States:
        """The mixed point: the image and residual that the differences predict to be smallest."""
        plain = not isinstance(mixing, Tensor) and mixing == 1
        if self.n_seen == 0:
            return f if plain else f - (1 - mixing) * residual
        weights = self._weights(residual)
        image = f - combination(weights, self._filled(self.image_steps))
        if plain:
            return image
        return image - (1 - mixing) * (residual - combination(weights, self._filled(self.residual_steps)))

    def _weights(self, residual: Tensor) -> Tensor:
        """Least-squares weights of the differences; zero, which means a Picard step, where they cannot be computed."""
        projection = inner_products(self._filled(self.residual_steps), residual)
        n = projection.shape[1]
        factor, failed = torch.linalg.cholesky_ex(self.gram[:, :n, :n])
        weights = torch.cholesky_solve(projection.unsqueeze(-1), factor).squeeze(-1)
        if bool(failed.any()):
            weights = torch.where((failed == 0).unsqueeze(-1), weights, 0.0)
        return weights

    def _filled(self, stack: Tensor) -> Tensor:
        return stack if self.n_seen >= self.memory else stack[:, : self.n_seen]


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Anderson(AbstractEquilibriumSolver[AndersonHistory]):
    """Least-squares mixing of the last ``memory`` steps of each sample.

    The ridge of the least-squares problem is relative to the diagonal of the Gram matrix: an absolute ridge, as other
    libraries use, stalls once residuals are smaller than its square root. Cost a step beyond the map: three passes over
    (batch, memory, d) and one Cholesky factorisation of (memory, memory) per sample.

    Args:
        memory: number of differences kept.
        mixing: weight of the residual in the step; 1 is the standard method.
        ridge: relative ridge; by default 1e-8 in single and 1e-12 in double precision.
    """

    memory: int = 5
    mixing: float = 1.0
    ridge: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.memory, "memory", at_least=1)
        if not 0 < self.mixing <= 1:
            raise InvalidInput(f"mixing must lie in (0, 1]; got {self.mixing}.")
        if self.ridge is not None and not self.ridge >= 0:
            raise InvalidInput(f"ridge must not be negative; got {self.ridge}.")

    def begin(self, fixed_point_map: CountedMap, z: States) -> AndersonHistory:
        """Room for ``memory`` differences."""
        return AndersonHistory(z, self.memory, self.ridge)

    def propose(self, history: AndersonHistory, z: States, f: States, residual: States) -> States:
        """The mixed step; the first is a Picard step."""
        history.remember(f, residual)
        return history.step(f, residual, self.mixing)


def _default_ridge(dtype: torch.dtype) -> float:
    return 1e-8 if dtype == torch.float32 else 1e-12
