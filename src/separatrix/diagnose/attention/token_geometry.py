"""How alike the tokens of a layer are: mean cosine and effective rank, with intervals over texts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import final

import scipy.stats
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core import Result


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Interval(Result):
    """A mean over texts with its 95% interval (Student's t); no interval from a single text."""

    mean: float
    low: float
    high: float
    n_texts: int

    @classmethod
    def over(cls, numbers: Sequence[float]) -> Interval:
        """The interval of the mean of independent numbers."""
        values = torch.tensor(numbers, dtype=torch.float64)
        mean, n = float(values.mean()), len(numbers)
        if n < 2:
            return cls(mean, math.nan, math.nan, n)
        half = float(scipy.stats.t.ppf(0.975, n - 1)) * float(values.std()) / math.sqrt(n)
        return cls(mean, mean - half, mean + half, n)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class TokenGeometry(Result):
    """Likeness of the tokens that enter a layer.

    ``centred`` quantities are taken after removing the mean of the tokens of a text: the bias of a layer norm alone
    gives tokens a common component, which makes cosines large without any attention.
    """

    name: str
    cosine: Interval
    centred_cosine: Interval
    rank: Interval
    centred_rank: Interval
    length: Interval


def token_geometry(name: str, texts: Sequence[Float[Tensor, "_ d"]]) -> TokenGeometry:
    """Mean pairwise cosine, effective rank and mean length of the tokens of each text.

    Args:
        name: the layer.
        texts: tokens (n, d) of each text, at least two tokens.
    """
    centred = [tokens - tokens.mean(dim=0) for tokens in texts]
    return TokenGeometry(
        name=name,
        cosine=Interval.over([mean_cosine(tokens) for tokens in texts]),
        centred_cosine=Interval.over([mean_cosine(tokens) for tokens in centred]),
        rank=Interval.over([effective_rank(tokens) for tokens in texts]),
        centred_rank=Interval.over([effective_rank(tokens) for tokens in centred]),
        length=Interval.over([float(torch.linalg.vector_norm(tokens, dim=-1).mean()) for tokens in texts]),
    )


def mean_cosine(tokens: Float[Tensor, "n d"]) -> float:
    """Mean cosine over all pairs of different tokens."""
    unit = torch.nn.functional.normalize(tokens, dim=-1)
    n = len(unit)
    return float((unit.sum(dim=0).square().sum() - unit.square().sum()) / (n * (n - 1)))


def effective_rank(tokens: Float[Tensor, "n d"]) -> float:
    """Exponential of the entropy of the shares of squared singular values: n for orthogonal tokens, 1 for equal."""
    power = torch.linalg.svdvals(torch.nn.functional.normalize(tokens, dim=-1)).square()
    p = power / power.sum()
    return float(torch.exp(-(p * p.clamp_min(1e-300).log()).sum()))
