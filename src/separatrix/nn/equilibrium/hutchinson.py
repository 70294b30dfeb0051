"""A penalty on the Jacobian of a cell that keeps it contracting while it learns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.names import choose

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
    with torch.enable_grad():
        packed = layout.pack(z).detach().requires_grad_()
        image = layout.pack(cell(layout.unpack(packed), x))
        total = packed.new_zeros(())
        for _ in range(n_vectors):
            vector = torch.randn(packed.shape, generator=generator, dtype=packed.dtype, device=generator.device)
            vector = (vector if kind == "gaussian" else vector.sign()).to(packed.device)
            (product,) = torch.autograd.grad(image, packed, vector, create_graph=True)
            total = total + product.square().mean()
    return total / n_vectors
