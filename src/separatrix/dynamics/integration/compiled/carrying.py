"""The compiled loop, called for whole batches by one or several threads."""

from __future__ import annotations

import functools
import importlib
import math
import threading
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, final

import numpy
import torch

from ...flows.attention import AttentionFlow
from ..methods.runge_kutta import RungeKutta
from ..plan import Plan
from .cargo import Cargo
from .rules import rules_of

CALL_WORK = 2e8
"""Multiplications of one velocity, over all trajectories of a call: some seconds, between which an interrupt is heard
and threads share what is left."""

THREAD_WORK = 2e4
"""The same from which a second thread gains more than its start costs."""


@final
class Carrier:
    """The compiled loop for the trajectories of one integration.

    Every trajectory is followed by itself, so its numbers do not depend, in any bit, on its batch or on the number of
    threads.

    Args:
        flow: of single tokens, one that ``fits``.
        shape: of the batch.
        plan: one that ``fits``.
        n_threads: trajectories that are followed at once; by default as many as torch uses.
    """

    def __init__(self, flow: AttentionFlow, shape: tuple[int, ...], plan: Plan, n_threads: int | None = None) -> None:
        self.loops, self.plan = loops(), plan
        self.n_threads = torch.get_num_threads() if n_threads is None else n_threads
        self.exact, self.bounds = _weights(flow)
        self.which = _which(flow.instances, shape)

    def carry(self, cargo: Cargo) -> None:
        """Follow all to where they need attention: calls of a few each, by as many threads as there is work for."""
        count, n, d = cargo.tokens.shape
        kind, work = cargo.tokens.dtype, n * (n + d) * d
        at_once = max(1, min(count, int(CALL_WORK / work)))
        n_threads = min(self.n_threads, count) if work * count > THREAD_WORK else 1
        if n_threads > 1:
            at_once = max(1, min(at_once, count // (4 * n_threads)))
        rules, table = _decides(self.plan, kind)
        given = rules, table, *cargo.arrays(), self.exact, self.bounds, self.which[cargo.index]

        def run(starts: Iterable[int]) -> None:
            w, at, *merging = kept_memory(self.loops, n, d, len(table) - 1, kind)
            for first in starts:
                last = min(first + at_once, count)
                self.loops.carry(first, last, w, at, *given, cargo.numbers, cargo.counts, *merging)

        starts = range(0, count, at_once)
        if n_threads == 1:
            run(starts)
        else:
            shared = _Shared(starts)
            with ThreadPoolExecutor(n_threads) as threads:
                list(threads.map(run, [shared] * n_threads))


@final
class _Shared:
    """Numbers of which every thread takes the next."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.left, self.lock = iter(numbers), threading.Lock()

    def __iter__(self) -> Iterator[int]:
        while True:
            with self.lock:
                number = next(self.left, None)
            if number is None:
                return
            yield number


@functools.lru_cache(maxsize=64)
def _decides(plan: Plan, kind: Any) -> tuple[Any, numpy.ndarray]:
    """The rules of a plan and its tableau in a precision; plans are kept and asked for again and again."""
    assert isinstance(plan.method, RungeKutta)
    rules = rules_of(loops(), plan, torch.float32 if kind == numpy.float32 else torch.float64)
    return rules, plan.method.tableau.rows().astype(kind)


@functools.cache
def loops() -> ModuleType:
    """The compiled functions; the first call imports numba."""
    return importlib.import_module(f"{__package__}.loops.kernels")


_KNOWN: weakref.WeakKeyDictionary[AttentionFlow, tuple[numpy.ndarray, numpy.ndarray]] = weakref.WeakKeyDictionary()


def _weights(flow: AttentionFlow) -> tuple[numpy.ndarray, numpy.ndarray]:
    """beta M and V of every instance of the weights, and the products of their spectral norms; kept with the flow."""
    known = _KNOWN.get(flow)
    if known is None:
        axes, d = flow.instances, flow.dim
        both = [
            matrix.detach().double().expand(*axes, 1, d, d).reshape(-1, d, d)
            for matrix in (flow.weights.scaled_coupling, flow.weights.value)
        ]
        exact = torch.stack(both, dim=1).contiguous().numpy()
        known = exact, numpy.linalg.norm(exact, 2, axis=(-2, -1)).prod(axis=-1)
        _KNOWN[flow] = known
    return known


def _which(instances: tuple[int, ...], shape: tuple[int, ...]) -> numpy.ndarray:
    """The instance of each element of a batch."""
    if not instances:
        return numpy.zeros(math.prod(shape), numpy.int64)
    count = math.prod(instances)
    numbers = numpy.arange(count).reshape(instances)
    return numpy.ascontiguousarray(numpy.broadcast_to(numbers, shape).reshape(-1))


KEPT_BYTES = 2**24
"""Working memory of this size is kept for the next call: fresh pages cost a small trajectory a tenth of its time."""

_LAST = threading.local()
"""Of every thread, the memory it used last and for what."""


def kept_memory(kernels: ModuleType, n: int, d: int, n_stages: int, dtype: Any) -> tuple[Any, ...]:
    """``memory_of``, that of the call before if it was of the same kind; every trajectory overwrites what it reads."""
    kind = (n, d, n_stages, numpy.dtype(dtype).char)
    if getattr(_LAST, "kind", None) == kind:
        found: tuple[Any, ...] = _LAST.memory
        return found
    memory = memory_of(kernels, n, d, n_stages, dtype)
    if memory[0].nbytes <= KEPT_BYTES:
        _LAST.kind, _LAST.memory = kind, memory
    return memory


def memory_of(kernels: ModuleType, n: int, d: int, n_stages: int, dtype: Any) -> tuple[Any, ...]:
    """Working memory of one thread: of the trajectory and where things lie in it; of merging."""
    at, length = kernels.places(n, d, n_stages, numpy.dtype(dtype).itemsize)
    vectors = numpy.zeros((kernels.MERGE_VECTORS, max(n, d)))
    merging = numpy.zeros(n * d), vectors, numpy.zeros((2, d, d)), numpy.zeros((2, n), numpy.int64)
    return _aligned(length, numpy.dtype(dtype), kernels.VECTOR_BYTES), at, *merging


def _aligned(length: int, dtype: numpy.dtype[Any], to: int) -> numpy.ndarray:
    """Zeros that begin at a multiple of so many bytes: a vector that lies across two lines of the cache costs two."""
    spare = numpy.zeros(length + to // dtype.itemsize, dtype)
    first = -spare.ctypes.data % to // dtype.itemsize
    return spare[first : first + length]
