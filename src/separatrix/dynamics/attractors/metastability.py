"""Long transients: how many clusters there are along time, where the motion almost stops, and why.

Times are reported in units of 1 / lambda_1 (of the norm of V if the principal eigenvalue is not positive).
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import Result, ShapeError, require_integer, require_positive
from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.names import suggest_options

from ..equilibria.clusters import cluster_means, find_clusters
from ..equilibria.polishing import polish
from ..equilibria.stability import cluster_stability
from ..flows.base import AbstractFlow, AbstractSphereFlow, require_sphere
from ..flows.sphere import check_tokens
from ..integration.integrate import integrate

CLUSTER_SCALES = (1e-1, 1e-2, 1e-3)
SLOW_SHARE = 0.01
"""A plateau is slower than this share of the initial speed."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Plateau:
    """An interval of slow motion with a constant number of clusters.

    ``unstable_rate`` and ``distance`` belong to the equilibrium nearest to the middle of the plateau (NaN if there is
    none within 0.3 rad); ``predicted_life`` is ln(1 / distance) / rate, infinite if that equilibrium is stable.
    """

    start: float
    duration: float
    n_clusters: int
    unstable_rate: float
    distance: float
    predicted_life: float


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Metastability(Result):
    """The record of one trajectory: times, speed, number of clusters at three scales, and plateaus."""

    times: Float[Tensor, " frames"]
    speed: Float[Tensor, " frames"]
    n_clusters: Int[Tensor, "scales frames"]
    plateaus: tuple[Plateau, ...]
    scales: tuple[float, ...] = CLUSTER_SCALES


def metastability_record(
    flow: AbstractFlow, x0: object, *, t_max: float, n_frames: int = 400, preset: str = "default"
) -> Metastability:
    """Record of the trajectory from x0 up to ``t_max`` (in units of 1 / lambda_1).

    Args:
        flow: one weight instance, without mask and bias.
        x0: tokens (n, d).
        t_max: time of the last frame, in units of 1 / lambda_1.
        n_frames: frames, at equal distances of time.
        preset: as in ``integrate``.
    """
    flow = require_sphere(flow, "metastability_record")
    start = check_tokens(x0, "x0").double()
    if start.ndim != 2 or flow.instances:
        raise ShapeError(f"metastability_record needs one state (n, d) and one flow; got x0 of {tuple(start.shape)}.")
    t_max = require_positive(t_max, "t_max")
    require_integer(n_frames, "n_frames", at_least=3)
    flow = flow.to(torch.float64)
    top = float(eigvals(flow.value_sum).real.max())
    unit = 1 / (top if top > 0 else float(flow.rate))
    times = torch.linspace(0, t_max, n_frames, dtype=torch.float64)
    run = integrate(flow, start, preset, times=times * unit, t_max=t_max * unit, finishing=False, tol=1e-9)
    assert run.states is not None
    speed = flow.residual(run.states)
    counts = torch.stack([find_clusters(run.states, scale).n_clusters for scale in CLUSTER_SCALES])
    plateaus = _plateaus(flow, run.states, times, speed, counts[1], unit)
    return Metastability(times, speed, counts, plateaus)


def _plateaus(
    flow: AbstractSphereFlow, states: Tensor, times: Tensor, speed: Tensor, count: Tensor, unit: float
) -> tuple[Plateau, ...]:
    """Maximal runs of at least three frames that are slow and keep their number of clusters."""
    slow = speed < SLOW_SHARE * speed[0]
    found, first = [], 0
    for i in range(1, len(times) + 1):
        if i < len(times) and bool(slow[i]) == bool(slow[first]) and int(count[i]) == int(count[first]):
            continue
        if bool(slow[first]) and i - first >= 3:
            middle = states[(first + i) // 2]
            rate, distance = _nearest(flow, middle)
            duration = float(times[i - 1] - times[first])
            found.append(
                Plateau(
                    float(times[first]),
                    duration,
                    int(count[first]),
                    rate * unit,
                    distance,
                    _life(rate * unit, distance),
                )
            )
        first = i
    return tuple(found)


def _nearest(flow: AbstractSphereFlow, x: Tensor) -> tuple[float, float]:
    """Largest real part at the equilibrium nearest to x and the distance to it, NaN if there is none nearby."""
    clusters = find_clusters(x, CLUSTER_SCALES[1])
    m = int(clusters.n_clusters)
    if m * (x.shape[-1] - 1) > 400:
        return math.nan, math.nan
    w, sizes = cluster_means(x.unsqueeze(0), clusters.labels.unsqueeze(0), m, None)
    polished = polish(flow, w, sizes, max_displacement=0.3)
    if not bool(polished.found):
        return math.nan, math.nan
    stability = cluster_stability(flow, polished.point, sizes)
    return float(stability.abscissa), float(polished.displacement)


def _life(rate: float, distance: float) -> float:
    """Time, in units of the plateau's clock, until a perturbation of size ``distance`` has grown to one."""
    if not math.isfinite(rate):
        return math.nan
    return math.inf if rate <= 0 else math.log(1 / min(max(distance, 1e-16), 1.0)) / rate
