"""kerg2022, appendix C, Fig. 2: the distribution of ten, with unseen permutations in either direction."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from ..judging import gap_claim
from ..scales import FIVE, suite_scales
from ..suite import draw, expand, run_suite, summarise


def run(cell: Cell) -> Payload:
    """Train one network on one task."""
    return run_suite(cell)


TASKS = ("dist10", "dist_n_restricted:preserving", "dist_n_restricted:non_preserving")
LAPTOP = {"tasks": ("dist10",), "models": ("CoRelNet", "Transformer"), "n_steps": 1000, "n_measured": 10}

EXPERIMENT = Experiment(
    name="kergC-fig2",
    title="The distribution of ten, with unseen permutations in either direction",
    document="kerg2022",
    place="appendix C, Fig. 2",
    version=1,
    scales=suite_scales(TASKS, FIVE, smoke={"models": ("CoRelNet", "Transformer")}, laptop=LAPTOP),
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        gap_claim(
            id="separatrix-relational-dist10",
            document="separatrix",
            statement="On the distribution of ten CoRelNet is more accurate than a transformer.",
            first=("CoRelNet",),
            second=("Transformer",),
            tasks=("dist10",),
            above=0.0,
        ),
    ),
    draw=draw,
)
