"""Stability of a clustered state, by differentiating the flow of the clusters.

The tangent Jacobian of n tokens in m clusters splits into a quotient block, which moves whole clusters, and for each
cluster of two or more tokens a transversal block, which pulls its tokens apart. Both come from derivatives of the
reduced flow alone: the quotient block is its Jacobian, and the transversal block is what happens when every cluster
is cut in two halves that move in opposite directions, which to first order nobody else notices. No formula for the
blocks is used, so this is a route independent of ``theory`` and holds for every kind of attention.
"""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Bool, Complex, Float, Int
from torch import Tensor

from separatrix.core.arithmetic.eigenvalues import eig, eigvals
from separatrix.core.names import suggest_options

from ..flows.base import AbstractFlow, AbstractSphereFlow, require_sphere

MARGINAL = 1e-9
"""Eigenvalues with real part within this fraction of the rate of the flow decide nothing."""

FOLD, PROBE = 1e-6, 1e-4
"""Distance, over the size of the state, within which a fold decides nothing, and at which eigenvalues are compared.

At a fold two equilibria meet; the place of a double root is known to the root of the rounding unit.
"""


def eigenvalues_if_finite(matrix: Float[Tensor, "*batch n n"]) -> Complex[Tensor, "*batch n"]:
    """Eigenvalues; NaN for a matrix with an entry that is not finite, which must not stop the others of its batch."""
    return eigvals(matrix)


def norm_if_finite(matrix: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    """Spectral norm; NaN for a matrix with an entry that is not finite."""
    good = torch.isfinite(matrix).flatten(-2).all(dim=-1)
    norm = torch.linalg.matrix_norm(torch.where(good[..., None, None], matrix, 0.0), ord=2)
    return torch.where(good, norm, math.nan)


NEAR_FOLD = 1e-3
"""Eigenvalues below this fraction of the rate of a flow on the sphere, for which a fold is looked for."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class ClusterStability:
    """Eigenvalues of the two blocks, per element. A cluster of one token has no transversal directions."""

    quotient: Complex[Tensor, "*batch q"]
    transversal: Complex[Tensor, "*batch m e"]
    sizes: Float[Tensor, "*batch m"]
    rate: Float[Tensor, "*batch"]
    doubt: Float[Tensor, "*batch"]
    """By how much the largest real part changes over the distance that decides nothing."""

    @property
    def line(self) -> Float[Tensor, "*batch"]:
        """Real parts up to here, of either sign, are zero as far as can be told."""
        return torch.maximum(MARGINAL * self.rate, self.doubt)

    @property
    def quotient_abscissa(self) -> Float[Tensor, "*batch"]:
        """Largest real part of the motions of whole clusters."""
        return self.quotient.real.amax(dim=-1)

    @property
    def transversal_abscissa(self) -> Float[Tensor, "*batch"]:
        """Largest real part of the motions that split a cluster; -inf if every cluster is one token."""
        real = self.transversal.real.amax(dim=-1)
        return torch.where(self.sizes > 1, real, torch.full_like(real, -torch.inf)).amax(dim=-1)

    @property
    def abscissa(self) -> Float[Tensor, "*batch"]:
        """Largest real part of all tangent eigenvalues."""
        return torch.maximum(self.quotient_abscissa, self.transversal_abscissa)

    @property
    def stable(self) -> Bool[Tensor, "*batch"]:
        """Every tangent eigenvalue has negative real part, beyond doubt."""
        return self.abscissa < -self.line

    @property
    def marginal(self) -> Bool[Tensor, "*batch"]:
        """The largest real part is zero within rounding, or a fold is too near to tell its sign."""
        return self.abscissa.abs() <= self.line

    @property
    def index(self) -> Int[Tensor, "*batch"]:
        """Number of unstable tangent eigenvalues, counted with multiplicity."""
        whole = (self.quotient.real > self.line[..., None]).sum(dim=-1)
        split = (self.transversal.real > self.line[..., None, None]).sum(dim=-1)
        return whole + (split * (self.sizes - 1).clamp_min(0)).sum(dim=-1).round().long()


def transversal_blocks(
    flow: AbstractSphereFlow, clusters: Float[Tensor, "*batch m d"], sizes: Float[Tensor, "*axes m"]
) -> Float[Tensor, "*batch m e e"]:
    """Derivative of the velocity of one half of each cluster when its halves part, in tangent coordinates."""
    halves = flow.with_sizes(torch.cat([sizes, sizes], dim=-1) / 2)
    basis = flow.basis(clusters)
    directions = basis.movedim(-1, 0)
    both = torch.cat([clusters, clusters], dim=-2)
    parted = halves.jvp(both, torch.cat([directions, -directions], dim=-2))
    first = parted[..., : clusters.shape[-2], :].movedim(0, -1)
    return basis.mT @ first


def cluster_stability(
    flow: AbstractSphereFlow, clusters: Float[Tensor, "*batch m d"], sizes: Float[Tensor, "*axes m"]
) -> ClusterStability:
    """Tangent eigenvalues of the full state, at a cost that does not depend on the number of tokens.

    Args:
        flow: the flow of the tokens, with weights that broadcast against the batch.
        clusters: unit vectors (..., m, d), float64.
        sizes: how many tokens stand at each (real numbers are allowed).

    Cost: O(m^3 d^3) per element.
    """
    flow = require_sphere(flow, "cluster_stability")
    reduced = flow.with_sizes(sizes)
    jacobian = reduced.jacobian(clusters)
    quotient = eigenvalues_if_finite(jacobian)
    transversal = eigenvalues_if_finite(transversal_blocks(flow, clusters, sizes))
    counts, rate = sizes.expand(transversal.shape[:-1]), flow.rate.expand(quotient.shape[:-1])
    return ClusterStability(quotient, transversal, counts, rate, _doubt(reduced, clusters, jacobian, quotient, rate))


def token_stability(flow: AbstractFlow, x: Float[Tensor, "*batch n d"]) -> ClusterStability:
    """The same record from the dense Jacobian of all tokens, for flows that cannot be reduced."""
    jacobian = flow.jacobian(x)
    quotient = eigenvalues_if_finite(jacobian)
    none = quotient.new_full((*quotient.shape[:-1], x.shape[-2], 1), -torch.inf)
    ones = torch.ones(*quotient.shape[:-1], x.shape[-2], dtype=x.dtype, device=x.device)
    rate = flow.rate if isinstance(flow, AbstractSphereFlow) else norm_if_finite(jacobian)
    rate = rate.expand(quotient.shape[:-1])
    return ClusterStability(quotient, none, ones, rate, _doubt(flow, x, jacobian, quotient, rate))


def _doubt(flow: AbstractFlow, x: Tensor, jacobian: Tensor, values: Tensor, rate: Tensor) -> Float[Tensor, "*batch"]:
    """Change of the largest real part over the distance within which a fold decides nothing.

    Along the eigenvector of that eigenvalue, which is the direction in which two equilibria meet. On the sphere, where
    the rate of the flow is known, only slow eigenvalues are looked at.

    Cost: two Jacobians and their eigenvalues where it is looked.
    """
    doubt = torch.zeros_like(rate)
    first = values.real.nan_to_num(nan=-torch.inf).argmax(dim=-1, keepdim=True)
    abscissa = values.real.gather(-1, first).squeeze(-1)
    slow = torch.isfinite(abscissa)
    if isinstance(flow, AbstractSphereFlow):
        slow = slow & (abscissa.abs() < NEAR_FOLD * rate)
    if not bool(slow.any()):
        return doubt
    safe = torch.where(slow[..., None, None], jacobian, torch.eye(jacobian.shape[-1], dtype=x.dtype, device=x.device))
    found, vectors = eig(safe)
    leading = found.real.argmax(dim=-1)[..., None, None].expand(*vectors.shape[:-1], 1)
    basis = flow.basis(x)
    along = vectors.gather(-1, leading).real.reshape(*basis.shape[:-2], basis.shape[-1], 1)
    turn = (basis @ along).squeeze(-1)
    size = torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True) / x.shape[-2] ** 0.5
    turn = PROBE * size * turn / torch.linalg.vector_norm(turn, dim=(-2, -1), keepdim=True).clamp_min(1e-300)
    sides = [eigenvalues_if_finite(flow.jacobian(flow.project(x + turn * sign))).real.amax(dim=-1) for sign in (1, -1)]
    change = FOLD / (2 * PROBE) * (sides[0] - sides[1]).abs()
    return torch.where(slow & torch.isfinite(change), change, doubt)
