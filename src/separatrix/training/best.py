"""The best state of a run by a measured number, and learning rates that fall when it stands still."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, final

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose
from separatrix.core.result import Result

from .settings import TrainingSettings


@final
@dataclasses.dataclass(frozen=True, repr=False)
class BestState(Result):
    """The model at its best measurement; ``model.load_state_dict(best.state)`` goes back there."""

    step: int
    value: float
    state: dict[str, Any] = dataclasses.field(repr=False)


@final
class Watch:
    """Follows the watched number: keeps the best state, and the factor that learning rates have come to."""

    def __init__(self, settings: TrainingSettings) -> None:
        self._settings = settings
        self.best: BestState | None = None
        self.factor = 1.0

    def judge(self, model: nn.Module, step: int, values: dict[str, Any]) -> None:
        """Take a measurement into account; a value that is not finite is no improvement."""
        if self._settings.watch is None:
            return
        choose("measured number to watch", self._settings.watch, values)
        value = _one_number(values[self._settings.watch], self._settings.watch)
        if self._improves(value):
            self.best = BestState(step, value, _copied(model))
        elif self._settings.plateau_factor is not None:
            self.factor *= self._settings.plateau_factor

    def _improves(self, value: float) -> bool:
        if not math.isfinite(value):
            return False
        if self.best is None:
            return True
        return value < self.best.value if self._settings.best == "least" else value > self.best.value

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        best = None if self.best is None else dataclasses.asdict(self.best)
        return {"best": best, "factor": self.factor}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self.best = None if state["best"] is None else BestState(**state["best"])
        self.factor = state["factor"]


def _one_number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInput(
            f"a watched measurement must be one number; {name!r} is {value!r}. Members trained side by side have no "
            "common best state: train them one by one."
        ) from None


def _copied(model: nn.Module) -> dict[str, Any]:
    with torch.no_grad():
        return {
            name: value.detach().clone() if isinstance(value, Tensor) else value
            for name, value in model.state_dict().items()
        }
