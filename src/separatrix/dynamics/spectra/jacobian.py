"""The Jacobian of a map at a batch of points, as products with vectors: what all spectra here are made of."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.names import suggest_options

from ..solve.maps import CountedMap, FixedPointMap


@suggest_options
class JacobianAt:
    """The Jacobian of a map at a batch of points z (..., d), as products with vectors (samples, d).

    The rows of the map must not depend on each other: one product serves the whole batch.
    """

    def __init__(self, fixed_point_map: FixedPointMap, z: Float[Tensor, "*batch d"]) -> None:
        self._map = CountedMap(fixed_point_map, z.shape, z.dtype)
        self._point = z.detach().reshape(-1, z.shape[-1])
        self.batch_shape = z.shape[:-1]
        self.dim = z.shape[-1]

    def times(self, direction: Float[Tensor, "samples d"]) -> Float[Tensor, "samples d"]:
        """J times a vector, by forward differentiation."""
        return self._map.derivative(self._point, direction)

    def transposed_times(self, vector: Float[Tensor, "samples d"]) -> Float[Tensor, "samples d"]:
        """J^T times a vector, by reverse differentiation."""
        product: Tensor = torch.func.vjp(self._map, self._point)[1](vector)[0]
        return product

    def random_directions(self, generator: torch.Generator | None) -> Float[Tensor, "samples d"]:
        """A unit vector per sample, from a fixed stream unless a generator is given."""
        stream = generator if generator is not None else torch.Generator().manual_seed(0)
        start = torch.randn(self._point.shape, generator=stream, dtype=self._point.dtype, device=stream.device)
        return unit(start.to(self._point.device))

    def per_sample(self, values: Float[Tensor, " samples"]) -> Float[Tensor, " *batch"]:
        """One number per sample in the batch shape of the points."""
        return values.reshape(self.batch_shape)


def unit(vector: Float[Tensor, "samples d"]) -> Float[Tensor, "samples d"]:
    """The vector over its length; zero stays zero."""
    length = torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    return vector / length.clamp_min(torch.finfo(vector.dtype).tiny)
