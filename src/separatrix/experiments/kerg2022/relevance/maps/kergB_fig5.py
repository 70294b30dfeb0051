"""kerg2022, appendix B, Fig. 5: what a network with full memory attends to on text."""

from __future__ import annotations

from separatrix.lab import Cell, Payload

from .attention_maps import Settings, is_dense, map_experiment, run_map


def run(cell: Cell) -> Payload:
    """Train a network and look at its attention."""
    return run_map(cell)


SCALES = {
    "smoke": Settings(kinds=("characters",), text="made-up", context=12, n_hidden=8, n_steps=2, n_problems=4),
    "laptop": Settings(
        kinds=("characters",), text="tiny-shakespeare", context=50, n_hidden=64, n_steps=250, batch_size=16
    ),
    "paper": Settings(kinds=("characters",), n_hidden=1024),
}

EXPERIMENT = map_experiment(
    run, 5, "Attention on text", SCALES, is_dense(5, "text"), data=("tiny-shakespeare", "ptb-char")
)
