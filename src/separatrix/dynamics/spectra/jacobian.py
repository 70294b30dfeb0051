"""The Jacobian of a map at a batch of points, as products with vectors: what all spectra here are made of."""

from __future__ import annotations

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true, exposed, transforms_active
from separatrix.core.arrays import require_dense, require_integer
from separatrix.core.described import Described
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options

from ..solve.maps.counted import CountedMap, FixedPointMap
from .answers import require_a_jacobian
from .lengths import unit

_COUPLED = 1e3
"""Product of one row with the rest, in units of rounding, from which on they depend on each other."""


@suggest_options
class JacobianAt(Described):
    """The Jacobian of a map at a batch of points, as products with vectors (samples, d).

    Args:
        fixed_point_map: the map, on states of the shape of z.
        z: states; the first ``batch_dims`` axes count samples, all others together are one state.
        batch_dims: how many axes are a batch. Samples must not depend on each other, since one product serves them all;
            that is looked at.

    Raises:
        InvalidInput: a sample depends on another one, the map gives two answers to one question or has another
            derivative than its values, or nothing is left for the state.
    """

    def __init__(self, fixed_point_map: FixedPointMap, z: Float[Tensor, "*state"], *, batch_dims: int = 1) -> None:
        require_integer(batch_dims, "batch_dims", at_least=0)
        require_dense(z, "z")
        if z.ndim <= batch_dims:
            raise InvalidInput(
                f"z must have an axis beyond the {batch_dims} of the batch; got shape {tuple(z.shape)}. "
                "batch_dims=0 makes all of z one state."
            )
        self._map = CountedMap(fixed_point_map, z.shape, z.dtype)
        self.batch_shape = z.shape[:batch_dims]
        self.dim = z.shape[batch_dims:].numel()
        if self.dim == 0:
            raise InvalidInput(f"z must not be empty; got shape {tuple(z.shape)}.")
        self._point = z.detach().reshape(self.batch_shape.numel(), self.dim)
        self._point = self._point.to(torch.promote_types(z.dtype, torch.float32))
        with torch.no_grad():
            require_a_jacobian(self._map, self._point, self.random_directions(None))
            self._require_separate_rows()

    def times(self, direction: Float[Tensor, "samples d"]) -> Float[Tensor, "samples d"]:
        """J times a vector, by forward differentiation; by double backward where that is not there."""
        return self._map.derivative(self._point, direction)

    def transposed_times(self, vector: Float[Tensor, "samples d"]) -> Float[Tensor, "samples d"]:
        """J^T times a vector, by reverse differentiation."""
        return self._map.transposed_derivative(self._point, vector)

    def matrix(self) -> Float[Tensor, "samples d d"]:
        """J itself, column by column: d products, memory (samples, d, d)."""
        units = torch.eye(self.dim, dtype=self._point.dtype, device=self._point.device)
        return torch.stack([self.times(column.expand_as(self._point)) for column in units], dim=-1)

    def _require_separate_rows(self) -> None:
        """Move one part of the samples, then the other: those that rest must not feel it.

        The parts are the digits of their numbers in base two, so that any two samples are parted by one of them. Two
        products for each digit.
        """
        samples = len(self._point)
        if samples < 2:
            return
        index = torch.arange(samples, device=self._point.device)
        direction = self.random_directions(None)
        digits = [(index >> place) % 2 == 1 for place in range((samples - 1).bit_length())]
        for moving in (part for digit in digits for part in (digit, ~digit)):
            image = self.times(torch.where(moving.unsqueeze(1), direction, 0.0))
            felt = torch.linalg.vector_norm(image, dim=1)
            limit = _COUPLED * self._map.rounding * felt[moving].nan_to_num().amax()
            if any_true(~moving & (felt > limit)):
                row = int(exposed(felt).where(exposed(~moving), torch.zeros(())).reshape(-1).argmax()) % samples
                raise InvalidInput(
                    f"sample {row} depends on other samples of the batch, so that samples have no Jacobian of "
                    f"their own. batch_dims={len(self.batch_shape)} axes of the shape {tuple(self._map.shape)} "
                    "count samples: "
                    "pass a smaller batch_dims (0 makes all of z one state), or a map that keeps them apart."
                )

    def random_directions(self, generator: torch.Generator | None) -> Float[Tensor, "samples d"]:
        """A unit vector per sample, from a fixed stream unless a generator is given.

        Inside ``torch.func.vmap``, where torch draws nothing unless told how, the stream is one of NumPy.
        """
        if generator is None and transforms_active():
            drawn = numpy.random.default_rng(0).standard_normal(tuple(self._point.shape))
            return unit(torch.as_tensor(drawn, dtype=self._point.dtype, device=self._point.device))
        stream = generator if generator is not None else torch.Generator().manual_seed(0)
        start = torch.randn(self._point.shape, generator=stream, dtype=self._point.dtype, device=stream.device)
        return unit(start.to(self._point.device))

    def per_sample(self, values: Float[Tensor, " samples"]) -> Float[Tensor, " *batch"]:
        """One number per sample in the batch shape of the points."""
        return values.reshape(self.batch_shape)
