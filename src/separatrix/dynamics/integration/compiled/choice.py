"""When trajectories are followed by the compiled loop.

It knows self-attention with one head, softmax, no mask and no bias, followed on the CPU by a pair with one error
estimate until it rests, without frames on the way. Whatever else is asked for runs by torch, and the result says by
which it was followed (``Trajectory.backend``). Importing numba takes about as long as a hundred small trajectories by
torch, compiling (once a machine, precision and version; the result is cached on disk) about as long as some thousands.
So in the mode ``auto`` trajectories run by torch until their work is worth the import; then the cache is looked into;
then, if they outlast the compilation, the code is compiled. ``separatrix warm-up`` fills the cache beforehand.
"""

from __future__ import annotations

import numpy
import torch
from torch import Tensor
from torch.autograd import forward_ad

from separatrix.core.arithmetic.backend import current_backend, has_numba
from separatrix.core.arithmetic.readiness import Readiness
from separatrix.core.arithmetic.transforms import transforms_active

from ...flows.attention import AttentionFlow
from ...flows.base import AbstractFlow
from ..methods.control import DisplacementControl
from ..methods.runge_kutta import RungeKutta
from ..methods.tableau import TSIT5
from ..plan import Plan
from ..stopping import Rest
from .carrying import loops, memory_of

IMPORT_AFTER, COMPILE_AFTER = 0.5, 15.0
"""Estimated seconds of torch that are worth an import of numba, and a compilation."""

STEP_SECONDS, ENTRY_SECONDS, TYPICAL_STEPS = 3e-5, 6e-10, 60
"""Rough cost by torch of a step of a trajectory in a pool, of one entry of n (n + d) d in it, and how many there
are."""


def fits(flow: AbstractFlow, plan: Plan, x: Tensor, frames: Tensor | None) -> bool:
    """Whether the compiled loop knows how to follow these trajectories."""
    if type(flow) is not AttentionFlow or frames is not None or not x.is_cpu or not len(x):
        return False
    if not (flow.is_plain and flow.n_heads == 1) or not flow.weights.value.is_cpu:
        return False
    if transforms_active() or _is_followed(x) or any(map(_is_followed, flow.weights.tensors().values())):
        return False
    method = plan.method
    known = type(method) is RungeKutta and len(method.tableau.errors) == 1
    return known and type(plan.control) is DisplacementControl and type(plan.stop) is Rest


def _is_followed(tensor: Tensor) -> bool:
    """Whether a derivative is taken through a tensor, backward or forward."""
    return tensor.requires_grad or (
        forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None
    )


def runs_compiled(flow: AbstractFlow, plan: Plan, x: Tensor, frames: Tensor | None) -> bool:
    """Whether these trajectories are to be followed by the compiled loop, by what ``use_backend`` says."""
    chosen = current_backend()
    if chosen == "torch" or not has_numba() or not fits(flow, plan, x, frames):
        return False
    return chosen == "numba" or _READINESS.after(seconds_by_torch(*x.shape), plan.transient)


def seconds_by_torch(count: int, n: int, d: int) -> float:
    """Roughly, of so many trajectories."""
    return count * TYPICAL_STEPS * (STEP_SECONDS + ENTRY_SECONDS * n * (n + d) * d)


def is_cached(dtype: torch.dtype) -> bool:
    """Whether code for this precision lies on disk."""
    kernels = loops()
    return bool(kernels.has_code(kernels.carry, example(dtype)))


def compile_loop(dtype: torch.dtype) -> None:
    """Have code for this precision, from the cache or by compiling it."""
    loops().carry(*example(dtype))


def example(dtype: torch.dtype) -> tuple[object, ...]:
    """Arguments of the loop for no trajectory at all."""
    kernels, kind = loops(), torch.empty(0, dtype=dtype).numpy().dtype
    w, at, *merging = memory_of(kernels, 1, 2, TSIT5.n_stages, kind)
    rules = kernels.Rules(*[0.0] * len(kernels.Rules._fields))
    tokens, sizes, labels = numpy.zeros((1, 1, 2), kind), numpy.ones((1, 1), kind), numpy.zeros((1, 1), numpy.int64)
    tables = (
        numpy.zeros((1, 2, 2, 2)),
        numpy.zeros(1),
        numpy.zeros(1, numpy.int64),
        numpy.zeros((1, kernels.N_NUMBERS)),
        numpy.zeros((1, kernels.N_COUNTS), numpy.int64),
    )
    table = numpy.zeros((TSIT5.n_stages + 1, TSIT5.n_stages), kind)
    return (0, 0, w, at, rules, table, tokens, tokens, tokens, tokens, sizes, labels, *tables, *merging)


_READINESS = Readiness(is_cached, IMPORT_AFTER, COMPILE_AFTER)
