"""Polygonal equilibria: every token feels no pull at all, V m_i = 0.

For the Oja flow they are the states with mean in the kernel of V. For softmax attention they are searched by
Levenberg-Marquardt steps on the pull; for invertible V and generic couplings only balanced antipodal pairs have been
found. Whether one is stable is computed, never assumed. Source: altafini2025, Lemma 11.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core import NotConverged, Result, require_integer
from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.arithmetic.linear_systems import solve

from ..flows.base import AbstractFlow, AbstractSphereFlow, require_sphere
from ..flows.sphere import check_tokens, normalise, random_tokens


def centred_tokens(
    n_tokens: int, dim: int, *batch: int, generator: torch.Generator, tol: float = 1e-14
) -> Float[Tensor, "*batch n d"]:
    """Unit tokens whose sum vanishes, by alternately centring and normalising random ones."""
    require_integer(n_tokens, "n_tokens", at_least=2)
    x = random_tokens(n_tokens, dim, *batch, generator=generator)
    for _ in range(10_000):
        mean = x.mean(dim=-2, keepdim=True)
        if float(mean.abs().max()) < tol:
            return x
        x = normalise(x - mean)
    raise NotConverged(f"tokens were not centred to {tol:g} in 10000 rounds; draw others.")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class PolygonalSearch(Result):
    """Ends of a search: states, the largest pull left, which of them are polygonal, and tangent abscissas there."""

    points: Float[Tensor, "batch n d"]
    residual: Float[Tensor, " batch"]
    found: Bool[Tensor, " batch"]
    abscissa: Float[Tensor, " batch"]

    @property
    def antipodal(self) -> Bool[Tensor, " batch"]:
        """Where all tokens lie on one line, half of them at each end."""
        cosines = (self.points * self.points[:, :1]).sum(dim=-1)
        on_line = ((cosines.abs() - 1).abs() < 1e-6).all(dim=-1)
        return on_line & (cosines.sign().sum(dim=-1) == 0)


def find_polygonal(flow: AbstractFlow, x0: object, *, max_steps: int = 400, tol: float = 1e-10) -> PolygonalSearch:
    """Levenberg-Marquardt on the pull from each start, on the sphere.

    Args:
        flow: one weight instance.
        x0: starts (batch, n, d).
        max_steps: steps per start.
        tol: largest pull, in units of the norm of V, at which a state counts as polygonal.

    Cost: one system of n (d - 1) unknowns per step and start.
    """
    flow = require_sphere(flow, "find_polygonal")
    x = check_tokens(x0, "x0").double()
    x = x.reshape(-1, *x.shape[-2:])
    flow = flow.to(torch.float64)
    damping = torch.full((len(x), 1, 1), 1e-2, dtype=x.dtype, device=x.device)
    cost = flow.pull(x).expand_as(x).square().sum(dim=(-2, -1))
    for _ in range(max_steps):
        if float(cost.max()) < (0.01 * tol * float(flow.rate)) ** 2:
            break
        trial = _damped_step(flow, x, damping)
        trial_cost = flow.pull(trial).expand_as(x).square().sum(dim=(-2, -1))
        better = trial_cost < cost
        x = torch.where(better[:, None, None], trial, x)
        cost = torch.where(better, trial_cost, cost)
        damping = torch.where(better[:, None, None], damping / 3, damping * 4).clamp(1e-15, 1e6)
    residual = torch.linalg.vector_norm(flow.pull(x).expand_as(x), dim=-1).amax(dim=-1)
    found = residual < tol * flow.rate
    abscissa = eigvals(flow.jacobian(x)).real.amax(dim=-1)
    return PolygonalSearch(x, residual, found, torch.where(found, abscissa, torch.nan))


def _damped_step(flow: AbstractSphereFlow, x: Tensor, damping: Tensor) -> Tensor:
    batch, n, d = x.shape
    basis = flow.basis(x)
    identity = torch.eye(n, dtype=x.dtype, device=x.device)
    directions = torch.einsum("ij,biae->iebja", identity, basis).reshape(n * (d - 1), batch, n, d)
    pull, change = flow.pull_and_jvp(x, directions)
    slope = change.expand(n * (d - 1), batch, n, d).reshape(n * (d - 1), batch, n * d).permute(1, 2, 0)
    right = slope.mT @ pull.expand_as(x).reshape(batch, n * d, 1)
    gram = slope.mT @ slope
    scale = gram.diagonal(dim1=-2, dim2=-1).mean(dim=-1)[:, None, None].clamp_min(1e-12)
    eye = torch.eye(gram.shape[-1], dtype=x.dtype, device=x.device)
    move = -solve(gram + damping * scale * eye, right)
    turn = (basis @ move.reshape(batch, n, d - 1, 1)).squeeze(-1)
    largest = torch.linalg.vector_norm(turn, dim=-1).amax(dim=-1)[:, None, None]
    return normalise(x + turn * (0.5 / largest.clamp_min(0.5)))
