"""Representations and neural tangent kernels of two-layer linear networks.

Inputs ``x`` are rows (samples, n_in). A kernel over several outputs is ordered outputs first, then samples.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import formula


@formula("anguita2024", "Eq. (4.17)", erratum="anguita2024-4.17")
def two_layer_ntk(
    first: Float[Tensor, "*batch i i"], second: Float[Tensor, "*batch o o"], x: Float[Tensor, "p i"]
) -> Float[Tensor, "*batch op op"]:
    r"""Neural tangent kernel from the representations ``first = w1' w1`` and ``second = w2 w2'``.

    .. math:: K = I \otimes X^\top W_1^\top W_1 X + W_2 W_2^\top \otimes X^\top X

    Memory: (n_out * samples)^2 numbers per element.
    """
    n_out, n_samples = second.shape[-1], x.shape[0]
    identity = torch.eye(n_out, dtype=x.dtype, device=x.device)
    inner = x @ first @ x.mT
    kernel = torch.einsum("ab,...pq->...apbq", identity, inner) + torch.einsum("...ab,pq->...apbq", second, x @ x.mT)
    return kernel.reshape(*second.shape[:-2], n_out * n_samples, n_out * n_samples)
