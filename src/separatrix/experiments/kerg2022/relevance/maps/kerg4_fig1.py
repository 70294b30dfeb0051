"""kerg2022, Fig. 1 of chapter 4: what a trained network with full memory attends to on copy and denoise."""

from __future__ import annotations

from separatrix.lab import Cell, Claim, Experiment, Payload, in_turn

from .attention_maps import Settings, draw, expand, measured_side, moved_to, run_map, summarise

LEARNED = 0.9
TRAINED = moved_to("accuracy", 0.99)


def run(cell: Cell) -> Payload:
    """Train a network and look at its attention."""
    return run_map(cell)


EXPERIMENT = Experiment(
    name="kerg4-fig1",
    title="Attention of a trained network with full memory",
    document="kerg2022",
    place="Fig. 1, section 4.4.2",
    version=1,
    scales={
        "smoke": Settings(kinds=("copy", "denoise"), n_hidden=8, delay=8, n_items=2, n_steps=2, n_problems=4),
        "laptop": Settings(kinds=("copy", "denoise"), n_hidden=128, delay=20, n_items=4, n_steps=6000, backend="numba"),
        "paper": Settings(kinds=("copy", "denoise")),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-ch4-fig1-sparse",
            statement="Attention of a trained network with full memory is sparse on copy and denoise.",
            measures="exp of the entropy of the weights over the number of states there are, later half of the steps",
            test="95 % interval over problems below .5; a network with less than .9 right answers tells nothing",
            judge=measured_side("effective", learned=LEARNED, below=0.5),
            counterfeit=in_turn(TRAINED, moved_to("effective", 0.9)),
            genuine=in_turn(TRAINED, moved_to("effective", 0.1)),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-ch4-fig1-symbols",
            statement="While it answers, it attends to the states at which symbols came in.",
            measures="weight of those states while answering over their share under even attention",
            test="95 % interval over problems above 2; a network with less than .9 right answers tells nothing",
            judge=measured_side("mass_over_even", learned=LEARNED, above=2.0),
            counterfeit=in_turn(TRAINED, moved_to("mass_over_even", 1.0)),
            genuine=in_turn(TRAINED, moved_to("mass_over_even", 4.0)),
            scale="laptop",
        ),
    ),
    draw=draw,
)
