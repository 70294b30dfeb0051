"""The right-most real part of the spectrum of a Jacobian."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arrays import require_integer

from ..solve.maps import FixedPointMap
from .krylov import JacobianAt, ritz_values


def spectral_abscissa(
    fixed_point_map: FixedPointMap,
    z: Float[Tensor, "*batch d"],
    *,
    generator: torch.Generator | None = None,
    krylov: int = 60,
) -> Float[Tensor, " *batch"]:
    """Largest real part of the eigenvalues of the Jacobian of a map at z, for each sample.

    Below one, the flow dz/dt = f(z) - z is stable at the equilibrium, and a small enough damping makes the iteration
    converge; the modulus (``spectral_radius``) decides about the undamped iteration. Exact to rounding when ``krylov``
    reaches d; with a smaller Krylov space it is the right-most Ritz value, an estimate from inside the spectrum's hull
    for a normal Jacobian.

    Args:
        fixed_point_map: the map; rows must not depend on each other.
        z: states ``(..., d)``.
        generator: for the random start; a fixed one by default.
        krylov: dimension of the Krylov space; memory grows as (batch, krylov, d).

    Returns:
        One number per sample; NaN where the Jacobian is not finite.
    """
    require_integer(krylov, "krylov", at_least=1)
    jacobian = JacobianAt(fixed_point_map, z)
    n_krylov = min(krylov, jacobian.dim)
    with torch.no_grad():
        values = ritz_values(jacobian, jacobian.random_directions(generator), n_krylov)
    return values.real.amax(dim=-1).reshape(jacobian.batch_shape)
