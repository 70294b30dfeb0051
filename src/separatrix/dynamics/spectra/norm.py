"""The largest singular value of a Jacobian, and how far it exceeds the spectral radius."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arrays import require_integer

from ..solve.maps.counted import FixedPointMap
from .answers import require_transposed
from .eigenvalues import spectral_radius
from .jacobian import JacobianAt
from .lengths import length, unit


def spectral_norm(
    fixed_point_map: FixedPointMap,
    z: Float[Tensor, "*state"],
    *,
    batch_dims: int = 1,
    generator: torch.Generator | None = None,
    power: int = 60,
) -> Float[Tensor, " *batch"]:
    """Largest singular value of the Jacobian of a map at z, for each sample: by how much one step can stretch.

    Power iteration with J^T J: ``power`` products with J and as many with J^T; an estimate from below.

    Args:
        fixed_point_map: the map; samples must not depend on each other.
        z: states; the first ``batch_dims`` axes count samples.
        batch_dims: how many axes are a batch. A layer with attention on (batch, tokens, features) has one; coupling
            between supposed samples is looked for and named.
        generator: for the random start; a fixed one by default.
        power: number of iterations.
    """
    require_integer(power, "power", at_least=1)
    jacobian = JacobianAt(fixed_point_map, z, batch_dims=batch_dims)
    vector = jacobian.random_directions(generator)
    with torch.no_grad():
        for step in range(power):
            image = jacobian.times(vector)
            pulled = jacobian.transposed_times(unit(image))
            if step == 0:
                require_transposed(length(image), (vector * pulled).sum(dim=-1))
            vector = unit(pulled)
    return jacobian.per_sample(length(jacobian.times(vector)))


def non_normality(
    fixed_point_map: FixedPointMap,
    z: Float[Tensor, "*state"],
    *,
    batch_dims: int = 1,
    generator: torch.Generator | None = None,
) -> Float[Tensor, " *batch"]:
    """Spectral norm over spectral radius of the Jacobian at z: one for a normal Jacobian, infinite for a nilpotent one.

    NaN where the Jacobian is zero.

    Where it is large, perturbations grow before they decay, and residuals may rise for many steps of an iteration that
    converges in the end.
    """
    norm = spectral_norm(fixed_point_map, z, batch_dims=batch_dims, generator=generator)
    return norm / spectral_radius(fixed_point_map, z, batch_dims=batch_dims, generator=generator)
