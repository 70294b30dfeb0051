"""Trajectories that only stop, and are not finished: by the compiled loop alone, without pools and books.

A small trajectory takes some microseconds in the loop, less than a handful of calls of torch.
"""

from __future__ import annotations

import numpy
import torch
from torch import Tensor

from separatrix.core import Outcome

from ...flows.attention import AttentionFlow
from ..motion import LARGEST_SINGLE, SMALLEST, comparable, have_weight
from ..plan import Plan
from ..trajectory import Trajectory
from .cargo import Cargo
from .carrying import Carrier


def follow_alone(
    flow: AttentionFlow, shape: tuple[int, ...], x: Tensor, plan: Plan, limit: Tensor
) -> Trajectory | None:
    """To where each trajectory rests or is over; None if somebody must look at one on its way.

    Args:
        flow: in float64, one that ``fits``.
        shape: of the batch.
        x: starts of the flattened batch, in float64.
        plan: one that ``fits``, without finisher.
        limit: last times.
    """
    assert plan.finisher is None
    count, n = x.shape[:2]
    unit = numpy.empty(shape or (1,))
    unit[...] = flow.rate.detach().numpy()
    sizes = None if flow.sizes is None else comparable(flow.sizes.expand(*(shape or (1,)), n).reshape(-1, n))
    dtype = _precision(unit, sizes, plan)
    if dtype is None:
        return None
    carrier = Carrier(flow, shape or (1,), plan)
    cargo = Cargo(
        carrier.loops,
        numpy.arange(count),
        x.numpy().astype(dtype),
        None if sizes is None else sizes.numpy(),
        watched=False,
    )
    k = carrier.loops
    cargo.numbers[:, k.LIMIT], cargo.numbers[:, k.UNIT] = limit.numpy(), unit.reshape(-1).clip(SMALLEST)
    cargo.numbers[:, k.ERROR], cargo.numbers[:, k.THRESHOLD] = 1.0, plan.stop.first_threshold
    carrier.carry(cargo)
    ends = [cargo]
    slow = cargo.counts[:, k.CODE] == k.SLOW
    if slow.any():
        ends.append(cargo.part(slow.nonzero()[0], numpy.float64))
        carrier.carry(ends[-1])
    if (ends[-1].counts[:, k.CODE] == k.SMALL).any():
        return None
    return _result(ends, shape, plan)


def _precision(unit: numpy.ndarray, sizes: Tensor | None, plan: Plan) -> type | None:
    """That of the plan, where it can hold the squares of speeds, and sizes; None if it can for some only."""
    if plan.transient == torch.float64:
        return numpy.float64
    if sizes is None and unit.min() > 1 / LARGEST_SINGLE and unit.max() < LARGEST_SINGLE:
        return numpy.float32
    fit = ((unit > 1 / LARGEST_SINGLE) & (unit < LARGEST_SINGLE)).reshape(-1)
    if sizes is not None:
        fit = fit & have_weight(sizes).numpy()
    if fit.all():
        return numpy.float32
    return None if fit.any() else numpy.float64


def _result(ends: list[Cargo], shape: tuple[int, ...], plan: Plan) -> Trajectory:
    k, first = ends[0].kernels, ends[0]
    numbers, counts = first.numbers, first.counts
    tokens = first.tokens_of_all()
    for later in ends[1:]:
        numbers[later.index], counts[later.index] = later.numbers, later.counts
        tokens[later.index] = later.tokens_of_all()
    codes = counts[:, k.CODE]
    whole = numpy.zeros((6, len(codes)), numpy.int64)  # saddles and returns are those of somebody who looks
    whole[0] = numpy.where(codes == k.RESTING, int(Outcome.CONVERGED), int(Outcome.OUT_OF_STEPS))
    whole[1], whole[2] = counts[:, k.STEPS], counts[:, k.REJECTED]
    whole[3] = plan.method.evaluations * whole[1]
    lost = codes == k.BROKEN
    if lost.any():
        whole[0, lost], tokens[lost], numbers[lost, k.SPEED] = int(Outcome.NON_FINITE), numpy.nan, numpy.nan

    outcomes, attempted, rejected, evaluations, saddles, returns = torch.from_numpy(whole).reshape(-1, *shape).unbind()
    residual, time = torch.from_numpy(numbers[:, [k.SPEED, k.TIME]].T.copy()).reshape(-1, *shape).unbind()
    return Trajectory(
        final=torch.from_numpy(tokens).reshape(*shape, *tokens.shape[1:]),
        outcome=outcomes,
        residual=residual,
        time=time,
        steps=attempted,
        rejected_steps=rejected,
        evaluations=evaluations,
        saddles=saddles,
        returns=returns,
        backend="numba",
    )
