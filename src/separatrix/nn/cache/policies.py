"""Eviction policies: relevancy screening and the caches of others, as points of one interface."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.arrays import as_tensor
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import choose, resolve, suggest_options
from separatrix.core.scalars import in_words

from ..memory.keeping.policies import NORMALISATIONS, SCREENINGS
from ..memory.keeping.screening import AbstractScreening
from .borrowed import BorrowedEviction
from .eviction import AbstractEviction, CacheSight
from .played import PlayedScreening


class _AttentionSums(AbstractEviction):
    """Attention received, summed over the queries that count."""

    normalise: str

    @abc.abstractmethod
    def counted(self, sight: CacheSight) -> Bool[Tensor, "batch heads q k"]:
        """Which query counts for which key."""

    @abc.abstractmethod
    def terms_before(self, sight: CacheSight) -> Tensor:
        """How many queries counted for each key before these."""

    def observe(self, sight: CacheSight) -> None:
        """Add the attention of the queries that count."""
        counted = self.counted(sight)
        gained = torch.where(counted, sight.weights, 0.0)
        if self.normalise == "share":
            gained = gained * sight.visible.sum(-1, keepdim=True)
        total = gained.sum(2).to(sight.scores.dtype)
        if self.normalise == "mean":
            before, new = self.terms_before(sight).to(total.dtype), counted.sum(2).to(total.dtype)
            changed = (sight.scores * before + total) / (before + new).clamp_min(1)
            sight.scores.copy_(torch.where(new > 0, changed, sight.scores))
        else:
            sight.scores.add_(total)

    def _steps_before(self, sight: CacheSight) -> Tensor:
        """Queries that each key met before these, itself among them."""
        real = (sight.queries >= 0).sum(1)
        return (sight.newest - real + 1).unsqueeze(1).unsqueeze(2) - sight.positions


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class ScreenedKeys(_AttentionSums):
    """Relevancy screening: attention received while in the buffer, judged once on leaving it, then fixed.

    Args:
        normalise: ``"none"``; ``"share"``: times the number of keys a query could see, so that an even share counts 1
            and early keys have no advantage; ``"mean"``: divided by the number of queries that counted.

    Source: kerg2022, section 4.5, Algorithm 1; the policy ``AttentionSum`` of the recurrent networks.
    """

    normalise: str = "none"
    name = "screening"

    def __post_init__(self) -> None:
        choose("normalise", self.normalise, NORMALISATIONS)

    def counted(self, sight: CacheSight) -> Bool[Tensor, "batch heads q k"]:
        """Queries less than ``n_buffer`` steps away."""
        return sight.visible & (sight.ages < sight.n_buffer)

    def terms_before(self, sight: CacheSight) -> Tensor:
        """At most as many as the buffer has places."""
        return self._steps_before(sight).clamp(0, sight.n_buffer)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class HeavyHitterKeys(_AttentionSums):
    """H2O: attention received since the beginning; kept keys go on collecting and are ranked anew at every step.

    Args:
        normalise: as for ``ScreenedKeys``.
    """

    normalise: str = "none"
    name = "heavy_hitter"

    def __post_init__(self) -> None:
        choose("normalise", self.normalise, NORMALISATIONS)

    def counted(self, sight: CacheSight) -> Bool[Tensor, "batch heads q k"]:
        """All queries."""
        return sight.visible

    def terms_before(self, sight: CacheSight) -> Tensor:
        """All since the key."""
        return self._steps_before(sight).clamp_min(0)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class LastQueryKeys(AbstractEviction):
    """TOVA: the attention of the newest query alone decides.

    The published form has no buffer: ``n_buffer=1`` and the rest of the budget in ``n_relevant``. It also averages over
    all heads of a layer; here every key head judges for itself.
    """

    name = "tova"

    def observe(self, sight: CacheSight) -> None:
        """The score is the last weight."""
        sight.scores.copy_(sight.weights[:, :, -1])


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class FirstKeys(AbstractEviction):
    """Attention sinks (StreamingLLM): the first keys stay for ever beside the window.

    The published form gives kept keys new positions inside the window; here they keep their true ones.
    """

    name = "sinks"

    def observe(self, sight: CacheSight) -> None:
        """The earlier, the better."""
        sight.scores.copy_(-sight.positions)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class NewestKeys(AbstractEviction):
    """A plain window of ``n_buffer + n_relevant`` keys."""

    name = "window"

    def observe(self, sight: CacheSight) -> None:
        """The later, the better."""
        sight.scores.copy_(sight.positions)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class AppendOnlyKeys(AbstractEviction):
    """What is admitted stays for ever, and once all places are taken nobody else is admitted.

    A key is admitted on leaving the buffer if the mean attention it received there, times the number of keys each
    query could see, reaches a threshold.

    Args:
        threshold: 1 is an even share; 0 admits everybody, which makes it ``FirstKeys``.
    """

    threshold: float = 1.0
    name = "append_only"

    def __post_init__(self) -> None:
        number = isinstance(self.threshold, int | float) and not isinstance(self.threshold, bool)
        if not number or not 0 <= self.threshold < float("inf"):
            raise InvalidInput(f"threshold must be a number of at least 0; got {in_words(self.threshold)}.")

    def observe(self, sight: CacheSight) -> None:
        """Collect shares in the buffer; judge who has met all its queries: below 0 admitted, the earlier the higher."""
        counted = sight.visible & (sight.ages < sight.n_buffer)
        gained = torch.where(counted, sight.weights, 0.0) * sight.visible.sum(-1, keepdim=True)
        undecided = sight.scores >= 0
        total = sight.scores + gained.sum(2).to(sight.scores.dtype)
        is_over = sight.newest[:, None, None] - sight.positions >= sight.n_buffer - 1
        verdict = torch.where(total >= self.threshold * sight.n_buffer, -1.0 - sight.positions, -torch.inf)
        judged = torch.where(is_over, verdict.to(total.dtype), total)
        sight.scores.copy_(torch.where(undecided & (sight.positions >= 0), judged, sight.scores))


@final
@suggest_options
@dataclasses.dataclass(frozen=True, eq=False)
class GivenKeyScores(AbstractEviction):
    """Scores from outside, one per position: an oracle, a gradient, whatever is known.

    Args:
        given_scores: (t,) or (batch, t); positions beyond its end have score 0. Booleans mark what to keep.
    """

    given_scores: Float[Tensor, "*batch t"] | Bool[Tensor, "*batch t"]
    name = "given"

    def __post_init__(self) -> None:
        given = torch.as_tensor(self.given_scores)
        scores = as_tensor(given.to(torch.float64) if given.dtype == torch.bool else given, "given_scores")
        if scores.ndim not in (1, 2) or not scores.numel():
            raise ShapeError(f"given_scores must be (t,) or (batch, t) and not empty; got {tuple(scores.shape)}.")
        object.__setattr__(self, "given_scores", torch.atleast_2d(scores.detach()))

    def observe(self, sight: CacheSight) -> None:
        """Look up every key."""
        batch, n_heads, _ = sight.positions.shape
        n_given, length = self.given_scores.shape
        if n_given not in (1, batch):
            raise ShapeError(f"given_scores is for {n_given} sequences; got a batch of {batch}.")
        table = self.given_scores.to(sight.scores)[:, None].expand(batch, n_heads, length)
        found = table.gather(2, sight.positions.clamp(0, length - 1))
        sight.scores.copy_(torch.where(sight.positions < length, found, 0.0))


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class ScoredBy(AbstractEviction):
    """A function as a policy: the thin adapter for scores of other libraries.

    Args:
        score: from ``CacheSight`` to the new scores, (batch, heads, k).

    Example:
        >>> short_keys = ScoredBy(lambda sight: -sight.keys.norm(dim=-1))
    """

    score: Callable[[CacheSight], Tensor]
    name = "scored_by"

    def __post_init__(self) -> None:
        if not callable(self.score):
            raise InvalidInput(f"score must be a function of a CacheSight; got {in_words(self.score)}.")

    def observe(self, sight: CacheSight) -> None:
        """Ask the function."""
        found = self.score(sight)
        is_score = isinstance(found, Tensor) and found.shape == sight.scores.shape and not found.is_complex()
        if not is_score or bool(found.isnan().any()):
            what = (
                f"{found.dtype} of shape {tuple(found.shape)}, or NaN" if isinstance(found, Tensor) else in_words(found)
            )
            raise ShapeError(f"score must return real numbers of shape {tuple(sight.scores.shape)}; got {what}.")
        sight.scores.copy_(found.detach())


EVICTIONS: Mapping[str, AbstractEviction] = {
    "screening": ScreenedKeys(),
    "heavy_hitter": HeavyHitterKeys(),
    "tova": LastQueryKeys(),
    "sinks": FirstKeys(),
    "window": NewestKeys(),
    "append_only": AppendOnlyKeys(),
}


def find_eviction(policy: Any, normalise: str) -> AbstractEviction:
    """The policy that two arguments mean.

    Names are those of ``EVICTIONS``, then those of ``separatrix.nn.SCREENINGS``, which are played query by query.
    """
    choose("normalise", normalise, NORMALISATIONS)
    if isinstance(policy, AbstractScreening):
        policy = PlayedScreening(policy)
    if not isinstance(policy, AbstractEviction | type) and callable(getattr(policy, "observe", None)):
        policy = BorrowedEviction(policy)
    others = {name: PlayedScreening(known) for name, known in SCREENINGS.items() if name not in EVICTIONS}
    found = resolve("policy", policy, {**others, **EVICTIONS}, base=AbstractEviction)
    if normalise == "none":
        return found
    if not isinstance(found, ScreenedKeys | HeavyHitterKeys) or found.normalise != "none":
        raise InvalidInput(
            f"normalise={normalise!r} is for the policies 'screening' and 'heavy_hitter'; leave it out with "
            f"policy={found.name!r}."
        )
    return dataclasses.replace(found, normalise=normalise)
