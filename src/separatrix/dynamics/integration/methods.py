"""How one step is attempted: explicit Runge-Kutta pairs, and a Rosenbrock method for stiff flows."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import resolve
from separatrix.core.names import suggest_options

from ..flows.base import AbstractFlow
from .tableau import BS32, DP54, TSIT5, Tableau, dop853


@final
@dataclasses.dataclass(frozen=True)
class Attempt:
    """A proposed state with its velocity, the error estimates, and the slopes on the way, the first one first."""

    state: Float[Tensor, "batch n d"]
    velocity: Float[Tensor, "batch n d"]
    errors: Float[Tensor, "estimates batch n d"]
    slopes: Float[Tensor, "stages batch n d"]

    def part(self, chosen: Tensor) -> Attempt:
        """Of some of the trajectories."""
        return Attempt(self.state[chosen], self.velocity[chosen], self.errors[:, chosen], self.slopes[:, chosen])


class AbstractMethod(abc.ABC):
    """One way to make a step of many trajectories, each with its own size."""

    name: str
    order: int
    evaluations: int
    """Velocities of a step."""
    lands: bool
    """Whether steps must end on the times that are asked for, because nothing is known in between."""

    @abc.abstractmethod
    def attempt(
        self,
        flow: AbstractFlow,
        x: Float[Tensor, "batch n d"],
        velocity: Float[Tensor, "batch n d"],
        t: Float[Tensor, " batch"],
        h: Float[Tensor, " batch"],
        live: Float[Tensor, "batch n 1"] | None,
    ) -> Attempt:
        """The state after a step of size h, given the velocity at x; rows that are not ``live`` stay."""

    def between(
        self,
        x: Float[Tensor, "batch n d"],
        attempt: Attempt,
        h: Float[Tensor, " batch"],
        theta: Float[Tensor, " batch"],
    ) -> Float[Tensor, "batch n d"]:
        """The state at a fraction theta of an accepted step, before projection. The default is a cubic polynomial."""
        return cubic(x, attempt, h, theta)


def cubic(x: Tensor, attempt: Attempt, h: Tensor, theta: Tensor) -> Float[Tensor, "batch n d"]:
    """The cubic polynomial through both ends of a step with their velocities."""
    s, size = theta[:, None, None], h[:, None, None]
    a, b = x.double(), attempt.state.double()
    da, db = size * attempt.slopes[0].double(), size * attempt.velocity.double()
    return (1 + 2 * s) * (1 - s) ** 2 * a + s * (1 - s) ** 2 * da + s**2 * (3 - 2 * s) * b + s**2 * (s - 1) * db


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class RungeKutta(AbstractMethod):
    """An explicit pair. Stages are projected, so that a flow is only asked for velocities of admissible states.

    On a constrained space this is the method applied to velocity(project(x)), which has the same solutions: the
    order is kept.
    """

    tableau: Tableau

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the tableau."""
        return self.tableau.name

    @property
    def order(self) -> int:  # type: ignore[override]
        """That of the tableau."""
        return self.tableau.order

    @property
    def evaluations(self) -> int:  # type: ignore[override]
        """One fewer than stages: the first is the last of the step before."""
        return self.tableau.n_stages - 1

    @property
    def lands(self) -> bool:  # type: ignore[override]
        """Unless the tableau has dense output."""
        return self.tableau.dense is None

    def attempt(
        self,
        flow: AbstractFlow,
        x: Float[Tensor, "batch n d"],
        velocity: Float[Tensor, "batch n d"],
        t: Float[Tensor, " batch"],
        h: Float[Tensor, " batch"],
        live: Float[Tensor, "batch n 1"] | None,
    ) -> Attempt:
        """All stages; the last is taken at the proposed state."""
        table, numbers = self.tableau, self.tableau.on(x.dtype, x.device)
        size = h.to(x.dtype)[:, None, None]
        slopes = x.new_empty(table.n_stages, *x.shape)
        flat = slopes.view(table.n_stages, -1)
        slopes[0] = velocity
        y = x
        for i in range(1, table.n_stages):
            y = (numbers.stages[i] @ flat[:i]).view_as(x)
            y = flow.project(y.mul_(size).add_(x))
            slope = flow.velocity(y, t + table.nodes[i] * h)
            slopes[i] = slope if live is None else slope * live
        errors = (numbers.errors @ flat).view(-1, *x.shape).mul_(size)
        return Attempt(y, slopes[-1], errors, slopes)

    def between(
        self,
        x: Float[Tensor, "batch n d"],
        attempt: Attempt,
        h: Float[Tensor, " batch"],
        theta: Float[Tensor, " batch"],
    ) -> Float[Tensor, "batch n d"]:
        """The polynomial of the tableau in theta."""
        dense = self.tableau.on(torch.float64, x.device).dense
        assert dense is not None
        powers = theta.unsqueeze(-1) ** torch.arange(1, dense.shape[1] + 1, device=x.device)
        weights = h.unsqueeze(-1) * (powers @ dense.mT)
        return x.double() + torch.einsum("bs,sbnd->bnd", weights, attempt.slopes.double())


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Rosenbrock(AbstractMethod):
    """The linearly implicit method RODAS: fourth order, stiffly accurate, third-order estimate.

    Stages solve (I - gamma h J) k_i = gamma (h f(x + sum_j a_ij k_j) + sum_j c_ij k_j) with the Jacobian J at the
    start of the step; the last k is the error. For flows with a fast contraction, where an explicit method takes
    steps of its time scale.

    Cost: a dense Jacobian and its factorisation per step, O((n d)^3) per element.

    Source: Hairer, Wanner, Solving Ordinary Differential Equations II, section VI.3.
    """

    name: str = "rodas4"
    order: int = 4
    evaluations: int = 6
    lands: bool = True

    def attempt(
        self,
        flow: AbstractFlow,
        x: Float[Tensor, "batch n d"],
        velocity: Float[Tensor, "batch n d"],
        t: Float[Tensor, " batch"],
        h: Float[Tensor, " batch"],
        live: Float[Tensor, "batch n 1"] | None,
    ) -> Attempt:
        """Six linear systems with one factorisation."""
        size = h.to(x.dtype)[:, None, None]
        system = _implicit(flow, x, GAMMA * size, live)
        slope, y, ks = velocity, x, list[Tensor]()
        for row, mixed in zip(RODAS_A, RODAS_C, strict=True):
            if row:
                y = x + _combined(row, ks)
                slope = _masked(flow.velocity(flow.project(y), t), live)
            right = size * slope + _combined(mixed, ks) if mixed else size * slope
            solution = torch.linalg.lu_solve(*system, GAMMA * right.flatten(1).unsqueeze(-1))
            ks.append(solution.squeeze(-1).view_as(x))
        state = flow.project(y + ks[-1])
        return Attempt(state, _masked(flow.velocity(state, t + h), live), ks[-1].unsqueeze(0), velocity.unsqueeze(0))


GAMMA = 0.25
_LAST = (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)
RODAS_A = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    _LAST,
    (*_LAST, 1.0),
)
RODAS_C = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
    (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
)


def _combined(weights: tuple[float, ...], ks: list[Tensor]) -> Tensor:
    total = weights[0] * ks[0]
    for weight, k in zip(weights[1:], ks[1:], strict=True):
        total = total + weight * k
    return total


def _masked(velocity: Tensor, live: Tensor | None) -> Tensor:
    return velocity if live is None else velocity * live


def _implicit(flow: AbstractFlow, x: Tensor, size: Tensor, live: Tensor | None) -> tuple[Tensor, Tensor]:
    """Factors of I - size J."""
    matrix = slope_matrix(flow, x, live)
    eye = torch.eye(matrix.shape[-1], dtype=x.dtype, device=x.device)
    factors, pivots, _ = torch.linalg.lu_factor_ex(eye - size * matrix)
    return factors, pivots


def slope_matrix(flow: AbstractFlow, x: Tensor, live: Tensor | None) -> Float[Tensor, "batch k k"]:
    """Derivative of velocity(project(x)) at an admissible state, in all coordinates."""
    basis = flow.basis(x)
    full = flow.ambient_jacobian(x).expand(*x.shape, *x.shape[-2:])
    full = torch.einsum("...iahb,...hbe,...hce->...iahc", full, basis, basis)
    if live is not None:
        full = full * live[..., None, None]
    return full.flatten(-4, -3).flatten(-2, -1)


EXPLICIT: Mapping[str, Tableau] = {tableau.name: tableau for tableau in (BS32, DP54, TSIT5)}
METHODS = (*EXPLICIT, "dop853", "rodas4")


def find_method(given: str | Tableau | AbstractMethod) -> AbstractMethod:
    """A method by name, from a tableau of one's own, or the given object."""
    if isinstance(given, AbstractMethod):
        return given
    if isinstance(given, Tableau):
        return RungeKutta(given)
    name = resolve("method", given, {name: name for name in METHODS})
    if name == "rodas4":
        return Rosenbrock()
    return RungeKutta(dop853() if name == "dop853" else EXPLICIT[name])
