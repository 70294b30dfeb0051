"""Balance of randomly initialised layers: mean and variance of the entries of ``w2' w2 - w1 w1'``.

Entries of layer l are independent with mean zero and variance v_l. Then ``E D = (n_out v2 - n_in v1) I`` and
``Var D_ij = (n_out v2^2 + n_in v1^2) (1 + [i = j])`` for Gaussian entries.

Random weights look balanced entry by entry, but not as matrices: the eigenvalues of D keep a spread that does not
vanish with width, so the closed form of ``BalancedFlow`` does not apply to them (it refuses).
"""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias, final

from separatrix.core import InvalidInput, Result, choose, formula, require_integer, require_positive

Scheme: TypeAlias = Literal["lecun", "he", "glorot", "scaled"]
SCHEMES: tuple[Scheme, ...] = ("lecun", "he", "glorot", "scaled")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RandomBalance(Result):
    """What an initialisation scheme makes of the balance of two layers."""

    scheme: str
    mean: float
    """Expected diagonal entry of D: the balance coefficient."""
    variance_diagonal: float
    variance_offdiagonal: float
    spectral_spread: float
    """Root mean square deviation of the eigenvalues of D from the mean, which width does not shrink."""


@formula("anguita2024", "Sec. 3.1, columns 2 and 3 of Table 3.1")
def layer_variances(
    scheme: str, n_in: int, n_hidden: int, n_out: int, gains: tuple[float, float] = (1.0, 1.0)
) -> tuple[float, float]:
    """Variance of an entry of each layer. ``gains`` are the alphas of the scaled scheme, ``alpha^2 / fan_in``."""
    choose("initialisation scheme", scheme, SCHEMES)
    for size, name in ((n_in, "n_in"), (n_hidden, "n_hidden"), (n_out, "n_out")):
        require_integer(size, name, at_least=1)
    if scheme != "scaled" and gains != (1.0, 1.0):
        raise InvalidInput(f"gains belong to the scaled scheme only; got {gains} with {scheme!r}.")
    match scheme:
        case "lecun":
            return 1 / n_in, 1 / n_hidden
        case "he":
            return 2 / n_in, 2 / n_hidden
        case "glorot":
            return 2 / (n_in + n_hidden), 2 / (n_hidden + n_out)
    return gains[0] ** 2 / n_in, gains[1] ** 2 / n_hidden


@formula("anguita2024", "Sec. 3.1, Table 3.1", erratum="anguita2024-3.1.1-variance")
def random_balance(
    scheme: str, n_in: int, n_hidden: int, n_out: int, gains: tuple[float, float] = (1.0, 1.0)
) -> RandomBalance:
    """Mean and variance of the balance of two random layers, and the spread of its eigenvalues.

    Example:
        >>> round(random_balance("lecun", 40, 200, 80).mean, 3)
        -0.6
    """
    v1, v2 = layer_variances(scheme, n_in, n_hidden, n_out, gains)
    mean = n_out * v2 - n_in * v1
    off = n_out * v2**2 + n_in * v1**2
    return RandomBalance(scheme, mean, 2 * off, off, ((n_hidden + 1) * off) ** 0.5)


@formula("anguita2024", "Table 3.2", erratum="anguita2024-table3.2-3.3")
def wide_balance(
    scheme: str, hidden_ratio: float, output_ratio: float, gains: tuple[float, float] = (1.0, 1.0)
) -> tuple[float, float]:
    """Balance of wide layers from their ratios ``n_hidden / n_in`` (k) and ``n_out / n_in`` (r).

    Returns:
        The mean, and the variance of an off-diagonal entry times ``n_in`` (the diagonal has twice that).
    """
    choose("initialisation scheme", scheme, SCHEMES)
    k, r = hidden_ratio, output_ratio
    if k <= 0 or r <= 0:
        raise InvalidInput(f"hidden_ratio and output_ratio must be positive; got {k} and {r}.")
    match scheme:
        case "lecun":
            return r / k - 1, r / k**2 + 1
        case "he":
            return 2 * (r / k - 1), 4 * (r / k**2 + 1)
        case "glorot":
            return 2 * (r / (k + r) - 1 / (k + 1)), 4 * (r / (r + k) ** 2 + 1 / (k + 1) ** 2)
    a1, a2 = gains
    return r / k * a2**2 - a1**2, r * a2**4 / k**2 + a1**4


@formula("anguita2024", "Table 3.3", erratum="anguita2024-table3.2-3.3")
def glorot_limits(hidden_ratio: float) -> dict[str, float]:
    """Glorot balance in the five limits of Table 3.3; k is ``n_hidden / n_in``, r is ``n_out / n_in``."""
    k = require_positive(hidden_ratio, "hidden_ratio")
    return {
        "r = k": (k - 1) / (k + 1),
        "r -> 0": -2 / (k + 1),
        "r -> inf": 2 * k / (k + 1),
        "k -> 0": 0.0,
        "k -> inf": 0.0,
    }
