"""Powers of triangular matrices: how fast a linear network with a unit spectrum can grow."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from separatrix.core import InvalidInput, formula


@formula("kerg2022", "Proposition 3.4.2", erratum="kerg2022-polynomial")
def unit_triangular_power(
    entry: Float[Tensor, "*#batch"], offset: Int[Tensor, "*#batch"], power: Int[Tensor, "*#batch"]
) -> Float[Tensor, "*batch"]:
    r"""Entries of a power of the matrix with ones on the diagonal and one number above it.

    .. math:: (A^t)_{i,i+m} = \sum_{l=1}^{m}\binom{t}{l}\binom{m-1}{l-1}x^l, \qquad A = I + xS

    S has ones strictly above the diagonal. The coefficient of :math:`x^l` is of degree l in t, so the entry grows like
    :math:`t^m`: slower than any exponential, and yet out of the range of double precision for a few hundred units.

    Args:
        entry: x.
        offset: m = j - i, the distance from the diagonal; 0 gives 1 and below 0 gives 0.
        power: t, at least 0.

    Raises:
        InvalidInput: a power is negative.

    Cost: as many terms as the largest offset, each a few products.
    """
    if bool((power < 0).any()):
        raise InvalidInput(f"power must be at least 0; got {int(power.min())}.")
    steps = int(offset.max())
    entry, offset, power = torch.broadcast_tensors(entry, offset.to(entry.dtype), power.to(entry.dtype))
    term = power * entry  # l = 1
    total = torch.where(offset >= 1, term, torch.zeros_like(term))
    for degree in range(2, steps + 1):  # each term from the one before: no factorial overflows
        term = term * entry * ((power - degree + 1) / degree) * ((offset - degree + 1) / (degree - 1))
        total = torch.where(offset >= degree, total + term, total)
    return torch.where(offset == 0, torch.ones_like(total), total)
