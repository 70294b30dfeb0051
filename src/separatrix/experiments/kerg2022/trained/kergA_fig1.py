"""kerg2022, appendix A, Fig. 1: the copy task and permuted pixels at equal numbers of parameters."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from .comparison import draw, expand, run_comparison, summarise
from .comparison_claims import comparison_claims
from .equal_sizes import scales_at_equal


def run(cell: Cell) -> Payload:
    """Train one model on one task."""
    return run_comparison(cell)


EXPERIMENT = Experiment(
    name="kergA-fig1",
    title="Copy and permuted pixels at equal numbers of parameters",
    document="kerg2022",
    place="appendix A, Fig. 1",
    version=1,
    scales=scales_at_equal("parameters"),
    expand=expand,
    run=run,
    summarise=summarise,
    claims=comparison_claims("kerg2022-A-fig1", "at equal numbers of parameters"),
    draw=draw,
    data=("mnist",),
)
