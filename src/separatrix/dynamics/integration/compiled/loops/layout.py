"""Where things lie in the memory of a trajectory, and what the columns of its numbers and counts mean."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any, no_type_check

from llvmlite import binding

from .making import part

_features = binding.get_host_cpu_features()
VECTOR_BYTES = 64 if _features.get("avx512f") else 32 if _features.get("avx") else 16
"""Of a vector of this processor; LLVM splits them where there is none as wide."""

TILE_ROWS, TILE_VECTORS = 4, 4 if VECTOR_BYTES == 64 else 3
"""Sums that stay in registers, vectors of columns and one number: 16 of 32 registers and more, or 12 of 16. Narrower
tiles wait for their own sums; six vectors were no faster than four."""

RESTING, OVER, BROKEN, SLOW, SMALL, CROSSING = range(1, 7)
"""Why a trajectory came back: it may have arrived; time or steps are over; it is lost; float32 is too coarse from here;
somebody must look why steps are small; it crosses the section of its anchor in the next step."""

TIME, SIZE, ERROR, THRESHOLD, UNIT, LIMIT, SPEED, HEIGHT, EXTENT, SINCE, N_NUMBERS = range(11)
"""Columns of ``numbers``: as the fields of ``Pool`` and ``Anchor``; a step of size zero is chosen by the loop."""
ROWS, STEPS, REJECTED, UNTIL, WATCH, ANCHORED, CODE, N_COUNTS = range(8)
"""Columns of ``counts``: rows; attempted and rejected steps; when an anchor is renewed; steps from which returns are
watched; whether there is an anchor; the code at the end."""

Places = namedtuple(
    "Places",
    "block depth length x next slopes keys logits mean pull scale logs live filled scaled zeros coupling value anchor "
    "heading",
)
"""Where each array starts in ``w``; the length of a state in it, and the dimension filled up to whole tiles."""
Rules = namedtuple(
    "Rules",
    "order rtol atol farthest grow first safety shrink smallest rearm_above rearm_to distance floor small turn old "
    "looks implicit watches max_steps round merge_after",
)
"""What decides, as floats: see the constants of the same meaning in ``compiled.rules``."""


MERGE_VECTORS = 7
"""Vectors that merging works with."""


@part
@no_type_check
def row_length(lanes, n):
    """Tokens filled up to whole vectors and tiles; one vector more where rows would collide in a cache."""
    unit = max(lanes, TILE_ROWS)
    length = (n + unit - 1) // unit * unit
    return length + unit if length * (VECTOR_BYTES // lanes) % 1024 == 0 else length


@functools.lru_cache(maxsize=64)
def places(n: int, d: int, n_stages: int, itemsize: int) -> tuple[Any, int]:
    """Where the arrays of a trajectory of n tokens lie, and how long the working memory is."""
    lanes = VECTOR_BYTES // itemsize
    depth = -(-d // TILE_ROWS) * TILE_ROWS
    longest = -(-n // max(lanes, TILE_ROWS)) * max(lanes, TILE_ROWS) + max(lanes, TILE_ROWS)
    block, wide = depth * longest, TILE_VECTORS * lanes
    sizes = {
        "next": block, "x": block, "slopes": n_stages * block, "keys": block,
        "logits": (n + TILE_ROWS) * wide + longest, "mean": depth * wide, "pull": depth * wide, "scale": wide,
        "logs": longest, "live": longest, "filled": longest, "scaled": n_stages + 1, "zeros": lanes,
        "coupling": depth * depth, "value": depth * depth, "anchor": block, "heading": block,
    }  # fmt: skip
    starts, here = {}, 0
    for name, size in sizes.items():
        starts[name] = here
        here += -(-size // lanes) * lanes
    return Places(block=block, depth=depth, length=here, **starts), here + lanes
