"""modReLU: keeps the sign (the phase) of a number and changes its size."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.core.errors import InvalidInput


def modrelu(x: Tensor, bias: Tensor) -> Tensor:
    r"""Sign or phase of x times ``relu(|x| + bias)``.

    .. math:: \mathrm{modReLU}(x; b) = \frac{x}{|x|}\,\max(|x| + b, 0)

    Zero gives zero for every bias: a sign that is +1 at zero would return the bias, and a network at rest would wake up
    by itself. The derivative by x is 1 where the result is not zero, else 0; by the bias it is the sign of the result.
    Public code of gated orthogonal networks adds a small number to |x| instead; this does not.

    Args:
        x: real or complex, (..., units).
        bias: real, one number per unit.

    Source:
        kerg2022, section 3.6 and appendix D.3.

    Example:
        >>> modrelu(torch.tensor([-2.0, -0.5, 0.0, 3.0]), torch.tensor([-1.0, -1.0, 1.0, 1.0]))
        tensor([-1., -0., 0., 4.])
    """
    if not isinstance(x, Tensor) or not isinstance(bias, Tensor):
        raise InvalidInput(f"x and bias must be tensors; got {type(x).__name__} and {type(bias).__name__}.")
    if bias.is_complex():
        raise InvalidInput("bias must be real: it changes the size of a number, not its phase.")
    return torch.sgn(x) * torch.relu(x.abs() + bias)
