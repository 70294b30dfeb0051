"""Flow maps with their derivatives, and Lyapunov exponents, by integrating tangent vectors along the motion."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import Outcome, ShapeError, as_tensor, require_integer, require_positive

from ..flows.base import AbstractFlow, AbstractSphereFlow, require_autonomous, require_flow
from ..flows.sphere import check_tokens
from ..flows.variational import VariationalFlow
from .driver import Run
from .methods.control import ScaledControl
from .methods.named import find_method
from .methods.rosenbrock import Rosenbrock
from .plan import Plan
from .stopping import Until

LOST, MOST_PIECES = 1e-4, 2**20
"""Growth of a vector, over that of the fastest, below which an interval is cut; and into how many pieces at most."""


def state_after(
    flow: AbstractFlow,
    x: Float[Tensor, "batch n d"],
    duration: Float[Tensor, " batch"],
    *,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    max_steps: int = 20_000,
) -> tuple[Float[Tensor, "batch n d"], Int[Tensor, " batch"]]:
    """States after times of their own, by DOP853, NaN where the integration failed; and the number of velocities.

    Where the motion is stiff by an implicit method, but not with tangent vectors: that takes second derivatives.
    """
    stiff = Rosenbrock() if flow.autonomous and not isinstance(flow, VariationalFlow) else None
    plan = Plan(find_method("dop853"), ScaledControl(rtol, atol), Until(), max_steps, stiff=stiff)
    run = Run(flow, (len(x),), x, plan, duration, None)
    run.run()
    reached = run.books.outcome == Outcome.COMPLETED
    return torch.where(reached[:, None, None], run.books.final, torch.nan), run.books.evaluations


def flow_map(
    flow: AbstractFlow, x: Float[Tensor, "n d"], duration: float
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "m m"]]:
    """State after ``duration`` and the derivative of that state in the first one, (n d) x (n d).

    Both are integrated together by DOP853, with the tangent vectors in their own coordinates; on the sphere,
    directions off it are not meaningful.
    """
    duration, x = require_positive(duration, "duration"), check_state(flow, x)
    n, d = x.shape
    tangents = torch.eye(n * d, dtype=torch.float64, device=x.device).reshape(n * d, n, d)
    end, moved = transport(flow.to(torch.float64), x.double(), tangents, duration)
    return end, moved.flatten(1).mT


def transport(
    flow: AbstractFlow, x: Float[Tensor, "n d"], tangents: Float[Tensor, "k n d"], duration: float, rtol: float = 1e-10
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "k n d"]]:
    """State and tangent vectors after ``duration``."""
    variational = VariationalFlow(flow, len(tangents))
    start = variational.pack(x, tangents).unsqueeze(0)
    span = torch.tensor([duration], dtype=torch.float64, device=x.device)
    end, _ = state_after(variational, start, span, rtol=rtol, atol=1e-2 * rtol)
    return variational.unpack(end.squeeze(0))


def lyapunov_exponents(
    flow: AbstractFlow,
    x: object,
    *,
    n_exponents: int = 1,
    duration: float | None = None,
    interval: float | None = None,
) -> Float[Tensor, " exponents"]:
    """The largest Lyapunov exponents of the motion from x, by re-orthogonalising tangent vectors at intervals.

    Args:
        flow: the flow; constant weights, one instance.
        x: state (n, d); the transient should be over.
        n_exponents: how many; no more than the state has dimensions are computed.
        duration: averaging time, by default 50 over the rate of the flow: the norm of V on the sphere, of the Jacobian
            at x elsewhere.
        interval: time between two orthogonalisations, by default 1 over the rate.
    """
    point = check_state(flow, x)
    require_autonomous(flow, "lyapunov_exponents")
    flow = flow.to(torch.float64)
    directions = torch.block_diag(*flow.basis(point)).mT
    count = min(require_integer(n_exponents, "n_exponents", at_least=1), len(directions))
    if duration is None or interval is None:
        rate = rate_at(flow, point)
        duration = 50 / rate if duration is None else duration
        interval = 1 / rate if interval is None else interval
    duration, interval = require_positive(duration, "duration"), require_positive(interval, "interval")
    tangents = directions[:count].reshape(count, *point.shape)
    total = torch.zeros(count, dtype=point.dtype, device=point.device)
    rounds = max(1, round(duration / interval))
    pieces = 1
    for _ in range(rounds):
        point, tangents, grown, pieces = _stretched(flow, point, tangents, interval, pieces)
        total = total + grown
    return (total / (rounds * interval)).sort(descending=True).values


def _stretched(
    flow: AbstractFlow, x: Tensor, tangents: Tensor, interval: float, pieces: int
) -> tuple[Tensor, Tensor, Float[Tensor, " count"], int]:
    """State and orthonormal vectors after an interval, logarithms of the growth, and the pieces it was cut into.

    In one piece a direction that shrinks by more than the accuracy of the integration against another is lost in it;
    then the interval is cut in two, and stays so for the next one.
    """
    while True:
        point, frame, total = x, tangents, torch.zeros(len(tangents), dtype=x.dtype, device=x.device)
        for _ in range(pieces):
            point, moved = transport(flow, point, frame, interval / pieces, rtol=1e-7)
            q, r = torch.linalg.qr(tangential(flow, point, moved).flatten(1).mT)
            growth = r.diagonal().abs()
            lost = bool((growth.amin() < LOST * growth.amax()) | ~torch.isfinite(growth).all())
            if lost and pieces < MOST_PIECES:
                break
            frame, total = q.mT.reshape(moved.shape), total + growth.log()
        else:
            return point, frame, total, pieces
        pieces *= 2


def tangential(
    flow: AbstractFlow, x: Float[Tensor, "n d"], tangents: Float[Tensor, "count n d"]
) -> Float[Tensor, "count n d"]:
    """The part of transported vectors that is tangent at their state.

    Rounding adds a little that is not. On the sphere it obeys u' = -2 (x'Vm) u, so it may outgrow the true tangents and
    be taken for the leading one.
    """
    basis = flow.basis(x)
    return (basis @ (basis.mT @ tangents.unsqueeze(-1))).squeeze(-1)


def check_state(flow: AbstractFlow, x: object) -> Float[Tensor, "n d"]:
    """One state of a flow in float64, refused by name if it is none."""
    require_flow(flow)
    state = check_tokens(x, "x") if isinstance(flow, AbstractSphereFlow) else as_tensor(x, "x")
    if state.ndim != 2:
        raise ShapeError(f"x must be one state (n, d); got shape {tuple(state.shape)}.")
    return state.double()


def rate_at(flow: AbstractFlow, x: Float[Tensor, "n d"]) -> float:
    """The inverse of the shortest time scale of a flow at a state."""
    if isinstance(flow, AbstractSphereFlow):
        return float(flow.rate.max())
    return max(float(torch.linalg.matrix_norm(flow.jacobian(x), ord=2)), 1e-280)
