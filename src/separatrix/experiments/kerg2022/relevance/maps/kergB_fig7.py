"""kerg2022, appendix B, Fig. 7: what a network with full memory attends to on digits, a few pixels a step."""

from __future__ import annotations

from separatrix.lab import Cell, Claim, Experiment, Payload

from .attention_maps import Settings, draw, expand, measured_side, moved_to, run_map, summarise


def run(cell: Cell) -> Payload:
    """Train a network and look at its attention."""
    return run_map(cell)


EXPERIMENT = Experiment(
    name="kergB-fig7",
    title="Attention on digits",
    document="kerg2022",
    place="appendix B.4, Fig. 7",
    version=1,
    scales={
        "smoke": Settings(kinds=("digits",), images="digits", pixels_per_step=4, n_hidden=8, n_steps=2, n_problems=4),
        "laptop": Settings(
            kinds=("digits",), images="digits", pixels_per_step=2, n_hidden=64, n_steps=250, batch_size=30
        ),
        "paper": Settings(kinds=("digits",), n_hidden=100),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-B-fig7",
            statement="Attention on digits is dense.",
            measures="exp of the entropy of the weights over the number of states there are, later half of the steps",
            test="95 % interval over problems above .5",
            judge=measured_side("effective", above=0.5),
            counterfeit=moved_to("effective", 0.1),
            genuine=moved_to("effective", 0.9),
            place="section 4.6.2",
            scale="laptop",
        ),
    ),
    draw=draw,
    data=("mnist",),
)
