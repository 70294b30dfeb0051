"""What a pass through a network kept is freed when nobody holds its output: a node of the graph must not hold itself."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import nn

from helpers import seeded
from separatrix.dynamics import Anderson
from separatrix.nn import (
    DEQ,
    GORU,
    LRU,
    SAB,
    CoRNN,
    ExpRNN,
    HDetachLSTM,
    MemLSTM,
    MemRNN,
    MinGRU,
    MonotoneDEQ,
    NonNormalRNN,
    RelLSTM,
    RelRNN,
    TanhCell,
    WindowedAttention,
)

MAKERS: dict[str, Callable[[], nn.Module]] = {
    "RelRNN": lambda: RelRNN(3, 4, n_buffer=2, n_relevant=2),
    "RelRNN, no screening yet": lambda: RelRNN(3, 4, n_buffer=9, n_relevant=2),
    "RelRNN, detached": lambda: RelRNN(3, 4, n_buffer=2, n_relevant=2, detach_memory=True),
    "RelLSTM": lambda: RelLSTM(3, 4, n_buffer=2, n_relevant=2),
    "MemRNN": lambda: MemRNN(3, 4),
    "MemRNN, stored": lambda: MemRNN(3, 4, memory="store"),
    "MemLSTM": lambda: MemLSTM(3, 4),
    "SAB": lambda: SAB(3, 4),
    "HDetachLSTM": lambda: HDetachLSTM(3, 4),
    "WindowedAttention": lambda: WindowedAttention(3, 4, n_heads=1),
    "ExpRNN": lambda: ExpRNN(3, 4),
    "NonNormalRNN": lambda: NonNormalRNN(3, 4),
    "GORU": lambda: GORU(3, 4),
    "LRU": lambda: LRU(3, 4),
    "MinGRU": lambda: MinGRU(3, 4),
    "CoRNN": lambda: CoRNN(3, 4),
    "DEQ": lambda: DEQ(TanhCell(3, weight_var=0.5, generator=seeded(0)), solver=Anderson(tol=1e-3)),
    "MonotoneDEQ": lambda: MonotoneDEQ(3, 4, generator=seeded(0)),
}


def output_of(module: nn.Module, *, back: bool) -> weakref.ref[torch.Tensor]:
    """A weak reference to the output of one pass."""
    found = module(torch.randn(2, 6, 3, generator=seeded(1)))
    output = found[0] if isinstance(found, tuple) else found
    if back:
        output.square().mean().backward()
    return weakref.ref(output)


@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("name", MAKERS)
def test_a_pass_is_freed_once_the_next_is_made(name: str, *, back: bool) -> None:
    module = MAKERS[name]()
    first = output_of(module, back=back)
    output_of(module, back=back)
    gc.collect()
    assert first() is None
