"""How a two-layer linear network learns, by the route that fits: exact, exact with dense output, or integration.

The exact solution costs one QR per time and does not care how long or stiff the training is; an adaptive integrator
costs in proportion to rate times horizon, whatever the number of times. Integration therefore wins for many times of
a short, mild training, and the closed form everywhere else; where the closed form does not hold, integration is all
there is.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any, Literal, TypeAlias, final

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import (
    ConvergenceWarning,
    InvalidInput,
    OutsideTheory,
    Result,
    as_float64,
    require_positive,
    require_square,
    unknown_name,
)
from separatrix.dynamics import LinearNetworkFlow, integrate_layers
from separatrix.theory import BalancedFlow
from separatrix.theory.learning.one_network.network_product import NetworkProduct, Unreliable
from separatrix.theory.learning.one_network.plain_arrays import plain_array, plain_network

from .chebyshev_path import (
    DEGREE,
    chebyshev_path,
    doubling_panels,
    first_panel,
    fitting_degree,
    inside,
    squared_distance,
)

Method: TypeAlias = Literal["auto", "exact", "chebyshev", "integration"]
METHODS: tuple[Method, ...] = ("auto", "exact", "chebyshev", "integration")

_DENSE = 300
_MILD = 300.0
_SPARSE = 1.4
"""Times per node of an interpolation, some of whose panels will be halved, up to which evaluating them costs less."""
_LIGHT = 4e4
"""Multiplications that cost less than the bookkeeping of an interpolation."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LearningDynamics(Result):
    """The course of learning, how it was computed, and why so."""

    times: Float[Tensor, " times"]
    product: Tensor
    """``w2 w1`` at the times, (times, *batch, n_out, n_in)."""
    loss: Tensor
    """Excess loss over the best linear map, (times, *batch)."""
    method: str
    reason: str
    error: str
    """What limits the accuracy."""


def learning_dynamics(
    w1: Any,
    w2: Any,
    corr_yx: Any,
    times: Any,
    method: str = "auto",
    *,
    corr_xx: Any | None = None,
    tau: float = 1.0,
    tol: float = 1e-10,
) -> LearningDynamics:
    """Product and loss of a two-layer linear network along gradient flow.

    Args:
        w1: first layer at time zero, (*batch, n_hidden, n_in).
        w2: second layer at time zero, (*batch, n_out, n_hidden).
        corr_yx: input-output correlation, (*batch, n_out, n_in).
        times: one-dimensional, not negative.
        method: ``"auto"``, or ``"exact"`` (closed form at every time), ``"chebyshev"`` (closed form at Chebyshev nodes,
            interpolated), ``"integration"`` (DOP853). An explicit exact method refuses what the closed form does not
            cover.
        corr_xx: input correlation; white if left out. A multiple of the identity is covered by the closed form.
        tau: time constant.
        tol: relative accuracy of interpolation and integration; the closed form is accurate to rounding.

    Returns:
        The trajectory with ``method`` and ``reason``. With ``method="auto"`` outside the closed form's assumptions the
        result comes from integration and a ``ConvergenceWarning`` says so.

    Example:
        >>> one = torch.ones(1, 1, dtype=torch.float64)
        >>> learning_dynamics(0.1 * one, 0.1 * one, 2 * one, [0.0, 1e6]).method
        'exact'
    """
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    require_positive(tol, "tol")
    moments = _moments(times)
    if method == "integration":
        return _integrated(w1, w2, corr_yx, corr_xx, moments, tau, tol, "asked for")
    if method == "auto" and corr_xx is None and moments.numel():
        found = _swift(w1, w2, corr_yx, moments, tau, tol)
        if found is not None:
            return found
    try:
        flow = BalancedFlow(w1, w2, corr_yx, tau, input_var=_input_var(corr_xx))
    except OutsideTheory as error:
        if method != "auto":
            raise
        warnings.warn(f"the closed form does not hold, integrating instead: {error}", ConvergenceWarning, stacklevel=2)
        return _integrated(w1, w2, corr_yx, corr_xx, moments, tau, tol, str(error))
    chosen, reason = (method, "asked for") if method != "auto" else _choose(flow, moments)
    if chosen == "chebyshev" and moments.numel():
        product, nodes = _interpolated(flow, moments, tol)
        limit = f"interpolation to {tol:g} ({nodes} nodes)"
    else:
        product, limit = flow.product(moments), "rounding"
    return LearningDynamics(moments, product, _loss(flow, product, moments, chosen), chosen, reason, limit)


def _moments(times: Any) -> Tensor:
    """Times in double precision, (times,); plain ones are judged in two calls, all others also find the words."""
    plain = plain_array(times, 1) if isinstance(times, Tensor) else None
    if plain is not None and len(plain) and plain.min() >= 0 and plain.max() < math.inf:  # false of NaN
        return torch.from_numpy(plain)
    moments = as_float64(times, "times").reshape(-1)
    if bool((moments < 0).any()):
        raise InvalidInput(f"times must not be negative; got {float(moments.min()):g}.")
    return moments


def _swift(w1: Any, w2: Any, corr_yx: Any, times: Tensor, tau: float, tol: float) -> LearningDynamics | None:
    """One network of plain numbers, by the fast form of the closed form; None where that does not hold or serve."""
    network = plain_network(w1, w2, corr_yx)
    if network is None or times.requires_grad or times.device.type != "cpu":
        return None
    require_positive(tau, "tau")
    moments = times.numpy() if tau == 1 else times.numpy() / tau
    horizon = float(moments.max())
    flow = NetworkProduct(network, horizon)
    settled = flow.settled
    if settled < horizon:
        return _settling(flow, settled, times, moments, tol)
    return _followed(flow, times, moments, tol)


def _settling(flow: NetworkProduct, settled: float, times: Tensor, moments: Any, tol: float) -> LearningDynamics | None:
    """A training that is over before the last time: the limit is computed once, and copied."""
    late = moments >= settled
    early = numpy.append(moments[~late], settled)
    found = _followed(flow, torch.from_numpy(early), early, tol)
    if found is None:
        return None
    product, loss = (_with_limit(part.numpy(), moments, late) for part in (found.product, found.loss))
    over = f"{len(moments)} times, of which {int(late.sum())} lie after the training is over and get the limit"
    reason = f"{over}; {found.reason}"
    return LearningDynamics(times, product, loss, found.method, reason, found.error)


def _with_limit(part: Any, moments: Any, late: Any) -> Tensor:
    """What was found at the early times, and its last entry at the late ones."""
    whole = numpy.empty((len(moments), *part.shape[1:]))  # in large pages, where torch's would be small and slow
    if (moments[1:] >= moments[:-1]).all():  # slices need no list of indices
        whole[: len(part) - 1], whole[len(part) - 1 :] = part[:-1], part[-1]
    else:
        whole[~late], whole[late] = part[:-1], part[-1]
    return torch.from_numpy(whole)


def _followed(flow: NetworkProduct, times: Tensor, moments: Any, tol: float) -> LearningDynamics | None:
    """Exact at every time, or at nodes, whichever costs less."""
    start, horizon = float(moments.min()), float(moments.max())
    panels = doubling_panels(start, horizon, first_panel(flow.fastest, tol))
    degree = fitting_degree(flow.fastest, horizon, tol) if len(panels) == 1 else DEGREE
    n_nodes = _evaluations(moments, panels, degree)
    try:
        if len(moments) <= max(_SPARSE * n_nodes, _LIGHT / flow.weight):
            chosen, limit = "exact", "rounding"
            reason = f"balanced weights and {len(moments)} times: one closed-form evaluation each"
            product = flow.product(moments)
            distance = squared_distance(product, flow.network.target)
        else:
            chosen = "chebyshev"
            path = chebyshev_path(flow.product, moments, panels, tol, degree)
            product, distance = path.values_and_distance(flow.network.target)
            nodes = path.evaluations
            reason = f"balanced weights, {len(moments)} times: exact at {nodes} nodes, interpolated between"
            limit = f"interpolation to {tol:g} ({nodes} nodes)"
    except Unreliable:
        return None
    loss = torch.from_numpy(distance / 2)
    return LearningDynamics(times, torch.from_numpy(product), loss, chosen, reason, limit)


def _evaluations(moments: Any, panels: Any, degree: int) -> int:
    """Exact evaluations of an interpolation none of whose panels is halved."""
    if len(panels) == 1:
        return min(len(moments), degree + 1)
    begins, ends = inside(numpy.sort(moments), panels)
    return int(numpy.minimum(ends - begins, degree + 1).sum())


def _interpolated(flow: BalancedFlow, times: Tensor, tol: float) -> tuple[Tensor, int]:
    """The product of any flow, exact at nodes."""
    moments = times.detach().to("cpu").numpy()
    fastest = float(flow.modes.rates.detach().abs().max()) * flow.clock
    panels = doubling_panels(float(moments.min()), float(moments.max()), first_panel(fastest, tol))

    def evaluate(nodes: Any) -> Any:
        return flow.product(torch.from_numpy(nodes)).detach().to("cpu", torch.float64).numpy()

    path = chebyshev_path(evaluate, moments, panels, tol)
    return torch.from_numpy(path.values()).to(flow.dtype), path.evaluations


def _loss(flow: BalancedFlow, product: Tensor, times: Tensor, method: str) -> Tensor:
    """The loss of a product that is known already; in single precision it is taken before the product is rounded."""
    if method == "exact" and flow.dtype is not torch.float64:
        return flow.loss(times)
    return (product - flow.target).square().sum((-2, -1)) * (flow.input_var / 2)


def _choose(flow: BalancedFlow, times: Tensor) -> tuple[str, str]:
    horizon = float(times.max()) * flow.clock if times.numel() else 0.0
    stiffness = 2 * float(flow.modes.rates.detach().abs().max()) * horizon
    if times.numel() < _DENSE:
        return "exact", f"balanced weights and only {times.numel()} times: one closed-form evaluation each"
    if stiffness > _MILD:
        return (
            "exact",
            f"balanced weights and rate times horizon is {stiffness:.0f}: an integrator would need many steps",
        )
    if flow.batch.numel() > 1:
        return "exact", "balanced weights and a batch of networks: the closed form evaluates them together"
    return (
        "chebyshev",
        f"balanced weights, {times.numel()} times of a short training: exact at nodes, interpolated between",
    )


def _input_var(corr_xx: Any | None) -> float:
    if corr_xx is None:
        return 1.0
    corr = as_float64(corr_xx, "corr_xx")
    require_square(corr, "corr_xx")
    scale = float(corr.diagonal(dim1=-2, dim2=-1).mean())
    identity = torch.eye(corr.shape[-1], dtype=torch.float64)
    off = float((corr - scale * identity).abs().max())
    if scale <= 0 or off > 1e-6 * scale:
        raise OutsideTheory(
            f"corr_xx must be a multiple of the identity for the closed form; it is off by {off:.2g} of {scale:.3g}. "
            "Use method='integration'; whitening the inputs would change the dynamics."
        )
    return scale


def _integrated(
    w1: Any, w2: Any, corr_yx: Any, corr_xx: Any | None, times: Tensor, tau: float, tol: float, reason: str
) -> LearningDynamics:
    flow = LinearNetworkFlow(
        as_float64(corr_yx, "corr_yx"), None if corr_xx is None else as_float64(corr_xx, "corr_xx"), tau=tau
    )
    order = times.argsort()
    path = integrate_layers(flow, (as_float64(w1, "w1"), as_float64(w2, "w2")), times[order], rtol=tol, atol=tol * 1e-2)
    back = order.argsort()
    note = "local error of DOP853" if path.ok else "some networks failed: NaN there (out of steps or not finite)"
    return LearningDynamics(times, path.product[back], path.loss[back], "integration", reason, f"{note}, rtol {tol:g}")
