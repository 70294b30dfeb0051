"""Picard where it is fast enough, Anderson where it is not, decided for each sample from what it has shown."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true
from separatrix.core.arrays import require_integer
from separatrix.core.names import suggest_options

from ..maps.absorbed import Slots
from ..maps.counted import CountedMap
from ..maps.stacks import rows_from
from .anderson import Anderson, AndersonHistory
from .base import AbstractEquilibriumSolver, States

_TRIAL = 4
"""Residuals seen before a rate is believed."""
_OSCILLATION = -0.9
"""Cosine between successive residuals below which the iteration is said to alternate between two sides."""


class AutoHistory:
    """Anderson's differences, the last residuals, and which samples have left Picard."""

    def __init__(self, fixed_point_map: CountedMap, z: States, memory: int) -> None:
        self.fixed_point_map = fixed_point_map
        self.anderson = AndersonHistory(z, memory, ridge=None)
        self.last_residual: Tensor | None = None
        self.sizes: list[Tensor] = []
        self.accelerated = torch.zeros(z.shape[0], dtype=torch.bool, device=z.device)
        self.mixing = z.new_ones(z.shape[0], 1)
        self.damped = False


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class Auto(AbstractEquilibriumSolver[AutoHistory]):
    """Picard as long as it is predicted to need at most ``patience`` more steps, then Anderson.

    After four steps the rate of each sample is the geometric mean of its last three ratios of residuals, looked at anew
    at every step; a sample that goes over to Anderson stays there. If its residual changes sign at every step (a
    dominant eigenvalue near or below -1) its steps are damped by one half. Cost a step: that of Picard plus a
    copy of the state, which keeps the history from which Anderson would start.

    Args:
        memory: number of earlier steps kept for Anderson.
        patience: largest predicted number of further Picard steps.
    """

    memory: int = 5
    patience: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integer(self.memory, "memory", at_least=1)
        require_integer(self.patience, "patience", at_least=0)

    def begin(self, fixed_point_map: CountedMap, z: States) -> AutoHistory:
        """Everybody starts with Picard."""
        return AutoHistory(fixed_point_map, z, self.memory)

    def slots(self, history: AutoHistory) -> Slots:
        """Residual and image are written into Anderson's history at once."""
        return history.anderson.slots()

    def propose(self, history: AutoHistory, z: States, f: States, residual: States) -> States:
        """The Picard step, or Anderson's where a sample has gone over."""
        previous, history.last_residual = history.last_residual, residual
        history.anderson.count()
        history.sizes.append(torch.linalg.vector_norm(residual, dim=-1))
        if previous is None or len(history.sizes) < _TRIAL:
            return f
        self._decide(history, f, residual, previous)
        if not any_true(history.accelerated):
            return f
        step = self._accelerated_step(history, f, residual)
        return rows_from(step, history.accelerated, f)

    def _accelerated_step(self, history: AutoHistory, f: Tensor, residual: Tensor) -> Tensor:
        mixing = history.mixing if history.damped else 1.0
        if history.anderson.n_seen % Anderson.period == 0:
            return history.anderson.mixed(mixing)
        return f - (1 - mixing) * residual if history.damped else f

    def _decide(self, history: AutoHistory, f: Tensor, residual: Tensor, previous: Tensor) -> None:
        now, before = history.sizes[-1], history.sizes[-_TRIAL]
        rate = (now / before) ** (1 / (_TRIAL - 1))
        measure = now / torch.linalg.vector_norm(f, dim=-1) if self.stop == "rel" else now
        remaining = torch.log(measure / self.tolerance(history.fixed_point_map.rounding)) / -torch.log(rate)
        leaves = ~history.accelerated & ~((rate < 1) & (remaining <= self.patience))
        if any_true(leaves):
            cosine = torch.linalg.vecdot(residual, previous) / (now * history.sizes[-2])
            alternates = leaves & (cosine < _OSCILLATION)
            history.mixing = torch.where(alternates.unsqueeze(-1), 0.5, history.mixing)
            history.damped = history.damped or any_true(alternates)
            history.accelerated = history.accelerated | leaves
