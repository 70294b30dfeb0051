r"""Layers of the delta rule: the state is multiplied by :math:`\alpha(I - \beta k k^\top)` at every token.

For unit keys each factor contracts (0 < beta < 1), projects (1), turns back (1 < beta < 2) or reflects (2) along its
key: products of Householder-like matrices. With beta above one a factor has the negative eigenvalue
:math:`\alpha(1 - \beta|k|^2)`, which lets a layer count modulo two.
"""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, ShapeError, as_tensor

from .exponents import product_exponents


@final
@dataclasses.dataclass(frozen=True, repr=False)
class DeltaRuleSpectrum(Result):
    """What products of delta-rule factors do to the state."""

    key_eigenvalues: Float[Tensor, " t"]
    """The eigenvalue of each factor along its key; all others are the decay of that step."""
    n_negative: int
    """Factors with a negative eigenvalue."""
    exponents: Float[Tensor, " n"]
    """Growth per step of the product, falling; minus infinity for directions that a projection erases."""
    sum_error: float | None
    """Relative difference between their sum and the mean log |determinant| in closed form; None if singular."""
    time_constants: Float[Tensor, " n"]
    """Steps in which each direction falls to 1/e; infinite where it does not."""


def delta_rule_spectrum(keys: object, strengths: object, decays: object = None) -> DeltaRuleSpectrum:
    r"""Spectrum of the state of a DeltaNet or gated delta-rule layer along one sequence of tokens.

    .. math:: S_t = \alpha_t (I - \beta_t k_t k_t^\top) S_{t-1} + \beta_t k_t v_t^\top

    Args:
        keys: (time, d), as they enter the rule (normalised if the layer normalises them); for several factors a
            token, give them one after the other.
        strengths: (time,) writing strengths, from 0 to 2.
        decays: (time,) gates alpha, positive; one if not given (DeltaNet).

    Returns:
        Eigenvalues of the factors and exponents of their product; values v do not matter for either.

    Raises:
        InvalidInput: shapes do not fit, a strength is negative, or a gate is not positive.

    Cost: a QR decomposition of (d, d) per token.

    Example:
        >>> keys = torch.eye(2, dtype=torch.float64).repeat(8, 1)
        >>> found = delta_rule_spectrum(keys, torch.full((16,), 2.0))
        >>> found.n_negative, [round(abs(value), 6) for value in found.exponents.tolist()]
        (16, [0.0, 0.0])
    """
    k = as_tensor(keys, "keys", dtype=torch.float64)
    beta = as_tensor(strengths, "strengths", dtype=torch.float64)
    alpha = torch.ones_like(beta) if decays is None else as_tensor(decays, "decays", dtype=torch.float64)
    if k.ndim != 2 or not k.numel() or beta.shape != k.shape[:1] or alpha.shape != k.shape[:1]:
        raise ShapeError(
            f"keys must be (time, d), strengths and decays (time,); got {tuple(k.shape)}, {tuple(beta.shape)} and "
            f"{tuple(alpha.shape)}."
        )
    if bool((beta < 0).any()) or bool((alpha <= 0).any()):
        raise InvalidInput("strengths must not be negative, and decays must be positive.")
    size = k.shape[1]
    along = 1 - beta * k.square().sum(-1)
    factors = alpha[:, None, None] * (torch.eye(size, dtype=torch.float64) - beta[:, None, None] * _outer(k))
    exponents = product_exponents(factors)
    expected = float((along.abs().log() + size * alpha.log()).mean())
    singular = bool(torch.isneginf(exponents).any()) or expected == -torch.inf
    error = None if singular else abs(float(exponents.sum()) - expected) / max(abs(expected), 1e-12)
    constants = torch.where(exponents < -1e-12, -1 / exponents, torch.inf)
    return DeltaRuleSpectrum(alpha * along, int((along < 0).sum()), exponents, error, constants)


def _outer(keys: Float[Tensor, "t d"]) -> Float[Tensor, "t d d"]:
    return keys.unsqueeze(-1) * keys.unsqueeze(-2)
