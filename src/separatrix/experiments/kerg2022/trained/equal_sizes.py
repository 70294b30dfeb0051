"""What the comparisons at equal numbers of units (Fig. 2) and of parameters (appendix A, Fig. 1) share."""

from __future__ import annotations

from typing import Literal

from .comparison import Settings


def scales_at_equal(match: Literal["units", "parameters"]) -> dict[Literal["smoke", "laptop", "paper"], Settings]:
    """The settings of all scales."""
    smoke = Settings(
        match=match,
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
    laptop = Settings(
        match=match,
        copy_rates=(0.25, 1.0, 4.0, 16.0),
        pixels_rates=(1.0, 4.0, 16.0, 64.0),  # small networks and few steps want larger rates than the printed ones
        own_rates={"copy": {"LSTM": (1.0, 4.0, 16.0, 64.0)}, "pixels": {"LSTM": (4.0, 16.0, 64.0, 256.0)}},
        delay=50,
        copy_hidden=64,
        copy_steps=500,
        pixels_data="digits",
        pixels_hidden=64,
        pixels_batch=50,
        n_epochs=8,
    )
    return {"smoke": smoke, "laptop": laptop, "paper": Settings(match=match)}
