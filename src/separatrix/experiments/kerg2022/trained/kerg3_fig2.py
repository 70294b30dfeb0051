"""kerg2022, Fig. 2: the copy task and permuted pixels at equal numbers of units."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from .comparison import draw, expand, run_comparison, summarise
from .comparison_claims import comparison_claims
from .equal_sizes import scales_at_equal


def run(cell: Cell) -> Payload:
    """Train one model on one task."""
    return run_comparison(cell)


EXPERIMENT = Experiment(
    name="kerg3-fig2",
    title="Copy and permuted pixels at equal numbers of units",
    document="kerg2022",
    place="Fig. 2",
    version=1,
    scales=scales_at_equal("units"),
    expand=expand,
    run=run,
    summarise=summarise,
    claims=comparison_claims("kerg2022-ch3-fig2", "at equal numbers of units"),
    draw=draw,
    data=("mnist",),
)
