"""Trajectories that only stop, and are not finished: by the compiled loop alone, without pools and books.

A small trajectory takes some microseconds in the loop, less than a handful of calls of torch.
"""

from __future__ import annotations

from typing import final

import numpy
import torch
from torch import Tensor

from ...flows.attention import AttentionFlow
from ..driver import Run
from ..motion import LARGEST_SINGLE, SMALLEST, comparable, have_weight
from ..plan import Plan
from ..trajectory import Trajectory
from .cargo import Cargo
from .carrying import Carrier


def follow_alone(
    flow: AttentionFlow, shape: tuple[int, ...], x: Tensor, plan: Plan, limit: Tensor
) -> Trajectory | None:
    """To where each trajectory rests or is over; None if they do not fit one precision.

    Those of which it must be asked on the way what keeps their steps small are followed once more, by a ``Run``.

    Args:
        flow: in float64, one that ``fits``.
        shape: of the batch.
        x: starts of the flattened batch, in float64.
        plan: one that ``fits``, without finisher.
        limit: last times.
    """
    assert plan.finisher is None
    axes = shape or (1,)
    unit = flow.rate.detach().numpy()
    if unit.ndim:
        unit = numpy.broadcast_to(unit, axes).reshape(-1)
    sizes = None if flow.sizes is None else comparable(flow.sizes.expand(*axes, x.shape[1]).reshape(-1, x.shape[1]))
    dtype = _precision(unit, sizes, plan)
    if dtype is None:
        return None
    carrier = Carrier(flow, axes, plan)
    k, found = carrier.loops, _Found(carrier, x.shape, plan)
    cargo = Cargo.of_starts(k, x, dtype, sizes)
    numbers = cargo.numbers
    numbers[:, k.LIMIT], numbers[:, k.UNIT] = limit.numpy(), numpy.maximum(unit, SMALLEST)
    numbers[:, k.ERROR], numbers[:, k.THRESHOLD] = 1.0, plan.stop.first_threshold
    n_slow, n_small = found.follow(cargo)
    if n_slow:
        cargo = cargo.part((cargo.counts[:, k.CODE] == k.SLOW).nonzero()[0], numpy.float64)
        _, n_small = found.follow(cargo)
    if n_small:
        index = torch.from_numpy(cargo.index[cargo.counts[:, k.CODE] == k.SMALL])
        run = Run(flow.select(axes, index), (len(index),), x[index], plan, limit[index], None, compiled=True)
        run.run()
        found.take(index, run.books.result((len(index),)))
    return found.trajectory(shape)


def _precision(unit: numpy.ndarray, sizes: Tensor | None, plan: Plan) -> type | None:
    """That of the plan, where it can hold the squares of speeds, and sizes; None if it can for some only."""
    if plan.transient == torch.float64:
        return numpy.float64
    if sizes is None and not unit.ndim:
        return numpy.float32 if 1 / LARGEST_SINGLE < float(unit) < LARGEST_SINGLE else numpy.float64
    fit = (unit > 1 / LARGEST_SINGLE) & (unit < LARGEST_SINGLE)
    if sizes is not None:
        fit = fit & have_weight(sizes).numpy()
    if fit.all():
        return numpy.float32
    return None if fit.any() else numpy.float64


@final
class _Found:
    """Where trajectories ended, as the arrays that become the result."""

    def __init__(self, carrier: Carrier, shape: tuple[int, ...], plan: Plan) -> None:
        k, count = carrier.loops, shape[0]
        self.carrier, self.evaluations = carrier, plan.method.evaluations
        self.final = numpy.empty(shape)
        self.whole, self.real = numpy.zeros((k.N_WHOLE, count), numpy.int64), numpy.empty((k.N_REAL, count))

    def follow(self, cargo: Cargo) -> tuple[int, int]:
        """Write down the ends of some; returns how many of them need more precision, and how many a look."""
        self.carrier.carry(cargo)
        given = cargo.index, cargo.tokens, cargo.labels, cargo.numbers, cargo.counts
        found: tuple[int, int] = self.carrier.loops.report(*given, self.evaluations, self.final, self.whole, self.real)
        return found

    def take(self, index: Tensor, found: Trajectory) -> None:
        """Those that somebody else followed."""
        k, place = self.carrier.loops, index.numpy()
        self.final[place] = found.final.numpy()
        for row, values in (
            (k.OUTCOME, found.outcome),
            (k.ATTEMPTED, found.steps),
            (k.REFUSED, found.rejected_steps),
            (k.EVALUATIONS, found.evaluations),
            (k.SADDLES, found.saddles),
            (k.RETURNS, found.returns),
        ):
            self.whole[row, place] = values.numpy()
        self.real[k.RESIDUAL, place], self.real[k.ENDED, place] = found.residual.numpy(), found.time.numpy()

    def trajectory(self, shape: tuple[int, ...]) -> Trajectory:
        """All of it in the shape of the caller's batch."""
        outcome, steps, rejected, evaluations, saddles, returns = torch.from_numpy(self.whole).view(-1, *shape).unbind()
        residual, time = torch.from_numpy(self.real).view(-1, *shape).unbind()
        return Trajectory(
            final=torch.from_numpy(self.final).view(*shape, *self.final.shape[1:]),
            outcome=outcome,
            residual=residual,
            time=time,
            steps=steps,
            rejected_steps=rejected,
            evaluations=evaluations,
            saddles=saddles,
            returns=returns,
            backend="numba",
        )
