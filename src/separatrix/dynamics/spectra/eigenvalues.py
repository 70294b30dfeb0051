"""The outermost eigenvalues of the Jacobian of a map at a point, from Jacobian-vector products alone.

A Rayleigh quotient is meaningless when the dominant eigenvalues are a complex pair, as they are for most non-symmetric
matrices. Two estimates that are not misled: the growth rate of |J^k v| (exact for a normal Jacobian whose eigenvalues
share one modulus, where Krylov methods stay inside the circle), and the Ritz values of a Krylov space started from the
grown vector (accurate where one pair dominates, where the growth rate converges slowly from below).
"""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core.arithmetic.eigenvalues import eigvals
from separatrix.core.arithmetic.transforms import all_true
from separatrix.core.arrays import require_integer

from ..solve.maps.counted import FixedPointMap
from ..solve.maps.stacks import orthogonalised
from .jacobian import JacobianAt
from .lengths import length, out_of_range, unit


def spectral_radius(
    fixed_point_map: FixedPointMap,
    z: Float[Tensor, "*state"],
    *,
    batch_dims: int = 1,
    generator: torch.Generator | None = None,
    power: int = 100,
    krylov: int = 40,
) -> Float[Tensor, " *batch"]:
    """Largest modulus of the eigenvalues of the Jacobian of a map at z, for each sample.

    The larger of the growth rate over the last half of ``power`` products and the largest Ritz value of a Krylov space
    of dimension ``krylov`` started from there. When ``krylov`` reaches d the Jacobian is formed, and its eigenvalues
    are exact to its rounding. In more dimensions a Jacobian far from normal (a long delay line) shows the growth that
    it has over ``power`` products, which may be far above its eigenvalues.

    Args:
        fixed_point_map: the map; samples must not depend on each other.
        z: states; the first ``batch_dims`` axes count samples.
        batch_dims: how many axes are a batch. A layer with attention on (batch, tokens, features) has one; coupling
            between supposed samples is looked for and named.
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
    jacobian = JacobianAt(fixed_point_map, z, batch_dims=batch_dims)
    with torch.no_grad():
        if krylov >= jacobian.dim:
            return jacobian.per_sample(_eigenvalues(jacobian.matrix()).abs().amax(dim=-1))
        rate, grown = _growth_rate(jacobian, jacobian.random_directions(generator), power)
        ritz = ritz_values(jacobian, grown, krylov).abs().amax(dim=-1)
    return jacobian.per_sample(torch.maximum(rate, ritz))


def spectral_abscissa(
    fixed_point_map: FixedPointMap,
    z: Float[Tensor, "*state"],
    *,
    batch_dims: int = 1,
    generator: torch.Generator | None = None,
    krylov: int = 60,
) -> Float[Tensor, " *batch"]:
    """Largest real part of the eigenvalues of the Jacobian of a map at z, for each sample.

    Below one, the flow dz/dt = f(z) - z is stable at the equilibrium, and a small enough damping makes the iteration
    converge; the modulus (``spectral_radius``) decides about the undamped iteration. When ``krylov`` reaches d the
    Jacobian is formed, and its eigenvalues are exact to its rounding; with a smaller Krylov space it is the right-most
    Ritz value, an estimate from inside the spectrum's hull for a normal Jacobian.

    Args:
        fixed_point_map: the map; samples must not depend on each other.
        z: states; the first ``batch_dims`` axes count samples.
        batch_dims: how many axes are a batch. A layer with attention on (batch, tokens, features) has one; coupling
            between supposed samples is looked for and named.
        generator: for the random start; a fixed one by default.
        krylov: dimension of the Krylov space; memory grows as (batch, krylov, d).

    Returns:
        One number per sample; NaN where the Jacobian is not finite.
    """
    require_integer(krylov, "krylov", at_least=1)
    jacobian = JacobianAt(fixed_point_map, z, batch_dims=batch_dims)
    with torch.no_grad():
        if krylov >= jacobian.dim:
            values = _eigenvalues(jacobian.matrix())
        else:
            values = ritz_values(jacobian, jacobian.random_directions(generator), krylov)
    return jacobian.per_sample(values.real.amax(dim=-1))


def ritz_values(jacobian: JacobianAt, start: Float[Tensor, "samples d"], n_krylov: int) -> Complex[Tensor, "samples k"]:
    """Eigenvalues of the Jacobian restricted to the Krylov space of ``start`` (Arnoldi's method).

    They are eigenvalues of J when the space is invariant, in particular when ``n_krylov`` reaches d: then all of them,
    as often as they occur. A row whose space closes earlier (repeated eigenvalues) goes on in a direction outside it.
    Memory grows as (samples, n_krylov, d).
    """
    samples, dim = start.shape
    tiny = torch.finfo(start.dtype).tiny
    image = jacobian.times(unit(start))  # inside torch.func.vmap it has the mapped axis, the start may not
    scale = out_of_range(length(image)).unsqueeze(-1)
    image = image / scale
    basis = image.new_zeros(samples, n_krylov, dim)
    hessenberg = image.new_zeros(samples, n_krylov, n_krylov)
    basis[:, 0] = unit(start)
    for k in range(n_krylov):
        image = jacobian.times(basis[:, k]) / scale if k else image
        vector, hessenberg[:, : k + 1, k] = orthogonalised(basis[:, : k + 1], image)
        if k + 1 < n_krylov:
            size = torch.linalg.vector_norm(vector, dim=-1)
            rounding = 1e2 * torch.finfo(start.dtype).eps * torch.linalg.vector_norm(image, dim=-1)
            alive = size > rounding  # else the space is invariant, and a direction outside it is as good as any
            hessenberg[:, k + 1, k] = torch.where(alive, size, torch.zeros_like(size))
            following = vector / size.clamp_min(tiny).unsqueeze(-1)
            if not all_true(alive):
                following = torch.where(alive.unsqueeze(-1), following, _outside(basis[:, : k + 1]))
            basis[:, k + 1] = following
    return scale * _eigenvalues(hessenberg)


def _outside(stack: Float[Tensor, "samples k d"]) -> Float[Tensor, "samples d"]:
    """A unit vector at right angles to every vector of an orthonormal stack; zero if that spans everything."""
    samples, members, dim = stack.shape
    if members >= dim:
        return stack.new_zeros(samples, dim)
    place = torch.arange(dim, dtype=stack.dtype, device=stack.device)
    pattern = torch.cos(1.0 + (12.9898 + members) * place)  # any vector will do; this one lies in no space of interest
    direction = orthogonalised(stack, unit(pattern.expand(samples, dim)))[0]
    return unit(orthogonalised(stack, unit(direction))[0])


def _eigenvalues(hessenberg: Tensor) -> Tensor:
    """Eigenvalues of each matrix; NaN for a sample whose Jacobian is not finite, which LAPACK would refuse."""
    finite = torch.isfinite(hessenberg).all(-1).all(-1)
    known = torch.where(finite[:, None, None], hessenberg, 0.0)
    scale = out_of_range(known.abs().amax(dim=(-2, -1)))[:, None]
    return torch.where(finite[:, None], scale * eigvals(known / scale.unsqueeze(-1)), torch.nan)


def _growth_rate(jacobian: JacobianAt, vector: Tensor, power: int) -> tuple[Tensor, Tensor]:
    """Geometric mean of the growth of |J^k v| over the last half of the products, and the last direction."""
    logs = []
    for _ in range(power):
        vector = jacobian.times(vector)
        logs.append(length(vector).log())
        vector = unit(vector)
    return torch.stack(logs[power // 2 :]).mean(0).exp(), vector
