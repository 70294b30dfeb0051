"""kerg2022, appendix B, Fig. 9: attention on denoise when only the short buffer can be attended to."""

from __future__ import annotations

from separatrix.lab import Cell, Claim, Experiment, Payload

from .attention_maps import Settings, draw, expand, measured_side, moved_to, run_map, summarise


def run(cell: Cell) -> Payload:
    """Train a network and look at its attention."""
    return run_map(cell)


EXPERIMENT = Experiment(
    name="kergB-fig9",
    title="Attention over the buffer alone, denoise",
    document="kerg2022",
    place="appendix B.4, Fig. 9",
    version=1,
    scales={
        "smoke": Settings(
            kinds=("denoise",), model="RelRNN", n_buffer=3, n_hidden=8, delay=8, n_items=2, n_steps=2, n_problems=4
        ),
        "laptop": Settings(
            kinds=("denoise",), model="RelRNN", n_buffer=5, n_hidden=48, delay=20, n_items=4, n_steps=400, batch_size=20
        ),
        "paper": Settings(kinds=("denoise",), model="RelRNN", n_buffer=10),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-B-fig9",
            statement="While in the buffer, states with a symbol get more attention than others (denoise).",
            measures="score of states with a symbol minus that of others, once the buffer is full",
            test="95 % interval over problems above 0",
            judge=measured_side("score_gaps", above=0.0),
            counterfeit=moved_to("score_gaps", -0.5),
            genuine=moved_to("score_gaps", 0.5),
            scale="laptop",
        ),
    ),
    draw=draw,
)
