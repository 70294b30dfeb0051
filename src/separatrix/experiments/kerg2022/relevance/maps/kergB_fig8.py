"""kerg2022, appendix B, Fig. 8: attention on copy when only the short buffer can be attended to."""

from __future__ import annotations

from separatrix.lab import Cell, Payload

from .attention_maps import Settings, map_experiment, marks_symbols, run_map


def run(cell: Cell) -> Payload:
    """Train a network and look at its attention."""
    return run_map(cell)


SCALES = {
    "smoke": Settings(
        kinds=("copy",), model="RelRNN", n_buffer=3, n_hidden=8, delay=8, n_items=2, n_steps=2, n_problems=4
    ),
    "laptop": Settings(kinds=("copy",), model="RelRNN", n_buffer=5, n_hidden=48, delay=20, n_steps=400, batch_size=20),
    "paper": Settings(kinds=("copy",), model="RelRNN", n_buffer=10),
}

EXPERIMENT = map_experiment(run, 8, "Attention over the buffer alone, copy", SCALES, marks_symbols(8, "copy"))
