"""The consensus cycle: with a complex principal pair of value, tokens agree and rotate together."""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import OutsideTheory, Result, ShapeError, formula, require_integer

from .basis import ArrayLike, eigenbasis, require_index, value_matrix


@final
@dataclasses.dataclass(frozen=True, repr=False)
class ConsensusCycle(Result):
    """Rotation of agreeing tokens in the invariant plane of a complex pair a +- ib of value.

    Attributes:
        period: 2 pi / \\|b\\|; after half of it every token stands at its antipode.
        along: Floquet exponents (real parts) within consensus: 0 for the phase, then Re lambda_j - a.
        splitting: the exponent -a of motions that separate tokens.
        n_split: how many times it appears, (n - 1)(d - 1).
    """

    period: int | float
    along: Float[Tensor, " d_less_1"]
    splitting: int | float
    n_split: int

    @property
    def exponents(self) -> Float[Tensor, " all"]:
        """All n (d - 1) exponents in descending order."""
        repeated = torch.full((self.n_split,), self.splitting, dtype=torch.float64)
        return torch.cat([self.along, repeated]).sort(descending=True).values

    @property
    def stable(self) -> bool:
        """Whether the cycle attracts its neighbourhood: every exponent but the phase is negative."""
        return bool((self.along[1:] < 0).all()) and (self.n_split == 0 or self.splitting < 0)


@formula("altafini2025", "section 7, complex principal pair")
def consensus_cycle(value: ArrayLike, n_tokens: int, k: int = 0) -> ConsensusCycle:
    r"""Period and Floquet exponents of the cycle on which all tokens agree and rotate, for every kind of attention.

    For the pair :math:`a \pm ib`: 0 (phase), :math:`\operatorname{Re}\lambda_j - a` for the other eigenvalues, and -a
    with multiplicity (n - 1)(d - 1). Orbitally stable iff a > 0 and a exceeds every other real part.

    Args:
        value: (d, d), not symmetric.
        n_tokens: number of tokens.
        k: number of either member of the pair, from 0 in descending order of the real part.

    Raises:
        OutsideTheory: eigenvalue k is real, so that consensus there is a rest point (``consensus_spectrum``).

    Source: altafini2025, section 7, reports the cycle from simulation; period and exponents are ours.
    """
    matrix = value_matrix(value)
    n_tokens = require_integer(n_tokens, "n_tokens", at_least=1)
    if matrix.ndim != 2:
        raise ShapeError(f"value must be one matrix (d, d); got a batch of shape {tuple(matrix.shape)}.")
    k = require_index(k, matrix.shape[-1])
    eigenvalues, _ = eigenbasis(matrix)
    chosen = complex(eigenvalues[k])
    if chosen.imag == 0:
        raise OutsideTheory(f"eigenvalue {k} of value is real ({chosen.real:.4g}): use consensus_spectrum.")
    partner = int((eigenvalues - chosen.conjugate()).abs().argmin())
    keep = [j for j in range(len(eigenvalues)) if j not in (k, partner)]
    along = torch.cat([torch.zeros(1, dtype=torch.float64), eigenvalues.real[keep] - chosen.real])
    return ConsensusCycle(2 * math.pi / abs(chosen.imag), along, -chosen.real, (n_tokens - 1) * (len(eigenvalues) - 1))
