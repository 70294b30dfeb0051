"""Motions that fall to an equilibrium in many turns, each hardly nearer than the one before."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core.arithmetic.eigenvalues import eig
from separatrix.core.arithmetic.linear_systems import solve_ex

from ...equilibria.polishing import polish
from ...equilibria.stability import token_stability
from ...flows.base import AbstractFlow
from ..variational import state_after

SHARES = 12
"""Places of a turn of which the mean is taken for its centre."""

NEARER, PROBES = 0.85, 20
"""Each probe stands at this share of the distance of the one before; the last at a twentieth of the first."""

CONTRACTS = 1e-8
"""Share of its distance by which every probe must come nearer: well above the error of following it."""


def fall(
    flow: AbstractFlow, x: Float[Tensor, "batch n d"], period: Float[Tensor, " batch"]
) -> tuple[Float[Tensor, "batch n d"], Int[Tensor, " batch"]]:
    """The stable equilibria onto which motions fall that nearly come back after a time; NaN where there is none.

    The equilibrium is looked for from the centre of a turn. That it is stable does not say that this motion reaches
    it: another cycle may lie between. So states all the way in are followed for the same time, and every one of them
    must come nearer, in coordinates in which the linear motion at the equilibrium never leads away.

    Cost: two integrations over a turn, of 12 and of 20 states together, Newton's method, and dense eigenvectors.
    """
    count, every = len(x), torch.arange(len(x), device=x.device)
    share = torch.arange(1, SHARES + 1, dtype=x.dtype, device=x.device).repeat_interleave(count) / SHARES
    many = every.repeat(SHARES)
    turn, spent = state_after(flow.select((count,), many), x[many], share * period[many], rtol=1e-6, atol=1e-9)
    turn, spent = turn.unflatten(0, (SHARES, count)), spent.reshape(SHARES, count).sum(dim=0)
    centre = flow.project(turn.mean(dim=0))
    extent = torch.linalg.vector_norm((turn - centre).flatten(2), dim=-1).amax(dim=0)
    usable = torch.isfinite(extent)
    centre = torch.where(usable[:, None, None], centre, x)
    polished = polish(flow, centre, max_displacement=extent.nan_to_num(nan=0.0))
    found = polished.found & usable
    safe = torch.where(found[:, None, None], polished.point, x)
    found = found & token_stability(flow, safe).stable
    some = found.nonzero().squeeze(-1)
    if len(some):
        own = flow.select((count,), some)
        found[some], more = _all_come_nearer(own, safe[some], x[some], period[some])
        spent[some] += more
    return torch.where(found[:, None, None], safe, torch.nan), spent


def _all_come_nearer(
    flow: AbstractFlow, point: Tensor, x: Tensor, period: Tensor
) -> tuple[Bool[Tensor, " batch"], Int[Tensor, " batch"]]:
    """Whether the states between x and an equilibrium are nearer to it some time later."""
    count, many = len(x), torch.arange(len(x), device=x.device).repeat(PROBES)
    scale = (NEARER ** torch.arange(PROBES, dtype=x.dtype, device=x.device)).repeat_interleave(count)
    own = flow.select((count,), many)
    start = own.project(point[many] + scale[:, None, None] * (x - point)[many])
    end, spent = state_after(own, start, period[many])
    basis = flow.basis(point)
    vectors = eig(flow.jacobian(point))[1]

    def distance(states: Tensor) -> Tensor:
        away = (basis[many].mT @ (states - point[many]).unsqueeze(-1)).flatten(1).to(vectors.dtype)
        parts = solve_ex(vectors[many], away.unsqueeze(-1))[0].squeeze(-1)
        return torch.linalg.vector_norm(parts, dim=-1)

    nearer = distance(end) < (1 - CONTRACTS) * distance(start)  # false for NaN
    return nearer.reshape(PROBES, count).all(dim=0), spent.reshape(PROBES, count).sum(dim=0)
