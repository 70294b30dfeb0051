"""kerg2022, appendix B, Fig. 7: what a network with full memory attends to on digits, a few pixels a step."""

from __future__ import annotations

from separatrix.lab import Cell, Payload

from .attention_maps import Settings, is_dense, map_experiment, run_map


def run(cell: Cell) -> Payload:
    """Train a network and look at its attention."""
    return run_map(cell)


SCALES = {
    "smoke": Settings(kinds=("digits",), images="digits", pixels_per_step=4, n_hidden=8, n_steps=2, n_problems=4),
    "laptop": Settings(kinds=("digits",), images="digits", pixels_per_step=2, n_hidden=64, n_steps=250, batch_size=30),
    "paper": Settings(kinds=("digits",), n_hidden=100),
}

EXPERIMENT = map_experiment(run, 7, "Attention on digits", SCALES, is_dense(7, "digits"), data=("mnist",))
