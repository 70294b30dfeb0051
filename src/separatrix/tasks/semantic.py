"""Tasks for linear networks: the semantic hierarchy of living things, and random regression with exactly white inputs.

The semantic task: eight items (rows), two birds, two fish, two trees, two flowers, described by eight properties
from the general (alive) to the specific; inputs are one-hot. One-hot inputs are not white: their correlation is ``I
/ 8``, so pass ``input_var = 1/8`` to ``theory.BalancedFlow``.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import InvalidInput, Result, choose, require_integer

Variant: TypeAlias = Literal["standard", "distinct", "reversal"]
VARIANTS: tuple[Variant, ...] = ("standard", "distinct", "reversal")

ITEMS = ("robin", "canary", "salmon", "sunfish", "oak", "pine", "rose", "daisy")

_HIERARCHY = (
    (1, 1, 1, 0, 1, 0, 0, 0),
    (1, 1, 1, 0, -1, 0, 0, 0),
    (1, 1, -1, 0, 0, 1, 0, 0),
    (1, 1, -1, 0, 0, -1, 0, 0),
    (1, -1, 0, 1, 0, 0, 1, 0),
    (1, -1, 0, 1, 0, 0, -1, 0),
    (1, -1, 0, -1, 0, 0, 0, 1),
    (1, -1, 0, -1, 0, 0, 0, -1),
)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class LinearTask(Result):
    """Samples of a regression task and their correlations, in float64."""

    inputs: Float[Tensor, "p i"]
    targets: Float[Tensor, "p o"]
    corr_xx: Float[Tensor, "i i"]
    corr_yx: Float[Tensor, "o i"]
    input_var: float
    """c if ``corr_xx = c I``, which both generators of this file guarantee."""


def semantic_task(variant: str = "standard") -> LinearTask:
    """The semantic hierarchy: one-hot items to properties.

    Args:
        variant: ``"standard"``; ``"distinct"`` multiplies property j by ``1 + 0.1 / j``, which separates the equal
            singular values; ``"reversal"`` flips the sign of the last property.

    Example:
        >>> torch.linalg.svdvals(8 * semantic_task().corr_yx)[:5]
        tensor([2.8284, 2.8284, 2.0000, 2.0000, 1.4142], dtype=torch.float64)
    """
    choose("variant of the semantic task", variant, VARIANTS)
    properties = torch.tensor(_HIERARCHY, dtype=torch.float64)
    if variant == "distinct":
        properties = properties * (1 + 0.1 / torch.arange(1, 9, dtype=torch.float64))
    elif variant == "reversal":
        properties = torch.cat([properties[:, :-1], -properties[:, -1:]], dim=1)
    return _task(torch.eye(8, dtype=torch.float64), properties, 1 / 8)


def white_regression(n_in: int, n_out: int, n_samples: int | None = None, *, generator: torch.Generator) -> LinearTask:
    """Random regression: Gaussian inputs and targets, the inputs centred and whitened to exactly ``X'X / P = I``.

    Args:
        n_in: inputs.
        n_out: outputs.
        n_samples: P, by default twice the larger of the two sizes; more than ``n_in`` is needed after centring.
        generator: source of randomness.
    """
    require_integer(n_in, "n_in", at_least=1)
    require_integer(n_out, "n_out", at_least=1)
    count = 2 * max(n_in, n_out) if n_samples is None else require_integer(n_samples, "n_samples", at_least=1)
    if count <= n_in:
        raise InvalidInput(f"n_samples must exceed n_in = {n_in}, or the input correlation is singular; got {count}.")
    x = torch.randn(count, n_in, dtype=torch.float64, generator=generator)
    y = torch.randn(count, n_out, dtype=torch.float64, generator=generator)
    u, _, vh = torch.linalg.svd(x - x.mean(0), full_matrices=False)
    return _task(count**0.5 * u @ vh, y, 1.0)


def _task(x: Tensor, y: Tensor, input_var: float) -> LinearTask:
    n_samples = x.shape[0]
    return LinearTask(x, y, x.mT @ x / n_samples, y.mT @ x / n_samples, input_var)
