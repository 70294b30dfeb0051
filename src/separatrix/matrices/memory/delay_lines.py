"""Feed-forward chains: the matrices by which non-normality is usually shown.

A delay line hands its state to the next unit at every step and forgets it after the last one. With entries below the
sub-diagonal, on the diagonal, or above it, the chain is no longer nilpotent or no longer one signal per unit.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import require_integer, require_number


def delay_line(
    n_units: int, sub: float = 1.0, rest: float = 0.0, diagonal: float = 0.0, *, dtype: torch.dtype = torch.float64
) -> Float[Tensor, "h h"]:
    r"""Lower-triangular matrix with three values: on the diagonal, just below it, and in the rest below.

    .. math:: \Theta_{ij} = d\,\delta_{i,j} + \alpha\,\delta_{i,j+1} + \beta\,[i \ge j + 2]

    Args:
        n_units: number of units, at least 1.
        sub: entry just below the diagonal (alpha). The document's closed form for the memory curve needs the
            square root of its alpha here; its figure and table put alpha itself.
        rest: entries further below (beta).
        diagonal: entries on the diagonal (d), which are the eigenvalues.
        dtype: of the matrix.

    Source:
        kerg2022, Eq. (3.4.2).

    Example:
        >>> delay_line(3, sub=2.0, rest=0.5, diagonal=0.1).tolist()
        [[0.1, 0.0, 0.0], [2.0, 0.1, 0.0], [0.5, 2.0, 0.1]]
    """
    n_units = require_integer(n_units, "n_units", at_least=1)
    _require_finite_numbers(sub=sub, rest=rest, diagonal=diagonal)
    ones = torch.ones(n_units, n_units, dtype=dtype)
    below = ones.tril(-2) * rest
    return below + torch.diag(ones[0, 1:] * sub, -1) + torch.diag(ones[0] * diagonal)


def feedback_line(n_units: int, sub: float, sup: float, *, dtype: torch.dtype = torch.float64) -> Float[Tensor, "h h"]:
    r"""Delay line whose units also feed the one before them.

    The spectral radius is :math:`2\sqrt{|\mathrm{sub}\cdot\mathrm{sup}|}\cos(\pi/(N+1))`, so the line is stable in
    the limit of many units if ``sub * sup < 1/4``; it amplifies if ``sub + sup > 1``.

    Args:
        n_units: number of units, at least 1.
        sub: forward weight, below the diagonal (square root of alpha in the document).
        sup: feedback weight, above the diagonal (square root of beta in the document).
        dtype: of the matrix.

    Source:
        kerg2022, section 2.6.

    Example:
        >>> feedback_line(3, sub=2.0, sup=0.5).tolist()
        [[0.0, 0.5, 0.0], [2.0, 0.0, 0.5], [0.0, 2.0, 0.0]]
    """
    n_units = require_integer(n_units, "n_units", at_least=1)
    _require_finite_numbers(sub=sub, sup=sup)
    ones = torch.ones(n_units - 1, dtype=dtype)
    return torch.diag(ones * sub, -1) + torch.diag(ones * sup, 1)


def _require_finite_numbers(**values: float) -> None:
    for name, value in values.items():
        require_number(value, name)
