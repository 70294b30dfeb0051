"""kerg2022, Table 2 of chapter 4, with Figs. 2 (bottom), 3 and 4 of appendix B: the denoise task."""

from __future__ import annotations

from separatrix.lab import Cell, Claim, Payload, groups, in_turn

from .accuracies import ACCURACY, Compiled, Settings, memory_experiment, run_memory
from .accuracy_claims import LEARNED, ahead, learned_sooner, loses, shifted, solved

MODELS = ("RelLSTM", "LSTM", "expRNN", "orth-RNN", "GORU", "RelRNN", "MemLSTM", "SAB")
PLAIN = ("LSTM", "expRNN", "orth-RNN", "GORU")


def run(cell: Cell) -> Payload:
    """Train one network and let it answer, at the delay of training and at longer ones."""
    return run_memory(cell)


SMALL = {
    "task": "denoise",
    "table": "denoise-found",
    "n_items": 4,
    "n_hidden": 64,
    "batch_size": 32,
    "train_delays": (20,),
    "delays": (20, 40, 100, 400),
}

SCALES = {
    "smoke": Settings(
        models=MODELS,
        task="denoise",
        table="denoise-found",
        n_items=2,
        n_hidden=8,
        train_delays=(4,),
        delays=(4, 8),
        n_steps=4,
        tail_steps=0,
        n_test=10,
        n_valid=10,
        measure_every=2,
    ),
    "laptop": Compiled(models=MODELS, n_steps=3400, tail_steps=600, **SMALL),  # type: ignore[arg-type]
    "paper": Settings(
        models=("RelRNN", "LSTM", "expRNN", "orth-RNN", "GORU"),
        task="denoise",
        table="denoise",
        train_delays=(100, 300, 500, 1000, 2000),
        delays=(),
        n_steps=150_000,
        tail_steps=50_000,
        n_test=10_000,
        seeds=(0, 1, 2, 3, 4),
    ),
}

CLAIMS = (
    solved("kerg2022-ch4-table2-RelLSTM", "RelLSTM solves the denoise task.", ("RelLSTM",), 0.9, real=0.99),
    solved(
        "kerg2022-ch4-table2-RelRNN",
        "RelRNN solves the denoise task, exactly as RelLSTM does.",
        ("RelRNN",),
        0.9,
        real=0.99,
    ),
    Claim(
        id="kerg2022-ch4-table2-ahead",
        statement="On denoise a screened network outperforms all purely recurrent ones.",
        measures="RelLSTM minus LSTM, expRNN, orth-RNN and GORU, at the delay of training",
        test=f"95 % interval of each difference over problems above 0; below {LEARNED:g} of the best nothing is told",
        judge=ahead("RelLSTM", PLAIN),
        counterfeit=in_turn(shifted(("RelLSTM",), 0.01), shifted(PLAIN, 0.9)),
        genuine=shifted(("RelLSTM",), 0.999),
        scale="laptop",
    ),
    learned_sooner(
        "kerg2022-B-fig2-denoise",
        "Screened networks learn denoise with significantly fewer updates than the others.",
        "RelLSTM",
        PLAIN,
        "section 4.6.1; Figs. 2, 3 and 4 of appendix B",
        (510.0, 3950.0),
    ),
    Claim(
        id="screening-denoise-transfer",
        statement="What a RelLSTM learned of denoise does not carry over to sequences twenty times as long.",
        measures="share of right symbols at twenty times the delay of training",
        test="95 % interval below .6, if it learned the delay of training (.85)",
        needs=(groups(ACCURACY, ("model", "delay"), ("RelLSTM", 20), ("RelLSTM", 400)),),
        as_a_whole=(ACCURACY,),
        judge=loses(("RelLSTM",), 0.85, 0.6),
        counterfeit=shifted(("RelLSTM",), 0.95),
        genuine=lambda summary: shifted(("RelLSTM",), 0.3, longest_only=True)(shifted(("RelLSTM",), 0.95)(summary)),
        document="separatrix",
        place=f"longer delays ({ACCURACY})",
        scale="laptop",
    ),
)

EXPERIMENT = memory_experiment(
    run,
    "kerg4-table2",
    "The denoise task",
    "Table 2, section 4.6.1; Figs. 2 to 4 of appendix B",
    SCALES,
    CLAIMS,
)
