"""Follow an equilibrium as a parameter changes, and find where it gains or loses stability.

Newton's method from the last point, with steps that halve when it fails. Between two points at which an abscissa has
different signs the event is located by bisection. At a fold the branch ends: beyond it no equilibrium is nearby.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, as_tensor, require_kind, require_positive
from separatrix.core.names import suggest_options

from ..flows.attention import AttentionFlow
from ..flows.base import AbstractSphereFlow
from ..flows.sphere import check_tokens
from .polishing import polish
from .stability import ClusterStability, cluster_stability

EventKind: TypeAlias = Literal["quotient", "transversal", "end"]
Setting: TypeAlias = tuple[AbstractSphereFlow, Float[Tensor, " m"]]
SMALLEST_STEP = 1e-6
LOCATED = 1e-10


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Event:
    """Where an abscissa crosses zero: clusters start to move (quotient), to split (transversal), or the branch ends."""

    parameter: float
    kind: EventKind
    stable_after: bool


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Branch(Result):
    """An equilibrium at a sequence of parameters, with the abscissas of both blocks and the events between."""

    parameters: Float[Tensor, " points"]
    points: Float[Tensor, "points m d"]
    quotient_abscissa: Float[Tensor, " points"]
    transversal_abscissa: Float[Tensor, " points"]
    events: tuple[Event, ...]

    @property
    def stable(self) -> Tensor:
        """True at the parameters where all tangent eigenvalues are negative."""
        return torch.maximum(self.quotient_abscissa, self.transversal_abscissa) < 0


def follow(setting: Callable[[float], Setting], w: object, parameters: object) -> Branch:
    """Continue an equilibrium along increasing or decreasing parameters.

    Args:
        setting: parameter to flow and cluster sizes.
        w: clusters (m, d) at or near the equilibrium at the first parameter.
        parameters: where the branch is wanted; steps in between are halved as needed.

    Raises:
        InvalidInput: no equilibrium within 0.05 rad of ``w`` at the first parameter.
    """
    wanted = as_tensor(parameters, "parameters", dtype=torch.float64).reshape(-1)
    if not len(wanted):
        raise InvalidInput("parameters must hold at least one number.")
    first = _settle(setting, check_tokens(w, "w").double(), float(wanted[0]))
    if first is None:
        raise InvalidInput(
            f"w must be near an equilibrium at the first parameter {float(wanted[0]):g}; none within 0.05 rad."
        )
    points, kept, events = [first], [float(wanted[0])], list[Event]()
    for target in wanted[1:].tolist():
        reached = _advance(setting, points[-1], kept[-1], target, events)
        if reached is None:
            break
        points.append(reached)
        kept.append(target)
    states = [stability for _, stability in points]
    return Branch(
        torch.tensor(kept, dtype=torch.float64),
        torch.stack([point for point, _ in points]),
        torch.stack([state.quotient_abscissa for state in states]),
        torch.stack([state.transversal_abscissa for state in states]),
        tuple(events),
    )


_Point: TypeAlias = tuple[Tensor, ClusterStability]


def _settle(setting: Callable[[float], Setting], w: Tensor, parameter: float) -> _Point | None:
    flow, sizes = setting(parameter)
    polished = polish(flow, w, sizes)
    if not bool(polished.found):
        return None
    return polished.point, cluster_stability(flow, polished.point, sizes)


def _advance(
    setting: Callable[[float], Setting], point: _Point, start: float, target: float, events: list[Event]
) -> _Point | None:
    """To the target by steps that halve on failure; events on the way are appended."""
    at, step = start, target - start
    while at != target:
        nxt = target if abs(target - at) <= abs(step) else at + step
        reached = _settle(setting, point[0], nxt)
        if reached is None:
            step /= 2
            if abs(step) < SMALLEST_STEP * max(1.0, abs(at)):
                events.append(Event(at, "end", False))
                return None
            continue
        events.extend(_crossings(setting, point, at, reached, nxt))
        point, at = reached, nxt
    return point


def _crossings(setting: Callable[[float], Setting], a: _Point, start: float, b: _Point, end: float) -> list[Event]:
    found = []
    for kind in ("quotient", "transversal"):
        before, after = (float(getattr(state, f"{kind}_abscissa")) for _, state in (a, b))
        if math.isfinite(before) and math.isfinite(after) and before * after < 0:
            found.append(Event(_bisect(setting, a, start, end, kind), kind, bool(b[1].stable)))
    return sorted(found, key=lambda event: (event.parameter - start) * (1 if end > start else -1))


def _bisect(setting: Callable[[float], Setting], a: _Point, low: float, high: float, kind: str) -> float:
    sign = math.copysign(1.0, float(getattr(a[1], f"{kind}_abscissa")))
    while abs(high - low) > LOCATED * max(1.0, abs(low)):
        middle = (low + high) / 2
        reached = _settle(setting, a[0], middle)
        if reached is None:
            break
        if sign * float(getattr(reached[1], f"{kind}_abscissa")) > 0:
            low, a = middle, reached
        else:
            high = middle
    return (low + high) / 2


def beta_branch(flow: AttentionFlow, w: object, sizes: Sequence[int | float], betas: object) -> Branch:
    """An equilibrium of clusters as the inverse temperature changes; betas are positive and monotone.

    Steps are taken in log beta. The parameters of the branch and of its events are betas.
    """
    require_kind(flow, "flow", AttentionFlow, "an AttentionFlow")
    values = as_tensor(betas, "betas", dtype=torch.float64).reshape(-1)
    if bool((values <= 0).any()):
        raise InvalidInput("betas must be positive: beta = 0 is the uniform flow, which has equilibria of its own.")
    counts = as_tensor(sizes, "sizes", dtype=torch.float64)
    branch = follow(lambda log_beta: (flow.with_beta(math.exp(log_beta)), counts), w, values.log())
    events = tuple(dataclasses.replace(event, parameter=math.exp(event.parameter)) for event in branch.events)
    return dataclasses.replace(branch, parameters=branch.parameters.exp(), events=events)


def fraction_branch(flow: AbstractSphereFlow, w: object, fractions: object, n_tokens: float = 1000.0) -> Branch:
    """An equilibrium of two clusters as the share of tokens in the first one changes, in the limit of many tokens.

    Through the edge of its stable window a bipartite state hands over to a two-cluster state that is not antipodal,
    which the branch from the other side follows. Sizes are ``n_tokens`` times the shares, as real numbers.
    """
    n_tokens = require_positive(n_tokens, "n_tokens")
    values = as_tensor(fractions, "fractions", dtype=torch.float64).reshape(-1)
    if bool(((values <= 0) | (values >= 1)).any()):
        raise InvalidInput("fractions must lie strictly between 0 and 1.")

    def setting(share: float) -> Setting:
        return flow, n_tokens * torch.tensor([share, 1 - share], dtype=torch.float64)

    return follow(setting, w, values)
