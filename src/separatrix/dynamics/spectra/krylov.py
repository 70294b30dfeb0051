"""Krylov spaces of the Jacobian of a map, one per sample, from Jacobian-vector products alone."""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from separatrix.core.names import suggest_options

from ..solve.maps import FixedPointMap
from ..solve.stacks import combination, inner_products


@suggest_options
class JacobianAt:
    """The Jacobian of a map at a batch of points, as products with vectors (batch, d)."""

    def __init__(self, fixed_point_map: FixedPointMap, z: Float[Tensor, "*batch d"]) -> None:
        self.fixed_point_map = fixed_point_map
        self.point = z.detach()
        self.batch_shape = z.shape[:-1]
        self.n_samples = self.batch_shape.numel()
        self.dim = z.shape[-1]

    def times(self, direction: Float[Tensor, "samples d"]) -> Float[Tensor, "samples d"]:
        """J times a vector, by forward differentiation."""
        tangent = direction.view(self.point.shape)
        image: Tensor = torch.func.jvp(self.fixed_point_map, (self.point,), (tangent,))[1]
        return image.reshape(direction.shape)

    def transposed_times(self, vector: Float[Tensor, "samples d"]) -> Float[Tensor, "samples d"]:
        """J^T times a vector, by reverse differentiation."""
        pull_back = torch.func.vjp(self.fixed_point_map, self.point)[1]
        product: Tensor = pull_back(vector.view(self.point.shape))[0]
        return product.reshape(vector.shape)

    def random_directions(self, generator: torch.Generator | None) -> Float[Tensor, "samples d"]:
        """A unit vector per sample, from a fixed stream unless a generator is given."""
        stream = generator if generator is not None else torch.Generator().manual_seed(0)
        start = torch.randn(self.n_samples, self.dim, generator=stream, dtype=self.point.dtype, device=stream.device)
        return unit(start.to(self.point.device))


def unit(vector: Float[Tensor, "samples d"]) -> Float[Tensor, "samples d"]:
    """The vector over its length; zero stays zero."""
    length = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    return vector / length.clamp_min(torch.finfo(vector.dtype).tiny)


def ritz_values(jacobian: JacobianAt, start: Float[Tensor, "samples d"], n_krylov: int) -> Complex[Tensor, "samples k"]:
    """Eigenvalues of the Jacobian restricted to the Krylov space of ``start`` (Arnoldi's method).

    They are eigenvalues of J when the space is invariant, in particular when ``n_krylov`` reaches d. Rows whose space
    closes earlier are filled with zeros. Memory grows as (samples, n_krylov, d).
    """
    samples, dim = start.shape
    tiny = torch.finfo(start.dtype).tiny
    basis = start.new_zeros(samples, n_krylov, dim)
    hessenberg = start.new_zeros(samples, n_krylov, n_krylov)
    basis[:, 0] = unit(start)
    for k in range(n_krylov):
        vector = jacobian.times(basis[:, k])
        scale = torch.linalg.vector_norm(vector, dim=-1)
        for _ in range(2):  # the second pass repairs orthogonality lost to rounding
            overlap = inner_products(basis[:, : k + 1], vector)
            vector = vector - combination(overlap, basis[:, : k + 1])
            hessenberg[:, : k + 1, k] += overlap
        if k + 1 < n_krylov:
            length = torch.linalg.vector_norm(vector, dim=-1)
            alive = length > 1e2 * torch.finfo(start.dtype).eps * scale  # else the space is invariant: stop there
            hessenberg[:, k + 1, k] = torch.where(alive, length, torch.zeros_like(length))
            basis[:, k + 1] = torch.where(alive.unsqueeze(-1), vector / length.clamp_min(tiny).unsqueeze(-1), 0.0)
    return _eigenvalues(hessenberg)


def _eigenvalues(hessenberg: Tensor) -> Tensor:
    """Eigenvalues of each matrix; NaN for a sample whose Jacobian is not finite, which LAPACK would refuse."""
    finite = torch.isfinite(hessenberg).all(-1).all(-1)
    values = torch.linalg.eigvals(torch.where(finite[:, None, None], hessenberg, 0.0))
    return torch.where(finite[:, None], values, torch.nan)
