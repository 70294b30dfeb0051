"""Hyperparameters that kerg2022 prints for its recurrent networks (appendix A, Tables 1, 2 and 4), as rows of tables.

A table is chosen by name (``--set table=psmnist``) and a row by model and size (``--set 'models=["nnRNN-512"]'``).
The tables whose names end in ``-release`` are the later settings of the authors' public code.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import final

from separatrix.core.names import choose, suggest_options


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class ModelRow:
    """One row: a model, its size and how it is trained."""

    model: str
    """``"nnRNN"``, ``"expRNN"``, ``"LSTM"``, ``"RNN-orth"``, ``"EURNN"`` or ``"RNN"``."""
    n_hidden: int
    lr: float
    alpha: float
    """Decay of RMSprop's second moment (of Adam's, in the release)."""
    lr_orth: float | None = None
    """Of the orthogonal part."""
    delta: float = 0.0
    """Factor of the penalty on moduli away from one."""
    decay: float = 0.0
    """Weight decay of T."""
    start: str = "glorot"
    """Initial recurrent matrix: ``"henaff"``, ``"cayley"``, ``"haar"`` (printed as random orth), ``"glorot"``."""
    optimiser: str = "rmsprop"
    clip: float | None = None

    @property
    def name(self) -> str:
        """``"expRNN-176"``."""
        return f"{self.model}-{self.n_hidden}"


_COPY = (
    ModelRow("nnRNN", 128, 5e-4, 0.99, 1e-6, 1e-4, 1e-6, "henaff"),
    ModelRow("expRNN", 128, 1e-3, 0.99, 1e-4, start="henaff"),
    ModelRow("expRNN", 176, 1e-3, 0.99, 1e-4, start="henaff"),
    ModelRow("LSTM", 128, 5e-4, 0.99),
    ModelRow("LSTM", 63, 1e-3, 0.99),
    ModelRow("RNN-orth", 128, 2e-4, 0.99, start="haar"),
    ModelRow("EURNN", 128, 1e-3, 0.5, start="own"),
    ModelRow("EURNN", 256, 1e-3, 0.5, start="own"),
    ModelRow("RNN", 128, 1e-3, 0.9),
)
_PSMNIST = (
    ModelRow("nnRNN", 512, 1.5e-4, 0.99, 1.5e-5, 0.15, 1e-4, "cayley"),
    ModelRow("expRNN", 512, 5e-4, 0.99, 5e-5, start="cayley"),
    ModelRow("expRNN", 722, 5e-4, 0.99, 5e-5, start="cayley"),
    ModelRow("LSTM", 512, 5e-4, 0.9),
    ModelRow("LSTM", 257, 5e-4, 0.9),
    ModelRow("RNN-orth", 512, 5e-5, 0.99, start="haar"),
    ModelRow("EURNN", 512, 1e-4, 0.9, start="own"),
    ModelRow("EURNN", 1024, 1e-4, 0.9, start="own"),
    ModelRow("RNN", 512, 1e-4, 0.9),
)
_PTB_BOTH = (
    ModelRow("expRNN", 1024, 5e-3, 0.9, 1e-4, start="cayley"),
    ModelRow("expRNN", 1386, 5e-3, 0.9, 1e-4, start="cayley"),
    ModelRow("LSTM", 1024, 8e-3, 0.9),
    ModelRow("EURNN", 1024, 1e-3, 0.9, start="own"),
    ModelRow("EURNN", 2048, 1e-3, 0.9, start="own"),
    ModelRow("RNN", 1024, 1e-5, 0.9),
)
_PTB_150 = (
    ModelRow("nnRNN", 1024, 8e-4, 0.9, 8e-5, 1.0, 1e-4, "cayley"),
    *_PTB_BOTH,
    ModelRow("LSTM", 475, 1e-3, 0.99),
    ModelRow("RNN-orth", 1024, 1e-4, 0.9, start="haar"),
)
_PTB_300 = (
    ModelRow("nnRNN", 1024, 8e-4, 0.9, 6e-5, 1e-4, 1e-4, "cayley"),
    *_PTB_BOTH,
    ModelRow("LSTM", 475, 3e-3, 0.9),
    ModelRow("RNN-orth", 1024, 1e-4, 0.9, start="cayley"),
)


def _replaced(rows: Iterable[ModelRow], *new: ModelRow) -> tuple[ModelRow, ...]:
    """The rows with others in the place of those with the same name."""
    by_name = {row.name: row for row in new}
    return tuple(by_name.get(row.name, row) for row in rows)


TABLES: dict[str, tuple[ModelRow, ...]] = {
    "copy": _COPY,
    "psmnist": _PSMNIST,
    "ptb-150": _PTB_150,
    "ptb-300": _PTB_300,
    "copy-release": _replaced(_COPY, ModelRow("nnRNN", 128, 5e-4, 0.99, 1e-6, 1e-4, 1e-6, "cayley")),
    "psmnist-release": _replaced(_PSMNIST, ModelRow("nnRNN", 512, 2e-4, 0.99, 2e-5, 0.1, 1e-4, "cayley")),
    "ptb-150-release": _replaced(
        _PTB_150,
        ModelRow("nnRNN", 1024, 2e-3, 0.9, 2e-4, 1e-4, 1e-5, "cayley", "adam", 10.0),
        ModelRow("expRNN", 1386, 8e-3, 0.9, 8e-4, start="cayley"),
    ),
    "ptb-300-release": _replaced(_PTB_300, ModelRow("nnRNN", 1024, 2e-3, 0.9, 2e-4, 1e-4, 1e-6, "cayley", "adam", 5.0)),
}


def model_row(table: str, name: str) -> ModelRow:
    """A row by the name of its table and its own: ``"nnRNN-128"``, or ``"nnRNN"`` for the first of that model.

    Example:
        >>> model_row("copy", "expRNN-176").lr, model_row("ptb-300", "nnRNN").delta
        (0.001, 0.0001)
    """
    rows = TABLES[choose("table", table, TABLES)]
    first = {row.model: row for row in reversed(rows)}
    by_name = {**{row.name: row for row in rows}, **first}
    return by_name[choose(f"model of table {table}", name, by_name)]
