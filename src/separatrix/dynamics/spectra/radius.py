"""Spectral radius of the Jacobian of a map at a point, from Jacobian-vector products alone.

A Rayleigh quotient is meaningless when the dominant eigenvalues are a complex pair, as they are for most non-symmetric
matrices. Two estimates that are not misled: the growth rate of |J^k v| (exact for a normal Jacobian whose eigenvalues
share one modulus, where Krylov methods stay inside the circle), and the Ritz values of a Krylov space started from the
grown vector (accurate where one pair dominates, where the growth rate converges slowly from below).
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arrays import require_integer

from ..solve.maps import FixedPointMap
from .krylov import JacobianAt, ritz_values


def spectral_radius(
    fixed_point_map: FixedPointMap,
    z: Float[Tensor, "*batch d"],
    *,
    generator: torch.Generator | None = None,
    power: int = 100,
    krylov: int = 40,
) -> Float[Tensor, " *batch"]:
    """Largest modulus of the eigenvalues of the Jacobian of a map at z, for each sample.

    The larger of the growth rate over the last half of ``power`` products and the largest Ritz value of a Krylov space
    of dimension ``krylov`` started from there. Exact to rounding when ``krylov`` reaches d.

    Args:
        fixed_point_map: the map; rows must not depend on each other.
        z: states ``(..., d)``.
        generator: for the random start; a fixed one by default, so that the same call gives the same number.
        power: Jacobian-vector products for the growth rate.
        krylov: dimension of the Krylov space; memory grows as (batch, krylov, d).

    Returns:
        One number per sample; NaN where the Jacobian is not finite.

    Example:
        >>> matrix = torch.tensor([[0.0, -0.5], [0.5, 0.0]])
        >>> round(float(spectral_radius(lambda z: z @ matrix, torch.zeros(1, 2))), 6)
        0.5
    """
    require_integer(power, "power", at_least=2)
    require_integer(krylov, "krylov", at_least=1)
    jacobian = JacobianAt(fixed_point_map, z)
    start = jacobian.random_directions(generator)
    with torch.no_grad():
        if krylov >= jacobian.dim:
            return ritz_values(jacobian, start, jacobian.dim).abs().amax(dim=-1).reshape(jacobian.batch_shape)
        rate, grown = _growth_rate(jacobian, start, power)
        ritz = ritz_values(jacobian, grown, krylov).abs().amax(dim=-1)
    return torch.maximum(rate, ritz).reshape(jacobian.batch_shape)


def _growth_rate(jacobian: JacobianAt, vector: Tensor, power: int) -> tuple[Tensor, Tensor]:
    """Geometric mean of the growth of |J^k v| over the last half of the products, and the last direction."""
    tiny = torch.finfo(vector.dtype).tiny
    logs = []
    for _ in range(power):
        vector = jacobian.times(vector)
        size = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
        vector = vector / size.clamp_min(tiny)
        logs.append(size.squeeze(-1).clamp_min(tiny).log())
    return torch.stack(logs[power // 2 :]).mean(0).exp(), vector
