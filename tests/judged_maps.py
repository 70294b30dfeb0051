"""The judge of what a solver says about maps whose equilibria are known (``known_maps``).

The rules were written down before any solver was run on these maps.

*Truth.* The equilibria of a map are those of its formula in exact arithmetic, with parameters that the dtype can hold;
they come from Newton's method with dense Jacobians in double precision (residual below 1e-11 of the state), or do not
exist, by construction. The solver sees the formula in the arithmetic of the dtype.

*Wrong.* ``converged`` is wrong if there is no equilibrium, or if the nearest one is farther from the answer than ten
times what the solver claims, tol |z*| + atol with the default tolerances. The factor ten is what an estimate of an
error may be off by: without an estimate, with the residual alone, it would be off by |(I - J)^-1|, up to 1e5 here.
Rounding is no excuse: where it spoils the answer the solver has to say that it stalled.

*Missed.* A solve that is due to converge and did not say so. It is due if

- there is an equilibrium z*, and the precision allows the claim: 3 eps |(I - J(z*))^-1| <= tol;
- the budget suffices: the iterates of this very method, followed to the end of the budget and never stopped, lie
  within a third of tol |z*| + atol of z* for five steps in a row.

Nothing else excuses a solve.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from known_maps import KnownMap
from separatrix.core import Outcome
from separatrix.dynamics import AbstractEquilibriumSolver
from separatrix.dynamics.solve.find import solve_quietly
from separatrix.dynamics.solve.maps.counted import CountedMap

BUDGET = 200
OFF_BY = 10.0
WITHIN, IN_A_ROW = 1 / 3, 5
ROUNDING_MARGIN = 3.0


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a solver said about one row, and whether it may."""

    kind: str
    solver: str
    dtype: torch.dtype
    outcome: Outcome
    exists: bool
    wrong: bool
    due: bool
    distance: float
    """To the nearest equilibrium, over what was claimed."""
    evaluations: int

    @property
    def missed(self) -> bool:
        return self.due and self.outcome != Outcome.CONVERGED


def judged(known: KnownMap, method: AbstractEquilibriumSolver[Any]) -> list[Verdict]:
    """One verdict per row; the method must have its default tolerances."""
    solution = solve_quietly(known, method, known.start)
    eps = torch.finfo(known.start.dtype).eps
    tol = min(max(1e-6, 1e3 * eps), 0.1)
    first = (known.exact(known.start.double()) - known.start.double()).norm(dim=1)
    points = known.equilibria()
    claims = [tol * point.norm(dim=1) + 1e-2 * tol * first.clamp_max(1.0) for point in points]
    distances = _distances(solution.best.double(), points, claims)
    converged = solution.outcome == Outcome.CONVERGED
    due = torch.zeros_like(converged) if bool(converged.all()) else _due(known, method, points, claims, eps, tol)
    return [
        Verdict(
            known.kind,
            type(method).__name__,
            known.start.dtype,
            Outcome(int(solution.outcome[row])),
            bool(points),
            bool(converged[row]) and not float(distances[row]) <= OFF_BY,
            bool(due[row]) or (bool(converged[row]) and bool(points)),
            float(distances[row]),
            int(solution.evaluations[row]),
        )
        for row in range(len(converged))
    ]


def _distances(z: Tensor, points: list[Tensor], claims: list[Tensor]) -> Tensor:
    if not points:
        return torch.full(z.shape[:1], torch.inf, dtype=torch.float64)
    away = [(z - point).norm(dim=1) for point in points]
    far = [
        torch.where(gap == 0, 0.0, gap / claim) for gap, claim in zip(away, claims, strict=True)
    ]  # claim may be zero
    return torch.stack(far).nan_to_num(nan=torch.inf).amin(0)


@torch.no_grad()
def _due(
    known: KnownMap,
    method: AbstractEquilibriumSolver[Any],
    points: list[Tensor],
    claims: list[Tensor],
    eps: float,
    tol: float,
) -> Tensor:
    """Whether the iterates of the method, never stopped, come and stay near an equilibrium that can be claimed."""
    due = torch.zeros(len(known.start), dtype=torch.bool)
    if not points:
        return due
    with torch.enable_grad():
        claimable = [ROUNDING_MARGIN * eps * known.gain(point) <= tol for point in points]
    counted = CountedMap(known, known.start.shape, known.start.dtype)
    z = known.start.to(torch.promote_types(known.start.dtype, torch.float32))
    history = method.begin(counted, z)
    in_a_row = [torch.zeros(len(z), dtype=torch.int64) for _ in points]
    for _ in range(method.max_steps):
        for k, (point, claim) in enumerate(zip(points, claims, strict=True)):
            near = (z.double() - point).norm(dim=1) <= WITHIN * claim
            in_a_row[k] = torch.where(near, in_a_row[k] + 1, 0)
            due |= claimable[k] & (in_a_row[k] >= IN_A_ROW)
        f = counted(z)
        residual = torch.sub(f, z, out=method.residual_buffer(history))
        z = method.propose(history, z, f, residual)
    return due
