"""Everything one training run is decided by, beside model and data: one flat, frozen page of settings."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, final

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """The settings of a run; saved in its checkpoint, which can only be resumed with equal ones.

    Args:
        n_steps: number of updates.
        lr: peak learning rate.
        optimiser: ``"adam"`` or ``"sgd"``.
        beta1: decay of the first moment (Adam), or the momentum (SGD).
        beta2: decay of the second moment (Adam).
        schedule: ``"constant"``, or ``"cosine"`` down to zero at ``n_steps``; both after the warm-up.
        warmup_steps: updates over which the learning rate grows linearly to ``lr``.
        clip_norm: largest norm of the gradient, ``None`` to leave it as it is.
        measure_every: steps between two measurements; ``None`` measures at the end only.
        log_every: steps between two records of the loss.
        save_every: steps between two checkpoints; ``None`` saves by the clock alone.
        save_seconds: a checkpoint is written when the last one is older than this.
    """

    n_steps: int
    lr: float
    optimiser: Literal["adam", "sgd"] = "adam"
    beta1: float = 0.9
    beta2: float = 0.999
    schedule: Literal["constant", "cosine"] = "constant"
    warmup_steps: int = 0
    clip_norm: float | None = None
    measure_every: int | None = None
    log_every: int = 1
    save_every: int | None = None
    save_seconds: float = 60.0

    def __post_init__(self) -> None:
        require_integer(self.n_steps, "n_steps", at_least=0)
        require_integer(self.warmup_steps, "warmup_steps", at_least=0)
        require_integer(self.log_every, "log_every", at_least=1)
        require_positive(self.lr, "lr")
        require_positive(self.save_seconds, "save_seconds")
        for name in ("measure_every", "save_every"):
            if getattr(self, name) is not None:
                require_integer(getattr(self, name), name, at_least=1)
        if self.clip_norm is not None:
            require_positive(self.clip_norm, "clip_norm")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidInput(f"{name} must lie in [0, 1); got {getattr(self, name)}.")
        choose("optimiser", self.optimiser, ("adam", "sgd"))
        choose("schedule", self.schedule, ("constant", "cosine"))
        if self.schedule == "cosine" and 0 < self.n_steps <= self.warmup_steps:
            raise InvalidInput(
                f"warmup_steps must be below n_steps for a cosine to begin; got {self.warmup_steps} of {self.n_steps}."
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return dataclasses.asdict(self)
