"""kerg2022, appendix A, Fig. 1: the copy task and permuted pixels at equal numbers of parameters."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from .comparison import Settings, draw, expand, run_comparison, summarise
from .comparison_claims import comparison_claims


def run(cell: Cell) -> Payload:
    """Train one model on one task."""
    return run_comparison(cell)


SMOKE = Settings(
    match="parameters",
    seeds=(0, 1),
    delay=5,
    copy_hidden=16,
    copy_steps=12,
    pixels_data="digits",
    pixels_hidden=12,
    pixels_batch=100,
    n_epochs=1,
    measure_every=4,
)
LAPTOP = Settings(
    match="parameters",
    copy_rates=(1.0, 4.0),
    pixels_rates=(4.0, 16.0),  # small networks and few steps want larger rates than the printed ones
    delay=50,
    copy_hidden=64,
    copy_steps=500,
    pixels_data="digits",
    pixels_hidden=64,
    pixels_batch=50,
    n_epochs=8,
)

EXPERIMENT = Experiment(
    name="kergA-fig1",
    title="Copy and permuted pixels at equal numbers of parameters",
    document="kerg2022",
    place="appendix A, Fig. 1",
    version=1,
    scales={"smoke": SMOKE, "laptop": LAPTOP, "paper": Settings(match="parameters")},
    expand=expand,
    run=run,
    summarise=summarise,
    claims=comparison_claims("kerg2022-A-fig1", "at equal numbers of parameters"),
    draw=draw,
    data=("mnist",),
)
