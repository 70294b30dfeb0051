"""Anderson acceleration of type II, with a history per sample."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true
from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options

from ..maps.absorbed import Slots
from ..maps.compiled import loops, runs_compiled
from ..maps.counted import CountedMap
from ..maps.stacks import combination
from .base import AbstractEquilibriumSolver, States


class AndersonHistory:
    """The last images and residuals of each sample, in slots that are used in turn."""

    def __init__(self, z: States, memory: int, ridge: float | None) -> None:
        batch, dim = z.shape
        self.ridge = ridge if ridge is not None else _default_ridge(z.dtype)
        self.residuals = z.new_empty(batch, memory + 1, dim)
        self.images = z.new_empty(batch, memory + 1, dim)
        self.n_seen = 0

    def slots(self) -> Slots:
        """Where the next residual and its image must be written before they are counted."""
        return Slots(self.residuals, self.images, self.n_seen % self.residuals.shape[1])

    def count(self) -> None:
        """One more step lies in its slots."""
        self.n_seen += 1

    def mixed(self, mixing: float | Tensor = 1.0) -> States:
        """The combination of the last images whose residual is predicted to be smallest."""
        n_filled = min(self.n_seen, self.images.shape[1])
        if _is_one(mixing) and runs_compiled(self.images):
            image = torch.empty_like(self.images[:, 0])
            newest = (self.n_seen - 1) % self.images.shape[1]
            loops().mix(self.residuals.numpy(), self.images.numpy(), n_filled, newest, float(self.ridge), image.numpy())
            return image
        residuals = self.residuals[:, :n_filled]
        weights = self._weights(residuals)
        image = combination(weights, self.images[:, :n_filled])
        if _is_one(mixing):
            return image
        return image - (1 - mixing) * combination(weights, residuals)

    def _weights(self, residuals: Tensor) -> Tensor:
        """Weights that sum to one; the newest alone, a Picard step, where they cannot be computed.

        The smallest combination of vectors with Gram matrix G under that constraint has weights along G^-1 1. The ridge
        multiplies the diagonal, so it does not depend on the size of the residuals.
        """
        gram = torch.bmm(residuals, residuals.mT).double()
        gram.diagonal(dim1=-2, dim2=-1).mul_(1 + self.ridge)
        factor, failed = torch.linalg.cholesky_ex(gram)
        if any_true(failed):  # residuals all alike, and rounding: a larger ridge before giving up
            gram.diagonal(dim1=-2, dim2=-1).mul_(1 + 100 * self.ridge)
            again, still = torch.linalg.cholesky_ex(gram)
            factor = torch.where((failed == 0)[:, None, None], factor, again)
            failed = torch.where(failed == 0, failed, still)
        weights = torch.cholesky_solve(torch.ones_like(gram[..., :1]), factor).squeeze(-1)
        weights /= weights.sum(-1, keepdim=True)
        if any_true(failed):
            newest = torch.zeros_like(weights[0])
            newest[(self.n_seen - 1) % self.images.shape[1]] = 1
            weights = torch.where((failed == 0).unsqueeze(-1), weights, newest)
        return weights.to(residuals.dtype)


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Anderson(AbstractEquilibriumSolver[AndersonHistory]):
    """Least-squares mixing of the last ``memory + 1`` steps of each sample, at every ``period``-th step.

    Between two mixings the steps are Picard steps (the periodic form of Banerjee, Suryanarayana and Pask, Chem. Phys.
    Lett. 647, 31, 2016): the history then holds more independent directions. Against mixing at every step it needs
    about as many evaluations on maps with a round spectrum, and down to a third of them on stretched ones (measured:
    71 against 196 on a symmetric map with eigenvalues from 0 to 0.99), at a third of the mixings.

    The ridge of the least-squares problem is relative to the diagonal of the Gram matrix: an absolute ridge, as other
    libraries use, stalls once residuals are smaller than its square root. Cost beyond the map: a copy of the state a
    step, and every ``period`` steps two passes over (batch, memory + 1, d) and one Cholesky factorisation of
    (memory + 1, memory + 1) per sample.

    Args:
        memory: number of earlier steps kept.
        period: mix at every so many steps; 1 is the classical method.
        mixing: weight of the residual in a step; 1 is the standard method.
        ridge: relative ridge; by default the rounding error of an inner product, 1.2e-7 in single precision, and 1e-14
            in double.
    """

    memory: int = 5
    period: int = 3
    mixing: float = 1.0
    ridge: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.memory, "memory", at_least=1)
        require_integer(self.period, "period", at_least=1)
        if not 0 < self.mixing <= 1:
            raise InvalidInput(f"mixing must lie in (0, 1]; got {self.mixing}.")
        if self.ridge is not None and not self.ridge >= 0:
            raise InvalidInput(f"ridge must not be negative; got {self.ridge}.")

    def begin(self, fixed_point_map: CountedMap, z: States) -> AndersonHistory:
        """Room for ``memory + 1`` steps."""
        return AndersonHistory(z, self.memory, self.ridge)

    def slots(self, history: AndersonHistory) -> Slots:
        """Residual and image are written into the history at once."""
        return history.slots()

    def propose(self, history: AndersonHistory, z: States, f: States, residual: States) -> States:
        """The mixed step if it is time for one, else a Picard step."""
        history.count()
        if history.n_seen == 1 or history.n_seen % self.period:
            return f if _is_one(self.mixing) else f - (1 - self.mixing) * residual
        return history.mixed(self.mixing)


def _is_one(mixing: float | Tensor) -> bool:
    return not isinstance(mixing, Tensor) and mixing == 1


def _default_ridge(dtype: torch.dtype) -> float:
    return max(torch.finfo(dtype).eps, 1e-14)
