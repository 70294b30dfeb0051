"""A penalty on the Jacobian of a cell that keeps it contracting while it learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import SeparatrixError
from separatrix.core.names import choose
from separatrix.dynamics.solve.maps.products import require_second_derivatives

from .implicit_function import has_other_leaves, require_no_state
from .state import State, StateLayout


def jacobian_penalty(
    cell: Callable[[Any, Any], Any],
    z: State,
    x: Any,
    *,
    generator: torch.Generator,
    n_vectors: int = 1,
    kind: Literal["gaussian", "rademacher"] = "gaussian",
) -> Float[Tensor, ""]:
    """Hutchinson's estimate of tr(J J^T) / d, averaged over the batch, with gradients to the cell's parameters.

    Add it to the loss with a small weight, at every step or at some. For a Jacobian whose law is invariant under
    rotations from both sides its square root is the spectral radius; otherwise it is only a mean square of singular
    values, so look at ``dynamics.spectral_radius`` beside it.

    Args:
        cell: f(z, x).
        z: the state where the Jacobian is taken, usually the output of a ``DEQ``; it is detached.
        x: the input.
        generator: source of the random vectors.
        n_vectors: vectors per sample; each costs one vector-Jacobian product.
        kind: standard normal vectors, or signs (``"rademacher"``), whose variance is smaller.

    Example:
        >>> penalty = jacobian_penalty(
        ...     lambda z, x: 0.5 * z + x, torch.zeros(4, 3), torch.ones(4, 3),
        ...     generator=torch.Generator().manual_seed(0), kind="rademacher",
        ... )
        >>> round(float(penalty), 6)
        0.25
    """
    require_integer(n_vectors, "n_vectors", at_least=1)
    choose("kind", kind, ("gaussian", "rademacher"))
    layout = StateLayout.of(z)

    def packed_map(state: Tensor) -> Tensor:
        return layout.pack(cell(layout.unpack(state), x))

    with torch.enable_grad():
        packed = layout.pack(z).detach().requires_grad_()
        image = packed_map(packed)
        # vectors with a gradient of their own make torch mark what cannot be differentiated again
        learns = image.requires_grad and has_other_leaves(image, packed)
        total = packed.new_zeros(())
        for _ in range(n_vectors):
            vector = torch.randn(packed.shape, generator=generator, dtype=packed.dtype, device=generator.device)
            vector = (vector if kind == "gaussian" else vector.sign()).to(packed.device).requires_grad_(learns)
            total = total + _product(image, packed, vector, packed_map).square().mean()
    return total / n_vectors


def _product(image: Tensor, z: Tensor, vector: Tensor, packed_map: Callable[[Tensor], Tensor]) -> Tensor:
    """J^T times a vector, with a graph."""
    product = None
    if image.requires_grad:
        (product,) = torch.autograd.grad(image, z, vector, create_graph=True, allow_unused=True)
    if product is None:
        require_no_state(packed_map, z.detach(), 0.0)
        return torch.zeros_like(z)
    try:
        require_second_derivatives(product)
    except NotImplementedError as missing:
        raise SeparatrixError(f"the penalty has no gradient for this cell: {missing}.") from missing
    return product
