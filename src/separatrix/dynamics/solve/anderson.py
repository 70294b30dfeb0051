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
    """The last differences of residuals and of images, and the Gram matrix of the former."""

    def __init__(self, z: States, memory: int) -> None:
        batch, dim = z.shape
        self.memory = memory
        self.residual_steps = z.new_zeros(batch, memory, dim)
        self.image_steps = z.new_zeros(batch, memory, dim)
        self.gram = z.new_zeros(batch, memory, memory)
        self.last: tuple[Tensor, Tensor] | None = None
        self.n_seen = 0

    @property
    def filled(self) -> int:
        """How many differences there are."""
        return min(self.n_seen, self.memory)

    def remember(self, f: States, residual: States) -> None:
        """Take in the image and the residual of one more step."""
        if self.last is not None:
            slot = self.n_seen % self.memory
            torch.sub(f, self.last[0], out=self.image_steps[:, slot])
            torch.sub(residual, self.last[1], out=self.residual_steps[:, slot])
            self.n_seen += 1
            n = self.filled
            row = inner_products(self.residual_steps[:, :n], self.residual_steps[:, slot])
            self.gram[:, slot, :n] = row
            self.gram[:, :n, slot] = row
        self.last = (f, residual)

    def weights(self, residual: States, ridge: float | None) -> Tensor:
        """Least-squares weights of the differences; zero, which means a Picard step, where they cannot be computed."""
        n = self.filled
        projection = inner_products(self.residual_steps[:, :n], residual)
        gram = self.gram[:, :n, :n]
        scale = gram.diagonal(dim1=-2, dim2=-1).clamp_min(torch.finfo(gram.dtype).tiny).rsqrt()
        scaled = gram * (scale.unsqueeze(-1) * scale.unsqueeze(-2))
        # the diagonal of the scaled matrix is one: adding the ridge on it is all the regularisation there is
        scaled.diagonal(dim1=-2, dim2=-1).add_(ridge if ridge is not None else _default_ridge(gram.dtype))
        factor, failed = torch.linalg.cholesky_ex(scaled)
        weights = torch.cholesky_solve((scale * projection).unsqueeze(-1), factor).squeeze(-1) * scale
        usable = (failed == 0) & torch.isfinite(weights).all(-1)
        return torch.where(usable.unsqueeze(-1), weights, 0.0)

    def step(self, f: States, residual: States, ridge: float | None, mixing: float | Tensor = 1.0) -> States:
        """The mixed point: the image and residual that the differences predict to be smallest."""
        if self.n_seen == 0:
            return f - (1 - mixing) * residual if isinstance(mixing, Tensor) or mixing != 1 else f
        weights = self.weights(residual, ridge)
        image = f - combination(weights, self.image_steps[:, : self.filled])
        if not isinstance(mixing, Tensor) and mixing == 1:
            return image
        return image - (1 - mixing) * (residual - combination(weights, self.residual_steps[:, : self.filled]))


@final
@dataclasses.dataclass(frozen=True, kw_only=True)
class Anderson(AbstractEquilibriumSolver[AndersonHistory]):
    """Least-squares mixing of the last ``memory`` steps of each sample.

    The Gram matrix is scaled to unit diagonal before the ridge is added: an absolute ridge, as other libraries use,
    stalls once residuals are smaller than its square root. Cost a step beyond the map: three passes over
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
        return AndersonHistory(z, self.memory)

    def propose(self, history: AndersonHistory, z: States, f: States, residual: States) -> States:
        """The mixed step; the first is a Picard step."""
        history.remember(f, residual)
        return history.step(f, residual, self.ridge, self.mixing)


def _default_ridge(dtype: torch.dtype) -> float:
    return 1e-8 if dtype == torch.float32 else 1e-12
