"""When the compiled loops of a solve are used (``use_backend`` chooses), and how they are called.

Importing numba costs about as much as a few hundred solves save, compiling (once a machine, precision and version; the
result is cached on disk) as much as some thousands. Work is counted in calls of a loop, which saves about a third of a
millisecond each. The loops use one thread, so large states stay with torch where that has several.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Hashable
from types import ModuleType

import numpy
import torch
from torch import Tensor

from separatrix.core.arithmetic.backend import current_backend, has_numba
from separatrix.core.arithmetic.readiness import Readiness
from separatrix.core.arithmetic.transforms import transforms_active

MOST_NUMBERS = 2**17
"""Numbers in the states of a batch up to which the loops are faster whatever threads torch has."""
IMPORT_AFTER = 3e3
COMPILE_AFTER = 6e4
PRECISIONS = (torch.float32, torch.float64)


def runs_compiled(z: Tensor) -> bool:
    """Whether loops over states like z (batch, d) are to be run by compiled code, by what ``use_backend`` says."""
    chosen = current_backend()
    if chosen == "torch" or not has_numba() or transforms_active():
        return False
    if type(z) is not Tensor or z.device.type != "cpu" or z.dtype not in PRECISIONS or z.numel() == 0:
        return False
    if chosen == "numba":
        return True
    small = torch.get_num_threads() == 1 or z.numel() <= MOST_NUMBERS
    return small and _READINESS.after(1.0, z.dtype)


@functools.cache
def loops() -> ModuleType:
    """The compiled loops; numba is imported."""
    return importlib.import_module(f"{__package__}.solve_loops")


def is_cached(dtype: Hashable) -> bool:
    """Whether code for this precision lies on disk."""
    kernels = loops()
    assert isinstance(dtype, torch.dtype)
    numbers = {rank: torch.zeros((1,) * rank, dtype=dtype).numpy() for rank in (1, 2, 3)}
    counts = numpy.zeros(1, dtype=numpy.int64)
    wanted = {
        kernels.mix: (numbers[3], numbers[3], 1, 0, 1.0, numbers[2]),
        kernels.absorb: (numbers[2], numbers[2], numbers[3], numbers[3], 0, numbers[2]),
        kernels.rest: (numbers[2], counts > 0, numbers[2], numbers[2]),
        kernels.glance: (
            (numbers[2],) * 6, (numbers[2],) * 6, 1, counts > 0, *(numbers[1],) * 3, counts > 0, 1.0, 1, (1.0,) * 4,
            (1, 1.0, 1.0, 1.0), 1.0, numbers[1], counts, numbers[3], numbers[3], numbers[1],
        ),
        kernels.stretch: (
            (numbers[2],) * 6, (numbers[2],) * 6, 1, counts, numbers[1], numbers[1], (1.0,) * 4, 1.0, numbers[1],
            counts, numbers[1], numbers[2], numbers[2],
        ),
        kernels.face: (
            counts, numbers[2], numbers[1], numbers[2], numbers[2], 1.0, numbers[2], numbers[2], numbers[2],
        ),
        kernels.as_predicted: (*(numbers[2],) * 3, numbers[1], (1.0,) * 3, counts > 0),
        kernels.differ: (numbers[2], numbers[2], numbers[1], numbers[1], (1.0,) * 2, counts > 0),
        kernels.slowest_unit: (*(numbers[2],) * 4, numbers[1], numbers[1], *(1.0,) * 3, counts > 0, numbers[2]),
    }  # fmt: skip
    typeof = importlib.import_module("numba").typeof
    return all(
        function._cache.load_overload(tuple(map(typeof, arguments)), function.targetctx) is not None
        for function, arguments in wanted.items()
    )


_READINESS = Readiness(is_cached, IMPORT_AFTER, COMPILE_AFTER)
