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

from .solve.maps import FixedPointMap


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
    """
    require_integer(power, "power", at_least=2)
    require_integer(krylov, "krylov", at_least=1)
    shape = z.shape
    flat = z.detach().reshape(-1, shape[-1])
    generator = generator if generator is not None else torch.Generator().manual_seed(0)

    def product(direction: Tensor) -> Tensor:
        image: Tensor = torch.func.jvp(fixed_point_map, (flat.view(shape),), (direction.view(shape),))[1]
        return image.reshape(flat.shape)

    start = torch.randn(flat.shape, generator=generator, dtype=flat.dtype).to(flat.device)
    n_krylov = min(krylov, shape[-1])
    with torch.no_grad():
        if n_krylov == shape[-1]:
            return _largest_ritz(product, start, n_krylov).reshape(shape[:-1])
        rate, grown = _growth_rate(product, start, power)
        ritz = _largest_ritz(product, grown, n_krylov)
    return torch.maximum(rate, ritz).reshape(shape[:-1])


def _growth_rate(product: FixedPointMap, vector: Tensor, power: int) -> tuple[Tensor, Tensor]:
    """Geometric mean of the growth of |J^k v| over the last half of the products, and the last direction."""
    tiny = torch.finfo(vector.dtype).tiny
    logs = []
    vector = vector / vector.norm(dim=-1, keepdim=True)
    for _ in range(power):
        vector = product(vector)
        size = vector.norm(dim=-1, keepdim=True)
        vector = vector / size.clamp_min(tiny)
        logs.append(size.squeeze(-1).clamp_min(tiny).log())
    return torch.stack(logs[power // 2 :]).mean(0).exp(), vector


def _largest_ritz(product: FixedPointMap, start: Tensor, n_krylov: int) -> Tensor:
    """Largest modulus of the Ritz values of the Krylov space of each sample."""
    batch, dim = start.shape
    tiny = torch.finfo(start.dtype).tiny
    basis = start.new_zeros(batch, n_krylov, dim)
    hessenberg = start.new_zeros(batch, n_krylov, n_krylov)
    basis[:, 0] = start / start.norm(dim=-1, keepdim=True).clamp_min(tiny)
    for k in range(n_krylov):
        vector = product(basis[:, k])
        scale = vector.norm(dim=-1)
        for _ in range(2):  # the second pass repairs orthogonality lost to rounding
            overlap = (basis[:, : k + 1] * vector.unsqueeze(1)).sum(-1)
            vector = vector - (overlap.unsqueeze(-1) * basis[:, : k + 1]).sum(1)
            hessenberg[:, : k + 1, k] += overlap
        if k + 1 < n_krylov:
            length = vector.norm(dim=-1)
            alive = length > 1e2 * torch.finfo(start.dtype).eps * scale  # else the space is invariant: stop there
            hessenberg[:, k + 1, k] = torch.where(alive, length, torch.zeros_like(length))
            basis[:, k + 1] = torch.where(alive.unsqueeze(-1), vector / length.clamp_min(tiny).unsqueeze(-1), 0.0)
    return torch.linalg.eigvals(hessenberg).abs().amax(dim=-1)
