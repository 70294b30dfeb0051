"""kerg2022, Table 2 of chapter 4, with Figs. 2 (bottom), 3 and 4 of appendix B: the denoise task."""

from __future__ import annotations

from separatrix.lab import Cell, Claim, Experiment, Payload

from .accuracies import (
    ACCURACY,
    Settings,
    ahead,
    draw,
    expand,
    keeps,
    loses,
    run_memory,
    shifted,
    sooner,
    summarise,
    with_updates,
)

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

EXPERIMENT = Experiment(
    name="kerg4-table2",
    title="The denoise task",
    document="kerg2022",
    place="Table 2, section 4.6.1; Figs. 2 to 4 of appendix B",
    version=1,
    scales={
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
        "laptop": Settings(models=MODELS[:-1], n_steps=3400, tail_steps=600, backend="numba", **SMALL),  # type: ignore[arg-type]
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
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-ch4-table2-RelLSTM",
            statement="RelLSTM solves the denoise task.",
            measures="share of right symbols at the delay of training",
            test="95 % interval over problems above .9",
            judge=keeps(("RelLSTM",), 0.9, trained_only=True),
            counterfeit=shifted(("RelLSTM",), 0.5),
            genuine=shifted(("RelLSTM",), 0.99),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-ch4-table2-RelRNN",
            statement="RelRNN solves the denoise task, exactly as RelLSTM does.",
            measures="share of right symbols at the delay of training",
            test="95 % interval over problems above .9",
            judge=keeps(("RelRNN",), 0.9, trained_only=True),
            counterfeit=shifted(("RelRNN",), 0.5),
            genuine=shifted(("RelRNN",), 0.99),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-ch4-table2-ahead",
            statement="On denoise a screened network outperforms all purely recurrent ones.",
            measures="RelLSTM minus LSTM, expRNN, orth-RNN and GORU, at the delay of training",
            test="95 % interval of each difference over problems above 0",
            judge=ahead("RelLSTM", PLAIN),
            counterfeit=shifted(("RelLSTM",), 0.01),
            genuine=shifted(("RelLSTM",), 0.999),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-B-fig2-denoise",
            statement="Screened networks learn denoise with significantly fewer updates than the others.",
            measures="updates until .9 on problems kept aside, RelLSTM over each of LSTM, expRNN, orth-RNN, GORU",
            test="below one half; a model that never got there counts with all its updates, and tells nothing beyond",
            judge=sooner("RelLSTM", PLAIN),
            counterfeit=with_updates("RelLSTM", 3000.0, 1000.0),
            genuine=with_updates("RelLSTM", 500.0, 3000.0),
            place="section 4.6.1; Figs. 2, 3 and 4 of appendix B",
            scale="laptop",
        ),
        Claim(
            id="screening-denoise-transfer",
            statement="What a RelLSTM learned of denoise does not carry over to sequences twenty times as long.",
            measures="share of right symbols at twenty times the delay of training",
            test="95 % interval below .6, if it learned the delay of training (.85)",
            judge=loses(("RelLSTM",), 0.85, 0.6),
            counterfeit=shifted(("RelLSTM",), 0.95),
            genuine=lambda summary: shifted(("RelLSTM",), 0.3, longest_only=True)(shifted(("RelLSTM",), 0.95)(summary)),
            document="separatrix",
            place=f"longer delays ({ACCURACY})",
            scale="laptop",
        ),
    ),
    draw=draw,
)
