"""Anderson acceleration of type II, in difference form, with a history per sample."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput

from .base import AbstractEquilibriumSolver, FixedPointMap, States


@dataclasses.dataclass
class AndersonHistory:
    """Differences of successive residuals and images, and the Gram matrix of the former."""

    residual_steps: Tensor
    image_steps: Tensor
    gram: Tensor
    last_residual: Tensor | None = None
    last_image: Tensor | None = None
    n_seen: int = 0


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

    def begin(self, fixed_point_map: FixedPointMap, z: States) -> AndersonHistory:
        """Room for ``memory`` differences."""
        batch, dim = z.shape
        return AndersonHistory(
            residual_steps=z.new_zeros(batch, self.memory, dim),
            image_steps=z.new_zeros(batch, self.memory, dim),
            gram=z.new_zeros(batch, self.memory, self.memory),
        )

    def propose(self, history: AndersonHistory, z: States, f: States, residual: States) -> States:
        """The mixed step; the first is a Picard step."""
        if history.last_residual is None or history.last_image is None:
            history.last_residual, history.last_image = residual, f
            return f if self.mixing == 1 else z + self.mixing * residual
        self._remember(history, f, residual)
        weights = self._weights(history, residual)
        n = min(history.n_seen, self.memory)
        step = f - (weights.unsqueeze(-1) * history.image_steps[:, :n]).sum(1)
        if self.mixing == 1:
            return step
        mixed = residual - (weights.unsqueeze(-1) * history.residual_steps[:, :n]).sum(1)
        return step - (1 - self.mixing) * mixed

    def _remember(self, history: AndersonHistory, f: Tensor, residual: Tensor) -> None:
        assert history.last_residual is not None
        assert history.last_image is not None
        slot = history.n_seen % self.memory
        torch.sub(residual, history.last_residual, out=history.residual_steps[:, slot])
        torch.sub(f, history.last_image, out=history.image_steps[:, slot])
        history.last_residual, history.last_image = residual, f
        history.n_seen += 1
        # multiply and sum: a batched product with a one-column operand is several times slower on a CPU
        row = (history.residual_steps * history.residual_steps[:, slot : slot + 1]).sum(-1)
        history.gram[:, slot, :] = row
        history.gram[:, :, slot] = row

    def _weights(self, history: AndersonHistory, residual: Tensor) -> Tensor:
        n = min(history.n_seen, self.memory)
        projection = (history.residual_steps[:, :n] * residual.unsqueeze(1)).sum(-1)
        gram = history.gram[:, :n, :n]
        scale = gram.diagonal(dim1=-2, dim2=-1).clamp_min(torch.finfo(gram.dtype).tiny).rsqrt()
        ridge = self.ridge if self.ridge is not None else (1e-8 if gram.dtype == torch.float32 else 1e-12)
        scaled = gram * scale.unsqueeze(-1) * scale.unsqueeze(-2)
        scaled = scaled + ridge * torch.eye(n, dtype=gram.dtype, device=gram.device)
        factor, failed = torch.linalg.cholesky_ex(scaled)
        weights = torch.cholesky_solve((scale * projection).unsqueeze(-1), factor).squeeze(-1) * scale
        usable = (failed == 0) & torch.isfinite(weights).all(-1)
        return torch.where(usable.unsqueeze(-1), weights, torch.zeros_like(weights))  # else a Picard step
