"""kerg2022, Table 2 of appendix B, with Fig. 2 (top) there: the copy task, and how many updates it takes."""

from __future__ import annotations

from separatrix.lab import Cell, Payload

from .accuracies import Compiled, Settings, memory_experiment, run_memory
from .accuracy_claims import learned_sooner, solved

MODELS = ("RelRNN", "LSTM", "orth-RNN", "expRNN", "MemRNN", "RelLSTM", "SAB")
PLAIN = ("LSTM", "orth-RNN", "expRNN")


def run(cell: Cell) -> Payload:
    """Train one network at one delay."""
    return run_memory(cell)


SCALES = {
    "smoke": Settings(
        models=MODELS,
        train_delays=(4,),
        delays=(),
        n_hidden=8,
        n_steps=4,
        tail_steps=0,
        n_test=10,
        n_valid=10,
        measure_every=2,
    ),
    "laptop": Compiled(
        models=MODELS,
        train_delays=(20,),
        delays=(),
        n_steps=7200,
        tail_steps=800,
    ),
    "paper": Settings(
        models=MODELS,
        train_delays=(100, 200, 300, 500, 1000, 2000),
        delays=(),
        n_steps=150_000,
        tail_steps=50_000,
        n_test=10_000,
        seeds=(0, 1, 2, 3, 4),
    ),
}

CLAIMS = (
    solved(
        "kerg2022-B-table2-RelRNN", "RelRNN solves the copy task at every delay it is trained at.", ("RelRNN",), 0.97
    ),
    solved(
        "kerg2022-B-table2-others",
        "RelLSTM, SAB, MemRNN and expRNN solve it as well.",
        ("RelLSTM", "SAB", "MemRNN", "expRNN"),
        0.97,
    ),
    learned_sooner(
        "kerg2022-B-fig2-copy",
        "RelRNN learns the copy task with significantly fewer updates than networks without attention.",
        "RelRNN",
        PLAIN,
        "section 4.6.1; Fig. 2 of appendix B",
        (300.0, 2000.0),
    ),
)

EXPERIMENT = memory_experiment(
    run,
    "kergB-table2",
    "The copy task at several delays, and updates until it is learned",
    "appendix B.4, Table 2 and Fig. 2",
    SCALES,
    CLAIMS,
)
