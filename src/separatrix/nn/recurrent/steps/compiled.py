"""When the compiled loops of the Elman scan are used, and how they are called.

Importing numba costs about as much as 50,000 steps of the loop save, compiling (once a machine, precision and
version; the result is cached on disk) about as much as 300,000. So in the mode ``auto`` loops run by torch until they
have made that many steps in this process; then the cache is looked into, then the code is compiled. The loops use one
thread: where a library shares large products among several, they stay with torch.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import final

import numpy
import torch
from torch import Tensor

from separatrix.core.arithmetic.backend import current_backend, has_numba
from separatrix.core.arithmetic.keeping import has_code
from separatrix.core.arithmetic.readiness import Readiness

from .elman_kernels import ElmanKernel
from .step import AbstractStep, Weights

MOST_NUMBERS = 8192
"""States of a batch, as numbers, up to which the compiled loop is the faster one whatever threads torch has."""
MOST_ALONE = 65_536
"""The same where torch has one thread too."""
IMPORT_AFTER = 50_000
COMPILE_AFTER = 300_000
PRECISIONS = (torch.float32, torch.float64)


@final
class CompiledElmanKernel(ElmanKernel):
    """The same formulas, their loops compiled."""

    by_bias: Tensor

    def forward_sequence(self, drives: Tensor, states: Tensor, lengths: Tensor | None) -> None:
        """In one call."""
        loops = _loops()
        bias = _array(self.matrix.new_zeros(len(self.matrix)) if self.bias is None else self.bias)
        kind = bias.dtype.type
        keep, rate = kind(self.step.keep), kind(self.step.rate)
        panels = loops.packed(_array(self.transposed))
        steps = _array_of_lengths(lengths, drives)
        loops.forward(_array(drives), _array(states), panels, bias, loops.CODES[self.step.phi.name], keep, rate, steps)

    def backward_sequence(
        self, drives: Tensor, states: Tensor, gradient: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """In one call."""
        loops = _loops()
        by_drives = torch.empty_like(drives, memory_format=torch.contiguous_format)
        by_initial = drives.new_empty(drives.shape[1:])
        self.by_bias = torch.zeros_like(by_initial)
        rows = gradient if gradient.stride(2) == 1 else gradient.contiguous()
        strides = rows.stride()[:2]
        last = sum((size - 1) * stride for size, stride in zip(rows.shape, rows.stride(), strict=True))
        panels = loops.packed(_array(self.matrix))
        kind = panels.dtype.type
        loops.backward(
            _array(self._phi_values(drives, states)),
            by_drives.numpy(),
            self.by_bias.numpy(),
            _array(rows.as_strided((last + 1,), (1,))),
            strides,
            by_initial.numpy(),
            panels,
            loops.CODES[self.step.phi.name],
            kind(self.step.keep),
            kind(self.step.rate),
            _array_of_lengths(lengths, drives),
            numpy.zeros((2, len(by_initial), panels.shape[0] * panels.shape[2]), panels.dtype),
        )
        return by_drives, by_initial

    def weight_gradients(self, drive_gradients: Tensor, states: Tensor) -> Weights:
        """One product; the bias has been added up on the way."""
        left, right = (_array(part.flatten(0, 1)) for part in (drive_gradients, states[:-1]))
        matrix = torch.from_numpy(_loops().outer_sums(left, right)).contiguous()
        return (matrix,) if self.bias is None else (matrix, self.by_bias.sum(0))


def runs_compiled(step: AbstractStep, drives: Tensor, initial: Tensor, weights: Weights) -> bool:
    """Whether this sequence is to be run by the compiled loops, by what ``use_backend`` says."""
    chosen = current_backend()
    if chosen == "torch" or not has_numba() or not _can_run(step, drives, initial, weights):
        return False
    if chosen == "numba":
        return True
    most = MOST_ALONE if torch.get_num_threads() == 1 else MOST_NUMBERS
    return initial.numel() <= most and _READINESS.after(drives.shape[0], drives.dtype)


def _can_run(step: AbstractStep, drives: Tensor, initial: Tensor, weights: Weights) -> bool:
    tensors = (drives, initial, *weights)
    is_plain = all(
        type(tensor) in (Tensor, torch.nn.Parameter) and tensor.device.type == "cpu" and tensor.dtype == drives.dtype
        for tensor in tensors
    )
    fits = drives.dtype in PRECISIONS and initial.numel() > 0 and drives.shape[1:] == initial.shape
    return is_plain and fits and not torch.compiler.is_compiling() and step.compiled_kernel(weights) is not None


_READINESS = Readiness(lambda dtype: is_cached(dtype), IMPORT_AFTER, COMPILE_AFTER)


def _loops() -> ModuleType:
    return importlib.import_module(f"{__package__}.elman_loops")


def is_cached(dtype: torch.dtype) -> bool:
    """Whether code for this precision lies on disk."""
    loops = _loops()
    numbers = {rank: torch.zeros((1,) * rank, dtype=dtype).numpy() for rank in (1, 2, 3)}
    one, steps = numbers[1].dtype.type(1), numpy.ones(1, dtype=numpy.int64)
    forward = (numbers[3], numbers[3], numbers[3], numbers[1], 0, one, one, steps)
    backward = (
        numbers[3],
        numbers[3],
        numbers[2],
        numbers[1],
        (1, 1),
        numbers[2],
        numbers[3],
        0,
        one,
        one,
        steps,
        numbers[3],
    )
    wanted = {loops.forward: forward, loops.backward: backward, loops.add_outer: (numbers[2],) * 4}
    return all(has_code(function, arguments) for function, arguments in wanted.items())


def _array(tensor: Tensor) -> numpy.ndarray:
    return tensor.detach().contiguous().numpy()


def _array_of_lengths(lengths: Tensor | None, drives: Tensor) -> numpy.ndarray:
    n_steps, batch = drives.shape[:2]
    return numpy.full(batch, n_steps) if lengths is None else _array(lengths.to("cpu", torch.int64))
