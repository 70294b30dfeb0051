"""The networks of kerg2022's chapter 4, built and trained as a row of hyperparameters says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from separatrix.core.names import choose
from separatrix.sources.kerg2022.screening import ScreeningRow

from ..trained.models import glorot_core

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from separatrix.lab import Cell
    from separatrix.training import TrainingSettings

SCREENED = ("RelRNN", "RelLSTM")
FULL = ("MemRNN", "MemLSTM")
RECURRENT = ("orth-RNN", "expRNN", "LSTM", "h-detach")
"""Without attention."""


def arithmetic(cell: Cell) -> AbstractContextManager[None]:
    """The backend that a cell names, torch if it names none: a cell repeats bit for bit on one machine."""
    from separatrix.core import use_backend

    return use_backend(cell.args.get("backend", "torch"))


def named_backend(backend: str) -> dict[str, str]:
    """What a cell says of it: nothing for torch, so that cells from before there was another keep their names."""
    return {} if backend == "torch" else {"backend": backend}


def build_core(row: ScreeningRow, n_inputs: int, n_hidden: int, generator: Any, **options: Any) -> Any:
    """The recurrent core of a row; options are those of the attentive classes."""
    from separatrix import nn

    places = row.n_buffer, row.n_relevant
    made = {
        "RelRNN": lambda: nn.RelRNN(
            n_inputs, n_hidden, *places, nonlinearity=row.nonlinearity, generator=generator, **options
        ),
        "RelLSTM": lambda: nn.RelLSTM(n_inputs, n_hidden, *places, generator=generator, **options),
        "MemRNN": lambda: nn.MemRNN(n_inputs, n_hidden, nonlinearity=row.nonlinearity, generator=generator, **options),
        "MemLSTM": lambda: nn.MemLSTM(n_inputs, n_hidden, generator=generator, **options),
        "SAB": lambda: nn.SAB(n_inputs, n_hidden, generator=generator),
        "h-detach": lambda: nn.HDetachLSTM(n_inputs, n_hidden, p=0.5, generator=generator),
        "GORU": lambda: nn.GORU(n_inputs, n_hidden, generator=generator),
        "orth-RNN": lambda: nn.FreeRNN(n_inputs, n_hidden, nonlinearity=row.nonlinearity, generator=generator),
        "expRNN": lambda: nn.ExpRNN(
            n_inputs, n_hidden, start="henaff", nonlinearity=row.nonlinearity, generator=generator
        ),
        "LSTM": lambda: glorot_core("LSTM", n_inputs, n_hidden, generator),
        "RNN": lambda: glorot_core("RNN", n_inputs, n_hidden, generator),
    }
    return made[choose("model", row.model, made)]()


def training_settings(
    row: ScreeningRow, n_steps: int, *, clip: float, lr_factor: float = 1.0, **options: Any
) -> TrainingSettings:
    """Optimiser and rates of a row, times a factor; further options are those of ``TrainingSettings``."""
    from separatrix.training import ParameterGroup, TrainingSettings

    orthogonal = row.model == "expRNN" and row.lr_orth is not None
    groups = (ParameterGroup(names="core.matrix.*", lr=row.lr_orth * lr_factor),) if orthogonal else ()  # type: ignore[operator]
    return TrainingSettings(
        n_steps=n_steps,
        lr=row.lr * lr_factor,
        optimiser=row.optimiser,  # type: ignore[arg-type]
        groups=groups,
        clip_norm=clip,
        **options,
    )
