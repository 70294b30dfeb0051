"""What a pass through a network kept is freed once nobody holds its output: no node of the graph holds itself."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

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


@pytest.fixture(autouse=True)
def _nothing_older() -> Iterator[None]:
    """What was there before is neither searched nor counted: a search of the whole worker takes most of a second."""
    gc.freeze()
    yield
    gc.unfreeze()


def tensors_after(module: nn.Module, x: torch.Tensor, n_passes: int) -> int:
    """How many tensors are alive after some passes whose outputs are gone, every second one without a way back."""
    for index in range(n_passes):
        found = module(x)
        output = found[0] if isinstance(found, tuple) else found
        if index % 2:
            output.square().mean().backward()
    del found, output
    gc.collect()
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


@pytest.mark.parametrize("name", MAKERS)
def test_passes_leave_nothing_behind(name: str) -> None:
    module = MAKERS[name]()
    x = torch.randn((2, 3) if name == "MonotoneDEQ" else (2, 6, 3), generator=seeded(1))
    after_two = tensors_after(module, x, 2)
    assert tensors_after(module, x, 4) <= after_two
