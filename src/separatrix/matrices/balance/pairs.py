"""Balanced pairs: initial weights of a two-layer network with a prescribed balance.

``w2' w2 - w1 w1' = balance * I`` has solutions exactly if ``n_hidden <= n_out`` or ``balance <= 0``, and
``n_hidden <= n_in`` or ``balance >= 0``; there is no other constraint, bottlenecks included. With ``row_space=True``
the hidden directions that cannot be balanced carry no weight at all: the dynamics are those of a balanced network.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from separatrix.core import (
    InvalidInput,
    ShapeError,
    as_float64,
    formula,
    require_integer,
    require_matrix,
    require_positive,
)
from separatrix.core.random import default_generator


def balanced_pair(
    balance: float | Tensor,
    n_in: int,
    n_hidden: int,
    n_out: int,
    *,
    scale: float = 1.0,
    product: Tensor | None = None,
    row_space: bool = False,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw weights ``(w1, w2)`` with ``w2' w2 - w1 w1' = balance * I``, in float64.

    The product ``w2 w1`` is the given one, or that of two Gaussian matrices with entries of standard deviation
    ``scale``; hidden directions beyond its rank get random orthogonal input or output directions; the hidden basis is
    a uniformly random rotation.

    Args:
        balance: coefficient, a number or a tensor (*batch) for one pair per entry.
        n_in: inputs.
        n_hidden: hidden units.
        n_out: outputs.
        scale: standard deviation of the Gaussian entries whose product is taken.
        product: (*batch, n_out, n_in), a product to keep exactly.
        row_space: allow sizes at which only ``n_out`` (``n_in`` for negative balance) hidden directions can carry
            weight.
        generator: source of randomness.

    Returns:
        w1 of shape (*batch, n_hidden, n_in) and w2 of shape (*batch, n_out, n_hidden).

    Raises:
        InvalidInput: sizes at which no such pair exists, or a product of rank above ``n_hidden``.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> w1, w2 = balanced_pair(2.0, 3, 4, 5, generator=g)
        >>> bool(torch.allclose(w2.mT @ w2 - w1 @ w1.mT, 2 * torch.eye(4, dtype=w1.dtype)))
        True
    """
    generator = default_generator(generator)
    lam = as_float64(balance, "balance")
    sizes = _require_sizes(n_in, n_hidden, n_out)
    if product is None:
        product = _gaussian_product(lam.shape, *sizes, scale=scale, generator=generator)
    else:
        product = _require_product(product, lam.shape, n_in, n_out)
    rotation = random_rotation(product.shape[:-2], n_hidden, generator=generator)
    return balanced_factors(product, lam, n_hidden, rotation=rotation, row_space=row_space, generator=generator)


def aligned_balanced_pair(
    balance: float | Tensor,
    corr_yx: Tensor,
    n_hidden: int,
    *,
    scale: float = 1.0,
    row_space: bool = False,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """A balanced pair whose product has the singular vectors of the task ``corr_yx`` (*batch, n_out, n_in).

    Its singular values are those of a product of Gaussian matrices with entries of standard deviation ``scale``.
    Gradient flow then moves every mode of the task by itself.
    """
    generator = default_generator(generator)
    corr = as_float64(corr_yx, "corr_yx")
    require_matrix(corr, "corr_yx")
    n_out, n_in = corr.shape[-2:]
    lam = as_float64(balance, "balance")
    batch = torch.broadcast_shapes(lam.shape, corr.shape[:-2])
    sizes = _require_sizes(n_in, n_hidden, n_out)
    drawn = torch.linalg.svdvals(_gaussian_product(batch, *sizes, scale=scale, generator=generator))
    u, _, vh = torch.linalg.svd(corr, full_matrices=False)
    rotation = random_rotation(batch, n_hidden, generator=generator)
    modes = (u.expand(*batch, *u.shape[-2:]), drawn, vh.mT.expand(*batch, *vh.mT.shape[-2:]))
    return _assemble(modes, lam.expand(batch), n_hidden, rotation, row_space, generator)


def balanced_factors(
    product: Tensor,
    balance: float | Tensor,
    n_hidden: int,
    *,
    rotation: Tensor | None = None,
    row_space: bool = False,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Split a product (*batch, n_out, n_in) into balanced factors, with a hidden basis of your choice.

    ``w2 = U S2 R'``, ``w1 = R S1 V'`` where U, V are the singular vectors of the product and R is ``rotation``
    (*batch, n_hidden, n_hidden), the identity by default. Singular values: ``S2^2 - S1^2 = balance``, ``S2 S1 = S``.
    Directions beyond the rank of the product are drawn when a generator is given, else completed by QR.
    """
    product = as_float64(product, "product")
    require_matrix(product, "product")
    require_integer(n_hidden, "n_hidden", at_least=1)
    lam = as_float64(balance, "balance").expand(product.shape[:-2])
    u, s, vh = torch.linalg.svd(product, full_matrices=False)
    if n_hidden < s.shape[-1]:
        allowed = 1e-12 * s[..., :1]
        if bool((s[..., n_hidden:] > allowed).any()):
            rank = int((s > allowed).sum(-1).max())
            raise InvalidInput(
                f"product has rank {rank}, and a network with n_hidden = {n_hidden} reaches rank {n_hidden} only; "
                "give a product of lower rank or more hidden units."
            )
    if rotation is None:
        rotation = torch.eye(n_hidden, dtype=product.dtype, device=product.device)
    elif rotation.shape[-2:] != (n_hidden, n_hidden):
        raise ShapeError(f"rotation must be (..., {n_hidden}, {n_hidden}); got shape {tuple(rotation.shape)}.")
    return _assemble((u, s, vh.mT), lam, n_hidden, rotation, row_space, generator)


def balanced_pair_(
    first: nn.Linear,
    second: nn.Linear,
    balance: float,
    *,
    scale: float = 1.0,
    row_space: bool = False,
    generator: torch.Generator,
) -> tuple[nn.Linear, nn.Linear]:
    """Fill two consecutive ``nn.Linear`` layers in place with a balanced pair; biases become zero.

    Dtype and device of the layers are kept: in float32 the balance holds to float32 rounding.
    """
    if first.out_features != second.in_features:
        raise ShapeError(
            f"first must feed second; it has {first.out_features} outputs and second {second.in_features} inputs."
        )
    w1, w2 = balanced_pair(
        balance,
        first.in_features,
        first.out_features,
        second.out_features,
        scale=scale,
        row_space=row_space,
        generator=generator,
    )
    with torch.no_grad():
        for layer, weight in ((first, w1), (second, w2)):
            layer.weight.copy_(weight)
            if layer.bias is not None:
                layer.bias.zero_()
    return first, second


@formula("anguita2024", "Eq. (4.8)")
def balanced_singular_values(
    product_s: Float[Tensor, "*batch r"], balance: Float[Tensor, "*batch"]
) -> tuple[Float[Tensor, "*batch r"], Float[Tensor, "*batch r"]]:
    """Singular values ``(s1, s2)`` of the layers from those of the product: ``s2 s1 = s``, ``s2^2 - s1^2 = balance``.

    The larger one is a sum of positive terms; the smaller follows by division, so neither loses digits.
    """
    lam = balance[..., None]
    large = ((torch.hypot(lam, 2 * product_s) + lam.abs()) / 2).sqrt()
    small = torch.where(large > 0, product_s / large.clamp_min(torch.finfo(large.dtype).tiny), 0.0)
    return torch.where(lam >= 0, small, large), torch.where(lam >= 0, large, small)


def random_rotation(
    batch: torch.Size | tuple[int, ...], size: int, *, generator: torch.Generator | None = None
) -> Tensor:
    """Orthogonal matrices (*batch, size, size) from the uniform (Haar) distribution, in float64."""
    generator = default_generator(generator)
    normal = torch.randn(*batch, size, size, dtype=torch.float64, generator=generator)
    return _orthonormal(normal)


def _assemble(
    modes: tuple[Tensor, Tensor, Tensor],
    lam: Tensor,
    n_hidden: int,
    rotation: Tensor,
    row_space: bool,
    generator: torch.Generator | None,
) -> tuple[Tensor, Tensor]:
    u, s, v = modes
    _require_legal(lam, v.shape[-2], n_hidden, u.shape[-2], row_space)
    n_modes = s.shape[-1]
    s = torch.nn.functional.pad(s[..., :n_hidden], (0, max(0, n_hidden - n_modes)))
    s1, s2 = balanced_singular_values(s, lam)
    u = _complete(u[..., :n_hidden], n_hidden, generator)
    v = _complete(v[..., :n_hidden], n_hidden, generator)
    w1 = (rotation[..., :, : v.shape[-1]] * s1[..., None, : v.shape[-1]]) @ v.mT
    w2 = (u * s2[..., None, : u.shape[-1]]) @ rotation[..., :, : u.shape[-1]].mT
    return w1, w2


def _complete(basis: Tensor, n_columns: int, generator: torch.Generator | None) -> Tensor:
    """Orthonormal columns extended to ``n_columns`` of them, or to a full basis if that is fewer."""
    missing = min(n_columns, basis.shape[-2]) - basis.shape[-1]
    if missing <= 0:
        return basis
    shape = (*basis.shape[:-1], missing)
    if generator is None:
        fresh = torch.eye(basis.shape[-2], dtype=basis.dtype).expand(*basis.shape[:-2], -1, -1)
    else:
        fresh = torch.randn(shape, dtype=basis.dtype, generator=generator)
    fresh = fresh.to(basis.device)
    for _ in range(2):  # twice: one projection leaves rounding-size components along the basis
        fresh = fresh - basis @ (basis.mT @ fresh)
    if generator is None:  # the projector on the complement: its leading left singular vectors span it
        return torch.cat([basis, torch.linalg.svd(fresh).U[..., :missing]], dim=-1)
    return torch.cat([basis, _orthonormal(fresh)], dim=-1)


def _orthonormal(matrix: Tensor) -> Tensor:
    """Q of the QR decomposition with a positive diagonal of R, which makes a Gaussian matrix uniform."""
    q, r = torch.linalg.qr(matrix)
    sign = torch.where(r.diagonal(dim1=-2, dim2=-1) < 0, -1.0, 1.0).to(q.dtype)
    return q * sign[..., None, :]


def _gaussian_product(
    batch: torch.Size, n_in: int, n_hidden: int, n_out: int, *, scale: float, generator: torch.Generator
) -> Tensor:
    require_positive(scale, "scale")
    w1 = torch.randn(*batch, n_hidden, n_in, dtype=torch.float64, generator=generator)
    w2 = torch.randn(*batch, n_out, n_hidden, dtype=torch.float64, generator=generator)
    return (scale * w2) @ (scale * w1)


def _require_sizes(n_in: int, n_hidden: int, n_out: int) -> tuple[int, int, int]:
    return (
        require_integer(n_in, "n_in", at_least=1),
        require_integer(n_hidden, "n_hidden", at_least=1),
        require_integer(n_out, "n_out", at_least=1),
    )


def _require_product(product: Tensor, batch: torch.Size, n_in: int, n_out: int) -> Tensor:
    product = as_float64(product, "product")
    if product.shape[-2:] != (n_out, n_in):
        raise ShapeError(f"product must have shape (..., {n_out}, {n_in}); got {tuple(product.shape)}.")
    return product.expand(*torch.broadcast_shapes(batch, product.shape[:-2]), n_out, n_in)


def _require_legal(lam: Tensor, n_in: int, n_hidden: int, n_out: int, row_space: bool) -> None:
    if row_space:
        return
    for sign, size, name, width in (("positive", 1, "n_out", n_out), ("negative", -1, "n_in", n_in)):
        if n_hidden > width and bool((size * lam > 0).any()):
            raise InvalidInput(
                f"a {sign} balance needs n_hidden <= {name}; got balance {_worst(lam, size)}, n_hidden = {n_hidden} "
                f"and {name} = {width}. Pass row_space=True to balance {width} hidden directions and empty the rest."
            )


def _worst(lam: Tensor, sign: int) -> str:
    return f"{float((sign * lam).max()) * sign:g}"
