"""White inputs, ``X'X / P = c I``: the assumption of every closed form of linear networks, measured on data."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import OutsideTheory, Result, ShapeError, as_tensor, not_a_formula

_WHITE = {torch.float64: 1e-6, torch.float32: 1e-4}


class NotWhite(OutsideTheory):
    """Inputs whose correlation is no multiple of the identity; how far it is from one stands in ``deviation``."""

    def __init__(self, message: str, deviation: float) -> None:
        super().__init__(message)
        self.deviation = deviation


class NotWhiteWarning(UserWarning):
    """A closed form was computed although the inputs are not white, as asked."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Whiteness(Result):
    """How white inputs are.

    Attributes:
        input_var: c, the mean of the eigenvalues of ``X'X / P``.
        deviation: largest distance of an eigenvalue from c, relative to c: 0 for white inputs.
        n_samples: P.
        n_in: number of inputs; fewer samples than inputs are never white.
    """

    input_var: float
    deviation: float
    n_samples: int
    n_in: int


@not_a_formula("a measurement on data")
def input_whiteness(inputs: Any) -> Whiteness:
    """Measure how white inputs are, (samples, n_in), without centring them.

    Example:
        >>> input_whiteness(torch.eye(4)).deviation  # one-hot inputs: white, with c = 1 / P
        0.0
        >>> input_whiteness([[2.0, 0.0], [0.0, 1.0]]).deviation
        0.6
    """
    x = _samples(inputs).to(torch.float64)
    values = torch.linalg.eigvalsh(x.mT @ x / x.shape[0])
    scale = float(values.mean())
    deviation = float((values - scale).abs().max()) / scale if scale > 0 else float("inf")
    return Whiteness(scale, deviation, *x.shape)


@not_a_formula("a change of the data")
def whiten(inputs: Any) -> Float[Tensor, "p i"]:
    """Inputs turned and stretched as little as possible so that ``X'X / P = I``.

    The best linear map has the same loss on them, but gradient descent takes another path there: whitening is a
    preconditioner.

    Raises:
        OutsideTheory: fewer independent samples than inputs.

    Cost: O(P n_in^2 + n_in^3).
    """
    x = _samples(inputs)
    values, basis = torch.linalg.eigh(x.mT.to(torch.float64) @ x.to(torch.float64) / x.shape[0])
    if not float(values[0]) > 1e-12 * float(values[-1]):
        raise OutsideTheory(
            f"inputs must have as many independent samples as inputs to be whitened; got {x.shape[0]} samples of "
            f"{x.shape[1]} inputs with an eigenvalue of {float(values[0]):.2g}. Leave out inputs or add samples."
        )
    return (x.to(torch.float64) @ (basis * values.rsqrt()) @ basis.mT).to(x.dtype)


def require_white(inputs: Tensor, allow: bool) -> Whiteness:
    """The whiteness of inputs that are white enough for a closed form; otherwise an error, or a warning if allowed."""
    found = input_whiteness(inputs)
    tol = _WHITE.get(inputs.dtype, 1e-4)
    if found.deviation <= tol:
        return found
    few = f" (there are only {found.n_samples} samples of {found.n_in} inputs)" if found.n_samples < found.n_in else ""
    message = (
        f"the inputs are not white: an eigenvalue of X'X / P is off by {found.deviation:.2g} of their mean "
        f"{found.input_var:.3g} (allowed {tol:g}){few}, and the closed form does not hold"
    )
    if not allow:
        raise NotWhite(
            f"{message}. Whiten them first (theory.whiten; this changes the dynamics), or integrate with "
            "dynamics.LinearNetworkFlow. allow_non_white=True computes it all the same.",
            found.deviation,
        )
    warnings.warn(f"{message}; computed as if they were.", NotWhiteWarning, stacklevel=4)
    return found


def _samples(inputs: Any) -> Tensor:
    x = as_tensor(inputs, "inputs")
    if x.ndim != 2 or 0 in x.shape or x.is_complex():
        raise ShapeError(f"inputs must be real, with shape (samples, n_in); got {tuple(x.shape)}.")
    return x if x.is_floating_point() else x.to(torch.float64)
