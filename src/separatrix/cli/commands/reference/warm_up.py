"""``separatrix warm-up``: compile now what would be compiled later, once a machine and version."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ...options import AsJson
from ...printing import print_json, print_table

if TYPE_CHECKING:
    import torch


def warm_up(as_json: AsJson = False) -> None:
    """Compile all loops that numba speeds up, and keep the code on disk; those that lie there are left alone."""
    import torch

    from separatrix.core import use_backend

    rows = []
    with use_backend("numba"):  # refused in words where numba is not installed
        for loops, is_cached, compile_loops in _loops():
            for dtype in (torch.float32, torch.float64):
                known, begun = is_cached(dtype), time.perf_counter()
                if not known:
                    compile_loops(dtype)
                row = {"loops": loops, "precision": str(dtype).removeprefix("torch."), "found": known}
                rows.append({**row, "seconds": round(time.perf_counter() - begun, 1)})
    if as_json:
        print_json(rows)
        return
    table = [
        [row["loops"], row["precision"], "in the cache" if row["found"] else f"compiled in {row['seconds']} s"]
        for row in rows
    ]
    print_table(("loops", "precision", "code"), table)


_Kind = tuple[str, "Callable[[torch.dtype], bool]", "Callable[[torch.dtype], object]"]


def _loops() -> Iterator[_Kind]:
    """What is compiled: its name, whether it lies on disk, and what compiles it."""
    from separatrix.dynamics.integration.compiled import choice
    from separatrix.nn.memory.steps import compiled as memory
    from separatrix.nn.recurrent.steps import compiled as recurrent

    yield "self-attention trajectories", choice.is_cached, choice.compile_loop
    yield "recurrent networks", recurrent.is_cached, _run_recurrent
    yield "attentive networks", memory.is_cached, _run_attentive


def _run_recurrent(dtype: torch.dtype) -> None:
    """Forward and back, which compiles both."""
    import torch

    from separatrix.nn import ExpRNN

    ExpRNN(2, 4, dtype=dtype)(torch.zeros(1, 3, 2, dtype=dtype))[0].sum().backward()


def _run_attentive(dtype: torch.dtype) -> None:
    import torch

    from separatrix.nn import RelRNN

    RelRNN(2, 4, dtype=dtype)(torch.zeros(1, 3, 2, dtype=dtype))[0].sum().backward()
