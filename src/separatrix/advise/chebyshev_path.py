"""Dense output of the exact solution: Chebyshev interpolation on panels halved until the series converges."""

from __future__ import annotations

import numpy
import torch
from numpy.polynomial import chebyshev
from torch import Tensor

from separatrix.core import NotConverged
from separatrix.theory import BalancedFlow

_DEGREE = 16
_MOST_HALVINGS = 40


def chebyshev_product(flow: BalancedFlow, times: Tensor, tol: float) -> tuple[Tensor, int]:
    """``w2 w1`` at many times by interpolation between exact values, and how many of those were computed.

    A panel is accepted when its last three Chebyshev coefficients are below ``tol`` times the largest entry; all
    panels of one generation are evaluated together.
    """
    result = torch.empty(times.shape[0], *flow.batch, flow.n_out, flow.n_in, dtype=torch.float64)
    if times.numel() == 0:
        return result.to(flow.dtype), 0
    start, end = float(times.min()), float(times.max())
    panels = numpy.array([[start, end if end > start else start + 1e-300]])
    points = chebyshev.chebpts1(_DEGREE + 1)
    to_series = numpy.linalg.inv(chebyshev.chebvander(points, _DEGREE))
    evaluations = 0
    for _ in range(_MOST_HALVINGS):
        middle, half = panels.mean(1), (panels[:, 1] - panels[:, 0]) / 2
        nodes = middle[:, None] + half[:, None] * points
        values = flow.product(torch.from_numpy(nodes.ravel())).to(torch.float64)
        evaluations += nodes.size
        series = numpy.einsum("kn,pn...->pk...", to_series, values.numpy().reshape(*nodes.shape, *values.shape[1:]))
        size = numpy.abs(series).reshape(len(panels), _DEGREE + 1, -1).max(-1)
        accepted = size[:, -3:].max(1) <= tol * max(float(values.abs().max()), 1e-300)
        for index in numpy.flatnonzero(accepted):
            low, high = panels[index]
            here = (times >= low) & (times <= high)
            local = ((times[here] - middle[index]) / half[index]).numpy()
            filled = numpy.tensordot(chebyshev.chebvander(local, _DEGREE), series[index], axes=1)
            result[here] = torch.from_numpy(filled)
        if accepted.all():
            return result.to(flow.dtype), evaluations
        low, high = panels[~accepted].T
        centre = (low + high) / 2
        panels = numpy.concatenate([numpy.stack([low, centre], 1), numpy.stack([centre, high], 1)])
    raise NotConverged(f"Chebyshev panels did not converge to {tol:g}; use method='exact'.")
