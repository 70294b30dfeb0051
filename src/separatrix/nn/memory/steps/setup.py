"""What one run of an attentive network is made of, what it begins with and what it leaves behind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import final

from torch import Tensor

from ..keeping.screening import AbstractScreening
from .alignment import AbstractAlignment
from .cells import AbstractCell


@final
@dataclasses.dataclass(frozen=True)
class Setup:
    """All that is fixed and needs no gradient."""

    make_cell: Callable[[Tensor | None], AbstractCell]
    alignment: AbstractAlignment
    mix: tuple[float, float] | None
    """``s = a h + b c``; ``None`` for both side by side."""
    n_buffer: int | None
    """``None`` for a memory of everything."""
    n_relevant: int
    screening: AbstractScreening | None
    detach_memory: bool
    logs: bool
    """Whether attention is written down."""
    lengths: Tensor | None
    entering: Tensor | None
    """Inputs, time first, for policies that look at them."""


@final
@dataclasses.dataclass(frozen=True)
class Carried:
    """A memory from before: states without gradient, their steps and scores."""

    values: Tensor
    index: Tensor
    scores: Tensor


@final
@dataclasses.dataclass
class RunRecord:
    """What a run leaves behind besides its states."""

    states: Tensor | None = None
    """Macro-states, the initial one first, where they stand in one table."""
    weights: Tensor | None = None
    index: Tensor | None = None
    memory: Carried | None = None
    relevant: Tensor | None = None
    scores: Tensor | None = None


@final
@dataclasses.dataclass(frozen=True)
class Given:
    """Tensors that a gradient may be wanted of."""

    drives: Tensor
    state: Tensor
    carried_cell: Tensor | None
    projection: Tensor
    key: Tensor
    vector: Tensor | None
    bias: Tensor | None
