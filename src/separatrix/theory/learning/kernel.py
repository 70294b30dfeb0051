"""Representations and neural tangent kernels of two-layer linear networks.

``first = w1' w1`` is the input representation, ``second = w2 w2'`` the output representation. Inputs ``x`` are rows
(samples, n_in). A kernel over several outputs runs over outputs first, then samples.
"""

from __future__ import annotations

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import OutsideTheory, formula, require_integer

Inputs: TypeAlias = Float[Tensor, "*batch i i"]
"""Input representations of a batch of networks."""

Outputs: TypeAlias = Float[Tensor, "*batch o o"]
"""Output representations of a batch of networks."""


@formula("anguita2024", "Eq. (4.17)", erratum="anguita2024-4.17")
def two_layer_ntk(first: Inputs, second: Outputs, x: Float[Tensor, "p i"]) -> Float[Tensor, "*batch op op"]:
    r"""Neural tangent kernel :math:`K = I \otimes X^\top W_1^\top W_1 X + W_2 W_2^\top \otimes X^\top X`.

    Memory: (n_out * samples)^2 numbers per element; ``ntk_inner`` needs none of it.
    """
    n_out, n_samples = second.shape[-1], x.shape[0]
    identity = torch.eye(n_out, dtype=x.dtype, device=x.device)
    inner = x @ first @ x.mT
    kernel = torch.einsum("ab,...pq->...apbq", identity, inner) + torch.einsum("...ab,pq->...apbq", second, x @ x.mT)
    return kernel.reshape(*second.shape[:-2], n_out * n_samples, n_out * n_samples)


@formula("separatrix", "inner product of two kernels without forming them")
def ntk_inner(
    first: Inputs, second: Outputs, other_first: Inputs, other_second: Outputs, corr_xx: Float[Tensor, "i i"]
) -> Float[Tensor, "*batch"]:
    r"""Frobenius product of two kernels over the same inputs, divided by the square of the number of samples.

    .. math:: \langle K, K'\rangle = n_o \langle A, A'\rangle + \mathrm{tr} B'\,\langle A, G\rangle +
        \mathrm{tr} B\,\langle G, A'\rangle + \langle B, B'\rangle \langle G, G\rangle

    Cost: products of (n_in, n_in) matrices, whatever the number of samples.
    """
    a, b = first @ corr_xx, other_first @ corr_xx
    trace, other_trace = _trace(second), _trace(other_second)
    return (
        second.shape[-1] * _dot(a, b)
        + other_trace * _trace(a @ corr_xx)
        + trace * _trace(b @ corr_xx)
        + (second * other_second).sum((-2, -1)) * _trace(corr_xx @ corr_xx)
    )


@formula("separatrix", "distance of two kernels without forming them")
def ntk_distance(
    first: Inputs, second: Outputs, other_first: Inputs, other_second: Outputs, corr_xx: Float[Tensor, "i i"]
) -> Float[Tensor, "*batch"]:
    """One minus the cosine of two tangent kernels: 0 if learning kept the kernel (lazy), towards 1 if it turned it."""
    cross = ntk_inner(first, second, other_first, other_second, corr_xx)
    own = ntk_inner(first, second, first, second, corr_xx)
    other = ntk_inner(other_first, other_second, other_first, other_second, corr_xx)
    return 1 - cross / (own * other).sqrt()


@formula("separatrix", "relative change of the kernel without forming it")
def kernel_change(
    first: Inputs, second: Outputs, other_first: Inputs, other_second: Outputs, corr_xx: Float[Tensor, "i i"]
) -> Float[Tensor, "*batch"]:
    """Norm of the difference of two tangent kernels relative to the first one."""
    gap = (other_first - first, other_second - second)
    moved = ntk_inner(*gap, *gap, corr_xx)
    return (moved / ntk_inner(first, second, first, second, corr_xx)).clamp_min(0.0).sqrt()


@formula("anguita2024", "Sec. 2.3.2")
def representational_similarity(
    first: Inputs, second: Outputs, x: Float[Tensor, "p i"], y: Float[Tensor, "p o"]
) -> tuple[Float[Tensor, "*batch p p"], Float[Tensor, "*batch p p"]]:
    r"""Similarity of samples in the hidden layer, seen from the inputs and from the targets.

    .. math:: X^\top W_1^\top W_1 X, \qquad Y^\top (W_2 W_2^\top)^+ Y
    """
    return x @ first @ x.mT, y @ torch.linalg.pinv(second, hermitian=True) @ y.mT


@formula("anguita2024", "Theorems 4.1.1 and 4.1.2", erratum="anguita2024-4.1-extra-block")
def representation_spectra(
    product_s: Float[Tensor, "*batch r"], balance: Float[Tensor, "*batch"], n_in: int, n_hidden: int, n_out: int
) -> tuple[Float[Tensor, "*batch i"], Float[Tensor, "*batch o"]]:
    r"""Eigenvalues of ``w1' w1`` and ``w2 w2'`` from the singular values of the product, largest first.

    .. math:: \tfrac12(\sqrt{\lambda^2+4s^2} \mp \lambda)

    then ``|balance|`` on the side with the larger layer for each hidden unit beyond the product's rank, then zeros.
    """
    for name, size in (("n_in", n_in), ("n_hidden", n_hidden), ("n_out", n_out)):
        require_integer(size, name, at_least=1)
    s = product_s[..., :n_hidden]
    lam = balance[..., None]
    large = (torch.hypot(lam, 2 * s) + lam.abs()) / 2
    small = torch.where(large > 0, s**2 / large.clamp_min(1e-300), 0.0)
    extra = lam.abs().expand(*s.shape[:-1], max(0, n_hidden - s.shape[-1]))
    heavy = torch.cat([large, extra], dim=-1)
    light = torch.nn.functional.pad(small, (0, extra.shape[-1]))
    first, second = torch.where(lam >= 0, light, heavy), torch.where(lam >= 0, heavy, light)
    return _fit(first, n_in), _fit(second, n_out)


@formula("anguita2024", "Sec. 4.1, Eqs. (4.10)-(4.13)", erratum="anguita2024-4.13")
def square_representations(
    product: Float[Tensor, "*batch o i"], balance: Float[Tensor, "*batch"]
) -> tuple[Inputs, Outputs]:
    r"""Both representations of a square balanced network from its product alone.

    .. math:: W_1^\top W_1 = \tfrac12(\sqrt{\lambda^2 + 4 W^\top W} - \lambda), \quad
        W_2 W_2^\top = \tfrac12(\sqrt{\lambda^2 + 4 W W^\top} + \lambda)
    """
    if product.shape[-1] != product.shape[-2]:
        raise OutsideTheory(f"product must be square; got shape {tuple(product.shape)}.")
    n = product.shape[-1]
    u, s, vh = torch.linalg.svd(product)
    first, second = representation_spectra(s, balance, n, n, n)
    return (vh.mT * first[..., None, :]) @ vh, (u * second[..., None, :]) @ u.mT


@formula("anguita2024", "Eqs. (4.18)-(4.19)", erratum="anguita2024-4.18")
def lazy_ntk_change(
    start: Float[Tensor, "*batch n n"],
    product: Float[Tensor, "*batch n n"],
    balance: Float[Tensor, "*batch"],
    x: Float[Tensor, "p n"],
) -> Float[Tensor, "*batch op op"]:
    r"""How the kernel of a square network moves when ``|balance|`` is large: of order ``1 / |balance|``.

    .. math:: K(t) - K(0) \to \frac{1}{|\lambda|}\bigl[I \otimes X^\top (W^\top W(t) - W^\top W(0)) X +
        (W W^\top(t) - W W^\top(0)) \otimes X^\top X\bigr]
    """
    scale = balance.abs()[..., None, None]
    first = (product.mT @ product - start.mT @ start) / scale
    second = (product @ product.mT - start @ start.mT) / scale
    return two_layer_ntk(first, second, x)


@formula("anguita2024", "Sec. 4.3, Eqs. (4.33)-(4.34)", erratum="anguita2024-4.34")
def task_specific_score(
    first: Inputs, second: Outputs, corr_yx: Float[Tensor, "*batch o i"]
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """How much the representations mirror the task: the larger cosine with ``V S V'`` or ``V S^2 V'`` (outputs: U).

    1 for a rich network of balance zero; the score of the identity is the floor of a lazy one.
    """
    u, s, vh = torch.linalg.svd(corr_yx, full_matrices=False)
    return _score(first, vh.mT, s), _score(second, u, s)


def _score(representation: Tensor, basis: Tensor, s: Tensor) -> Tensor:
    linear, square = ((basis * power[..., None, :]) @ basis.mT for power in (s, s**2))
    return torch.maximum(_cosine(representation, linear), _cosine(representation, square))


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    norms = torch.linalg.matrix_norm(a) * torch.linalg.matrix_norm(b)
    return (a * b).sum((-2, -1)) / norms.clamp_min(1e-300)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """``tr(a b)``: the Frobenius product of ``X A X'`` and ``X B X'`` once a, b carry ``corr_xx`` on the right."""
    return (a * b.mT).sum((-2, -1))


def _trace(a: Tensor) -> Tensor:
    return a.diagonal(dim1=-2, dim2=-1).sum(-1)


def _fit(values: Tensor, size: int) -> Tensor:
    kept = values[..., :size]
    return torch.nn.functional.pad(kept, (0, size - kept.shape[-1]))
