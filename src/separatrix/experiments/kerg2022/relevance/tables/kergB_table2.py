"""kerg2022, Table 2 of appendix B, with Fig. 2 (top) there: the copy task, and how many updates it takes."""

from __future__ import annotations

from separatrix.lab import Cell, Claim, Experiment, Payload

from .accuracies import Settings, draw, expand, keeps, run_memory, shifted, sooner, summarise, with_updates

MODELS = ("RelRNN", "LSTM", "orth-RNN", "expRNN", "MemRNN", "RelLSTM", "SAB")
PLAIN = ("LSTM", "orth-RNN", "expRNN")


def run(cell: Cell) -> Payload:
    """Train one network at one delay."""
    return run_memory(cell)


EXPERIMENT = Experiment(
    name="kergB-table2",
    title="The copy task at several delays, and updates until it is learned",
    document="kerg2022",
    place="appendix B.4, Table 2 and Fig. 2",
    version=1,
    scales={
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
        "laptop": Settings(
            models=MODELS[:-1],  # SAB takes longer than all others together
            train_delays=(20,),
            delays=(),
            n_steps=7200,
            tail_steps=800,
            backend="numba",
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
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-B-table2-RelRNN",
            statement="RelRNN solves the copy task at every delay it is trained at.",
            measures="share of right symbols at the delay of training",
            test="95 % interval over problems above .97",
            judge=keeps(("RelRNN",), 0.97, trained_only=True),
            counterfeit=shifted(("RelRNN",), 0.5),
            genuine=shifted(("RelRNN",), 0.995),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-B-table2-others",
            statement="RelLSTM, SAB, MemRNN and expRNN solve it as well.",
            measures="share of right symbols at the delay of training",
            test="95 % interval over problems above .97",
            judge=keeps(("RelLSTM", "SAB", "MemRNN", "expRNN"), 0.97, trained_only=True),
            counterfeit=shifted(("RelLSTM", "SAB", "MemRNN", "expRNN"), 0.5),
            genuine=shifted(("RelLSTM", "SAB", "MemRNN", "expRNN"), 0.995),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-B-fig2-copy",
            statement="RelRNN learns the copy task with significantly fewer updates than networks without attention.",
            measures="updates until .9 on problems kept aside, RelRNN over each of LSTM, orth-RNN and expRNN",
            test="below one half; a model that never got there counts with all its updates, and tells nothing beyond",
            judge=sooner("RelRNN", PLAIN),
            counterfeit=with_updates("RelRNN", 2000.0, 1000.0),
            genuine=with_updates("RelRNN", 300.0, 2000.0),
            place="section 4.6.1; Fig. 2 of appendix B",
            scale="laptop",
        ),
    ),
    draw=draw,
)
