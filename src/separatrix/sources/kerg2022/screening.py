"""Numbers that kerg2022 prints for relevancy screening: results of its tables, and hyperparameters as rows.

A table of hyperparameters is chosen by name (``--set table=copy``). Those named ``-found`` are ours: rates with which
the networks learn within a few thousand updates, where those of the document need many more.
"""

from __future__ import annotations

import dataclasses
from typing import Final, final

from separatrix.core.names import choose, suggest_options

OUT_OF_MEMORY: Final = None
"""What stands for an entry that is printed as OOM."""

TRANSFER_COPY: Final[dict[str, dict[int, float | None]]] = {
    "orth-RNN": {100: 0.99, 200: 0.04, 400: 0.16, 2000: 0.10, 5000: 0.0},
    "expRNN": {100: 1.0, 200: 0.86, 400: 0.73, 2000: 0.58, 5000: 0.50},
    "MemRNN": {100: 0.99, 200: 0.99, 400: 0.99, 2000: 0.92, 5000: OUT_OF_MEMORY},
    "RelRNN": {100: 1.0, 200: 0.99, 400: 0.99, 2000: 0.99, 5000: 0.99},
    "LSTM": {100: 0.99, 200: 0.64, 400: 0.48, 2000: 0.19, 5000: 0.14},
    "h-detach": {100: 1.0, 200: 0.91, 400: 0.77, 2000: 0.51, 5000: 0.42},
    "SAB": {100: 0.99, 200: 0.95, 400: 0.95, 2000: 0.95, 5000: 0.95},
    "RelLSTM": {100: 1.0, 200: 0.99, 400: 0.99, 2000: 0.99, 5000: 0.99},
}
"""Table 1 of chapter 4: accuracy at each delay of a network trained at 100."""

DENOISE: Final[dict[str, dict[int, float | None]]] = {
    "orth-RNN": {100: 0.90, 300: 0.71, 500: 0.61, 1000: 0.29, 2000: 0.03},
    "expRNN": {100: 0.34, 300: 0.25, 500: 0.20, 1000: 0.16, 2000: 0.11},
    "MemRNN": {100: 0.99, 300: 0.99, 500: 0.99, 1000: 0.99, 2000: OUT_OF_MEMORY},
    "RelRNN": {100: 1.0, 300: 0.99, 500: 0.99, 1000: 0.99, 2000: 0.99},
    "LSTM": {100: 0.82, 300: 0.41, 500: 0.33, 1000: 0.21, 2000: 0.15},
    "GORU": {100: 0.92, 300: 0.93, 500: 0.91, 1000: 0.93, 2000: 0.73},
    "SAB": {100: 0.99, 300: 0.99, 500: 0.99, 1000: 0.99, 2000: 0.99},
    "RelLSTM": {100: 1.0, 300: 0.99, 500: 0.99, 1000: 0.99, 2000: 0.99},
}
"""Table 2 of chapter 4: accuracy of networks trained at each delay."""

COPY: Final[dict[str, dict[int, float | None]]] = {
    "LSTM": {100: 1.0, 200: 1.0, 300: 1.0, 500: 0.12, 1000: 0.12, 2000: 0.12},
    "orth-RNN": {100: 1.0, 200: 1.0, 300: 1.0, 500: 1.0, 1000: 0.80, 2000: 0.11},
    "expRNN": {100: 1.0, 200: 1.0, 300: 1.0, 500: 1.0, 1000: 1.0, 2000: 1.0},
    "MemRNN": {100: 1.0, 200: 1.0, 300: 1.0, 500: 1.0, 1000: 1.0, 2000: OUT_OF_MEMORY},
    "SAB": {100: 1.0, 200: 1.0, 300: 1.0, 500: 1.0, 1000: 1.0, 2000: 1.0},
    "RelRNN": {100: 1.0, 200: 1.0, 300: 1.0, 500: 1.0, 1000: 1.0, 2000: 1.0},
    "RelLSTM": {100: 1.0, 200: 1.0, 300: 1.0, 500: 1.0, 1000: 1.0, 2000: 1.0},
}
"""Table 2 of appendix B: accuracy of networks trained at each delay."""

DENSE: Final[dict[str, dict[str, float | None]]] = {
    "RNN": {"bits": 1.56, "characters": 0.66, "pixels": 0.904},
    "orth-RNN": {"bits": 1.53, "characters": 0.66, "pixels": 0.934},
    "expRNN": {"bits": 1.49, "characters": 0.68, "pixels": 0.966},
    "RelRNN": {"bits": 1.43, "characters": 0.69, "pixels": 0.928},
    "LSTM": {"bits": 1.36, "characters": 0.73, "pixels": 0.911},
    "h-detach": {"bits": None, "characters": None, "pixels": 0.923},
    "SAB": {"bits": 1.37, "characters": None, "pixels": 0.942},
    "RelLSTM": {"bits": 1.36, "characters": 0.73, "pixels": 0.943},
}
"""Table 3 of chapter 4: bits per character, share of right characters, accuracy on permuted MNIST."""

MINIGRID: Final[dict[str, dict[str, float]]] = {
    "RedBlueDoors-6x6": {"MemLSTM": 0.97, "RelLSTM": 0.97},
    "GoToObject-6x6": {"MemLSTM": 0.85, "RelLSTM": 0.84},
    "MemoryS7": {"MemLSTM": 0.40, "RelLSTM": 0.94},
    "GoToDoor-5x5": {"MemLSTM": 0.17, "RelLSTM": 0.25},
    "Fetch-5x5": {"MemLSTM": 0.42, "RelLSTM": 0.50},
    "DoorKey-5x5": {"MemLSTM": 0.94, "RelLSTM": 0.93},
    "RedBlueDoors-8x8": {"MemLSTM": 0.95, "RelLSTM": 0.95},
    "GoToObject-8x8": {"MemLSTM": 0.66, "RelLSTM": 0.74},
    "MemoryS13": {"MemLSTM": 0.24, "RelLSTM": 0.30},
    "GoToDoor-8x8": {"MemLSTM": 0.11, "RelLSTM": 0.15},
    "Fetch-8x8": {"MemLSTM": 0.44, "RelLSTM": 0.45},
    "DoorKey-16x16": {"MemLSTM": 0.31, "RelLSTM": 0.44},
}
"""Table 1 of appendix B: mean reward; the first six are trained on, the others for transfer."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class ScreeningRow:
    """One row of hyperparameters: how a model is built and trained."""

    model: str
    lr: float
    optimiser: str = "adam"
    """``"adam"`` also where none is printed."""
    nonlinearity: str = "tanh"
    n_buffer: int = 0
    n_relevant: int = 0
    lr_orth: float | None = None
    """Of the orthogonal part."""


_ORTHOGONAL = (
    ScreeningRow("orth-RNN", 2e-4, "rmsprop", "modrelu"),
    ScreeningRow("expRNN", 2e-4, "rmsprop", "modrelu"),
    ScreeningRow("LSTM", 2e-4),
)
_FOUND = (
    ScreeningRow("orth-RNN", 5e-4, "rmsprop", "modrelu"),
    ScreeningRow("expRNN", 1e-3, "rmsprop", "modrelu", lr_orth=1e-4),
    ScreeningRow("RNN", 1e-3),
    ScreeningRow("LSTM", 3e-3),
    ScreeningRow("h-detach", 1e-3),
    ScreeningRow("SAB", 1e-3),
    ScreeningRow("GORU", 1e-3, "rmsprop"),
)

HYPERPARAMETERS: Final[dict[str, tuple[ScreeningRow, ...]]] = {
    "copy": (*_ORTHOGONAL, ScreeningRow("RelRNN", 2e-4, "adam", "tanh", 10, 10)),
    "denoise": (
        *_ORTHOGONAL,
        ScreeningRow("GORU", 1e-3, "rmsprop"),
        ScreeningRow("RelRNN", 2e-4, "rmsprop", "modrelu", 10, 10),
    ),
    "smnist": (
        ScreeningRow("orth-RNN", 1e-4, "adam", "modrelu"),
        ScreeningRow("expRNN", 1e-4, "adam", "modrelu", lr_orth=1e-5),
        ScreeningRow("LSTM", 2e-4),
        ScreeningRow("RelRNN", 3e-4, "adam", "modrelu", 10, 10),
    ),
    "ptb": (
        ScreeningRow("orth-RNN", 1e-3, "adam", "tanh"),
        ScreeningRow("expRNN", 3e-3, "adam", "tanh", lr_orth=3e-4),
        ScreeningRow("LSTM", 2e-4),
        ScreeningRow("RelRNN", 3e-4, "adam", "tanh", 10, 5),
    ),
    "copy-found": (
        *_FOUND,
        ScreeningRow("RelRNN", 1e-3, "adam", "tanh", 10, 15),
        ScreeningRow("RelLSTM", 1e-3, "adam", "tanh", 10, 15),
        ScreeningRow("MemRNN", 1e-3, "adam", "tanh"),
        ScreeningRow("MemLSTM", 1e-3, "adam", "tanh"),
    ),
    "denoise-found": (
        *_FOUND,
        ScreeningRow("RelRNN", 1e-3, "adam", "tanh", 5, 8),
        ScreeningRow("RelLSTM", 3e-3, "adam", "tanh", 5, 8),
        ScreeningRow("MemRNN", 1e-3, "adam", "tanh"),
        ScreeningRow("MemLSTM", 3e-3, "adam", "tanh"),
    ),
}
"""Tables 3 to 6 of appendix B, and ours."""


def screening_row(table: str, model: str) -> ScreeningRow:
    """A row by the names of its table and its model.

    Example:
        >>> screening_row("ptb", "RelRNN").n_relevant, screening_row("smnist", "expRNN").lr_orth
        (5, 1e-05)
    """
    rows = {row.model: row for row in HYPERPARAMETERS[choose("table", table, HYPERPARAMETERS)]}
    return rows[choose(f"model of table {table}", model, rows)]
