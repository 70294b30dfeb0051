"""kerg2022, Table 1 of chapter 4: networks trained on the copy task at one delay answer at longer ones."""

from __future__ import annotations

from separatrix.lab import Cell, Claim, Payload, crossed, in_turn

from ..models import RECURRENT
from .accuracies import ACCURACY, Compiled, Settings, memory_experiment, run_memory
from .accuracy_claims import ALL_DELAYS, UNLEARNED, fully_trained, keeps, loses, shifted, solved

MODELS = ("RelRNN", "orth-RNN", "expRNN", "LSTM", "RelLSTM", "MemRNN", "h-detach", "SAB")


def run(cell: Cell) -> Payload:
    """Train one network at the delay of training and let it answer at all."""
    return run_memory(cell)


SCALES = {
    "smoke": Settings(
        models=MODELS,
        train_delays=(5,),
        delays=(5, 10, 40),
        n_hidden=12,
        n_steps=4,
        tail_steps=2,
        n_test=10,
        n_valid=10,
        measure_every=2,
    ),
    "laptop": Compiled(models=MODELS[:5]),  # MemRNN, h-detach and SAB: --set models=...
    "paper": Settings(models=MODELS, seeds=(0, 1, 2, 3, 4), n_steps=150_000, tail_steps=50_000, n_test=10_000),
}

CLAIMS = (
    solved(
        "kerg2022-ch4-table1-RelRNN",
        "RelRNN trained at a delay of 100 is right at delays up to 5000 (printed: .99 at least).",
        ("RelRNN",),
        0.97,
        trained_only=False,
    ),
    solved(
        "kerg2022-ch4-table1-RelLSTM",
        "RelLSTM does exactly as RelRNN: right at all delays.",
        ("RelLSTM",),
        0.97,
        trained_only=False,
    ),
    Claim(
        id="kerg2022-ch4-table1-attentive",
        statement="MemRNN and SAB keep a good accuracy at longer delays (printed: .92 at least).",
        measures="share of right symbols at all delays",
        test=f"95 % interval above .9 at every delay{UNLEARNED}",
        judge=keeps(("MemRNN", "SAB"), 0.9),
        counterfeit=in_turn(shifted(("MemRNN", "SAB"), 0.5), fully_trained(("MemRNN", "SAB"))),
        genuine=shifted(("MemRNN", "SAB"), 0.99),
        needs=ALL_DELAYS,
        scale="laptop",
    ),
    Claim(
        id="kerg2022-ch4-table1-recurrent",
        statement="Networks without attention that answer at the delay of training all fail to transfer.",
        measures="share of right symbols at the longest delay, of those with .9 at the delay of training",
        test="95 % interval below .7; a network that did not learn tells nothing",
        needs=(crossed(ACCURACY, "model", ("trained_at", "delay")), *ALL_DELAYS),
        as_a_whole=(ACCURACY,),
        judge=loses(RECURRENT, 0.9, 0.7),
        counterfeit=shifted(RECURRENT, 0.99),
        genuine=in_turn(shifted(RECURRENT, 0.99), shifted(RECURRENT, 0.3, longest_only=True)),
        scale="laptop",
    ),
)

EXPERIMENT = memory_experiment(
    run, "kerg4-table1", "Transfer of the copy task to longer delays", "Table 1, section 4.6.1", SCALES, CLAIMS
)
