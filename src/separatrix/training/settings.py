"""Everything one training run is decided by, beside model and data: one flat, frozen page of settings."""

from __future__ import annotations

import dataclasses
from typing import Any, Final, Literal, final

from separatrix.core.arrays import require_integer, require_positive
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options

MOMENTS: Final = {"adam": (0.9, 0.999), "sgd": (0.9, 0.0), "rmsprop": (0.0, 0.99)}
"""By optimiser, the usual decay of the first and of the second moment."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class ParameterGroup:
    """Parameters with a learning rate or a decay of their own.

    Args:
        names: a pattern of parameter names with ``*`` and ``?`` (``"rnn.basis.*"``), as in ``named_parameters``.
        lr: peak learning rate of the group; that of the settings if not given.
        weight_decay: times the parameter, is added to its gradient before the optimiser scales it.
    """

    names: str
    lr: float | None = None
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.names, str) or not self.names:
            raise InvalidInput(f"names must be a pattern of parameter names; got {self.names!r}.")
        if self.lr is not None:
            require_positive(self.lr, "lr")
        if not 0 <= self.weight_decay < float("inf"):
            raise InvalidInput(f"weight_decay must be a number of at least 0; got {self.weight_decay!r}.")


@final
@suggest_options
@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """The settings of a run; saved in its checkpoint, which can only be resumed with equal ones.

    Args:
        n_steps: number of updates.
        lr: peak learning rate.
        optimiser: ``"adam"``, ``"sgd"`` or ``"rmsprop"``.
        beta1: decay of the first moment (Adam), or the momentum (SGD, RMSprop); 0.9 if not given, 0 for RMSprop.
        beta2: decay of the second moment: 0.999 (Adam) or 0.99 (RMSprop, there called alpha) if not given.
        groups: parameters with a rate or a decay of their own; the first group whose pattern fits counts.
        schedule: ``"constant"``, or ``"cosine"`` down to zero at ``n_steps``; both after the warm-up.
        warmup_steps: updates over which the learning rate grows linearly to ``lr``.
        clip_norm: largest norm of the gradient, ``None`` to leave it as it is.
        measure_every: steps between two measurements; ``None`` measures at the end only.
        watch: name of a measured number; the state with its best value is kept (``TrainingRun.best``).
        best: whether the ``"least"`` or the ``"greatest"`` value is the best.
        plateau_factor: all learning rates are multiplied by this after a measurement without a new best value (0.5
            halves them); ``None`` leaves them. Needs ``watch``.
        reset_every: steps after which a carried state begins anew (an epoch); ``None`` never.
        log_every: steps between two records of the loss.
        save_every: steps between two checkpoints; ``None`` saves by the clock alone.
        save_seconds: a checkpoint is written when the last one is older than this.
    """

    n_steps: int
    lr: float
    optimiser: Literal["adam", "sgd", "rmsprop"] = "adam"
    beta1: float | None = None
    beta2: float | None = None
    groups: tuple[ParameterGroup, ...] = ()
    schedule: Literal["constant", "cosine"] = "constant"
    warmup_steps: int = 0
    clip_norm: float | None = None
    measure_every: int | None = None
    watch: str | None = None
    best: Literal["least", "greatest"] = "least"
    plateau_factor: float | None = None
    reset_every: int | None = None
    log_every: int = 1
    save_every: int | None = None
    save_seconds: float = 60.0

    def __post_init__(self) -> None:
        require_integer(self.n_steps, "n_steps", at_least=0)
        require_integer(self.warmup_steps, "warmup_steps", at_least=0)
        require_integer(self.log_every, "log_every", at_least=1)
        require_positive(self.lr, "lr")
        require_positive(self.save_seconds, "save_seconds")
        for name in ("measure_every", "save_every", "reset_every"):
            if getattr(self, name) is not None:
                require_integer(getattr(self, name), name, at_least=1)
        if self.clip_norm is not None:
            require_positive(self.clip_norm, "clip_norm")
        choose("optimiser", self.optimiser, MOMENTS)
        choose("best", self.best, ("least", "greatest"))
        self._settle_moments()
        self._check_watch()
        if not isinstance(self.groups, tuple) or not all(isinstance(group, ParameterGroup) for group in self.groups):
            raise InvalidInput(f"groups must be a tuple of ParameterGroup; got {self.groups!r}.")
        choose("schedule", self.schedule, ("constant", "cosine"))
        if self.schedule == "cosine" and 0 < self.n_steps <= self.warmup_steps:
            raise InvalidInput(
                f"warmup_steps must be below n_steps for a cosine to begin; got {self.warmup_steps} of {self.n_steps}."
            )

    def _settle_moments(self) -> None:
        for name, usual in zip(("beta1", "beta2"), MOMENTS[self.optimiser], strict=True):
            value = usual if getattr(self, name) is None else getattr(self, name)
            if not 0 <= value < 1:
                raise InvalidInput(f"{name} must lie in [0, 1); got {value}.")
            object.__setattr__(self, name, value)  # so that a checkpoint holds the number itself

    def _check_watch(self) -> None:
        if self.watch is not None and not isinstance(self.watch, str):
            raise InvalidInput(f"watch must be the name of a measured number; got {self.watch!r}.")
        if self.plateau_factor is None:
            return
        if not 0 < self.plateau_factor <= 1:
            raise InvalidInput(f"plateau_factor must lie in (0, 1]; got {self.plateau_factor!r}.")
        if self.watch is None:
            raise InvalidInput("plateau_factor needs watch, the name of the measured number that may stand still.")

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return dataclasses.asdict(self)
