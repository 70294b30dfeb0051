"""How logits become attention weights: row softmax, uniform, or doubly stochastic, each with its derivative.

Every normalisation accepts cluster sizes: column j stands for ``size_j`` tokens at one place, so that the weights
of a row are those of all tokens of the cluster together. Sizes enter through logarithms; -inf marks a place holder.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import NotConverged, resolve
from separatrix.core.arithmetic.linear_systems import lu_factor_ex
from separatrix.core.described import Described
from separatrix.core.names import suggest_options

Weights: TypeAlias = Float[Tensor, "*batch n n"]
Change: TypeAlias = Float[Tensor, "*batch2 n n"]
Sizes: TypeAlias = Float[Tensor, "*batch3 n"]
Answer: TypeAlias = Float[Tensor, "*batch4 n n"]
"""Batches may differ: each is broadcast with the others."""

SINKHORN_TOLERANCE = 1e-10
SINKHORN_STEPS = 20_000


class AbstractNormalisation(Described, abc.ABC):
    """Logits (..., n, n) to row-stochastic weights.

    For implementers: ``weights`` and its derivative ``tangent``. ``follows_logits`` is false when the weights do not
    depend on the state, so that the derivative vanishes. A logit of -inf is hidden by a mask and must get no weight.
    Pass an object to ``AttentionFlow(normalisation=...)``.

    - ``log_sizes`` is (..., n), one per column: ``log_sizes.unsqueeze(-2)`` stands beside the logits, whose leading
      axes may be others. The weight of a column is that of all its tokens together; -inf is a place holder.
    - ``tangent`` is given the weights, not the logits: the derivative must follow from them (as for softmax and its
      sparse relatives).
    - ``weights`` must be right for ``torch.autograd`` too. Where it searches for a number, end with one step of
      Newton's method that is differentiated.

    See ``docs/how-to/bring-your-own-part``. Checked by ``tests/dynamics/flows/test_normalisation_contract.py``, where
    yours is one line.
    """

    follows_logits: bool = True

    @abc.abstractmethod
    def weights(self, logits: Weights, log_sizes: Sizes | None) -> Answer:
        """Attention weights; rows sum to one over columns that stand for ``exp(log_sizes)`` tokens each."""

    @abc.abstractmethod
    def tangent(self, attention: Weights, dlogits: Change, log_sizes: Sizes | None) -> Answer:
        """Change of the weights when the logits change by ``dlogits``."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Softmax(AbstractNormalisation):
    """Each row a softmax of its logits."""

    def weights(self, logits: Weights, log_sizes: Sizes | None) -> Answer:
        """Row softmax, with the row maximum subtracted first."""
        return torch.softmax(_with_sizes(logits, log_sizes), dim=-1)

    def tangent(self, attention: Weights, dlogits: Change, log_sizes: Sizes | None) -> Answer:
        """A (dz - row mean of dz under A)."""
        weighted = attention * dlogits
        return weighted - attention * weighted.sum(dim=-1, keepdim=True)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Uniform(AbstractNormalisation):
    """Equal weights on all visible tokens: the limit of small inverse temperature."""

    follows_logits: bool = False

    def weights(self, logits: Weights, log_sizes: Sizes | None) -> Answer:
        """Weights in proportion to the sizes of the visible clusters."""
        visible = torch.where(torch.isneginf(logits), logits, torch.zeros_like(logits))
        return torch.softmax(_with_sizes(visible, log_sizes), dim=-1)

    def tangent(self, attention: Weights, dlogits: Change, log_sizes: Sizes | None) -> Answer:
        """Zero."""
        return torch.zeros_like(attention * dlogits)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Sinkhorn(AbstractNormalisation):
    """Doubly stochastic weights: rows and columns both sum to one.

    With sizes s the conditions are sum_b A_ab = 1 and sum_a s_a A_ab = s_b, those of the tokens the clusters stand
    for. The iteration runs in logarithms until both hold to ``tol``, whatever the number of sweeps.
    """

    tol: float = SINKHORN_TOLERANCE

    def weights(self, logits: Weights, log_sizes: Sizes | None) -> Answer:
        """Alternate row and column normalisation in the log domain; each element of the batch stops on its own."""
        logits = _with_sizes(logits, log_sizes)
        mass = torch.zeros_like(logits[..., 0]) if log_sizes is None else log_sizes.expand(logits.shape[:-1])
        shape = logits.shape
        z, mass = logits.reshape(-1, *shape[-2:]), mass.reshape(-1, shape[-1])
        column = torch.zeros_like(mass)
        open_ = torch.arange(len(z), device=z.device)
        tol = max(self.tol, 50 * torch.finfo(z.dtype).eps)
        for _ in range(SINKHORN_STEPS):
            column[open_], error = _sweep(z[open_], mass[open_], column[open_])
            open_ = open_[error > tol]
            if not len(open_):
                return torch.softmax(z + column.unsqueeze(-2), dim=-1).reshape(shape)
        raise NotConverged(
            f"Sinkhorn normalisation of {len(open_)} of {len(z)} matrices did not reach {tol:.0e} in "
            f"{SINKHORN_STEPS} sweeps. A doubly stochastic matrix may not exist under this mask; otherwise lower beta."
        )

    def tangent(self, attention: Weights, dlogits: Change, log_sizes: Sizes | None) -> Answer:
        """Implicit derivative: the row and column scalings respond so that both sums stay fixed."""
        A = attention
        s = torch.ones_like(A[..., 0]) if log_sizes is None else log_sizes.exp().expand(A.shape[:-1])
        weighted = A * dlogits
        rows = weighted.sum(dim=-1)
        columns = (s.unsqueeze(-1) * weighted).sum(dim=-2)
        # da = -rows - A db, and diag(s) db - A' diag(s) A db = A' diag(s) rows - columns. Adding s s' / sum(s) fixes
        # the constant that may be moved between the two scalings; place holders get an identity row.
        schur = torch.diag_embed(s + (s == 0)) - (A.mT * s.unsqueeze(-2)) @ A
        schur = schur + s.unsqueeze(-1) * s.unsqueeze(-2) / s.sum(dim=-1)[..., None, None]
        right = (A * (s * rows).unsqueeze(-1)).sum(dim=-2) - columns
        db = torch.linalg.lu_solve(*lu_factor_ex(schur), right.unsqueeze(-1)).squeeze(-1)
        da = -rows - (A * db.unsqueeze(-2)).sum(dim=-1)
        return weighted + A * (da.unsqueeze(-1) + db.unsqueeze(-2))


NORMALISATIONS: dict[str, AbstractNormalisation] = {
    "softmax": Softmax(),
    "uniform": Uniform(),
    "sinkhorn": Sinkhorn(),
}


def find_normalisation(given: str | AbstractNormalisation) -> AbstractNormalisation:
    """A normalisation by name, or the given object."""
    return resolve("normalisation", given, NORMALISATIONS, base=AbstractNormalisation)


def _with_sizes(logits: Tensor, log_sizes: Tensor | None) -> Tensor:
    return logits if log_sizes is None else logits + log_sizes.unsqueeze(-2)


def _sweep(z: Tensor, mass: Tensor, column: Tensor) -> tuple[Tensor, Tensor]:
    """One row and one column normalisation; returns the column scaling and the column error before it."""
    log_rows = torch.log_softmax(z + column.unsqueeze(-2), dim=-1)
    held = torch.logsumexp(log_rows + mass.unsqueeze(-1), dim=-2)
    gap = torch.where(torch.isneginf(mass), torch.zeros_like(held), held - mass)
    return column - gap, gap.exp().sub(1).abs().amax(dim=-1)
