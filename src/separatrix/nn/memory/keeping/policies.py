"""Screening policies: what makes a state worth keeping when it leaves the short buffer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from separatrix.core.arrays import as_tensor, require_integer, require_positive
from separatrix.core.errors import InvalidInput, ShapeError
from separatrix.core.names import choose, resolve, suggest_options

from .screening import AbstractScreening, Sight

NORMALISATIONS = ("none", "share", "mean")


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class AttentionSum(AbstractScreening):
    """Attention received while in the buffer, summed: the policy of the document.

    Args:
        normalise: ``"none"``; ``"share"``: times the number of states attended to, so that an even share counts 1 and
            early states, whose memories are small, have no advantage; ``"mean"``: divided by the number of steps seen,
            which every state that leaves has in common, so that the same states are kept as with ``"none"``.

    Source: kerg2022, section 4.5.
    """

    normalise: str = "none"
    name = "attention"

    def __post_init__(self) -> None:
        choose("normalise", self.normalise, NORMALISATIONS)

    def observe(self, sight: Sight) -> None:
        """Add the weights of the buffered states."""
        weights, scores = sight.weights[:, : sight.n_buffer], sight.scores[:, : sight.n_buffer]
        if self.normalise == "none":
            scores.add_(weights)
        elif self.normalise == "share":
            scores.add_(weights * sight.present.sum(1, keepdim=True))
        else:
            now = sight.index[:, sight.newest, None]
            terms = (now - sight.index[:, : sight.n_buffer] + 1).to(scores.dtype)
            scores.add_((weights - scores) / terms)  # running mean


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class AttentionMax(AbstractScreening):
    """The largest attention received while in the buffer."""

    name = "attention_max"

    def observe(self, sight: Sight) -> None:
        """Raise the scores to the weights."""
        scores = sight.scores[:, : sight.n_buffer]
        torch.maximum(scores, sight.weights[:, : sight.n_buffer], out=scores)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class HeavyHitter(AbstractScreening):
    """Attention received since the beginning: kept states go on collecting, and may be overtaken."""

    name = "heavy_hitter"
    rescores_kept = True

    def observe(self, sight: Sight) -> None:
        """Add the weights everywhere; an empty place stays at minus infinity."""
        sight.scores.add_(sight.weights)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Recency(AbstractScreening):
    """Keeps the first states for ever: nothing is ever better."""

    name = "recency"

    def observe(self, sight: Sight) -> None:
        """All scores stay 0."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Fifo(AbstractScreening):
    """Keeps the states that left the buffer last: a longer window."""

    name = "fifo"

    def observe(self, sight: Sight) -> None:
        """The score is the time."""
        sight.scores[:, sight.newest] = sight.index[:, sight.newest].to(sight.scores.dtype)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class RandomChoice(AbstractScreening):
    """Keeps a random set: every past state is in it with the same probability (reservoir sampling by random scores).

    Args:
        seed: of the draws; each sample of a batch has the same ones, so that it does not depend on its batch.
    """

    seed: int = 0
    name = "random"

    def __post_init__(self) -> None:
        require_integer(self.seed, "seed", at_least=0)

    def observe(self, sight: Sight) -> None:
        """The newest state gets a random score, which follows from seed and step alone."""
        sight.scores[:, sight.newest] = _scrambled(sight.index[:, sight.newest], self.seed).to(sight.scores)


def _scrambled(steps: Tensor, seed: int) -> Tensor:
    """A number in [0, 1) for each step: three rounds of multiplying and folding the upper bits down (SplitMix64).

    Nothing is kept from step to step, so that a memory carried into the next window finds fresh draws there.
    """
    mixed = steps.to(torch.int64) * -7046029254386353131 + (seed + 1) * 2862933555777941757 % 2**62
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        mixed = (mixed ^ _shifted(mixed, shift)) * factor
    return _shifted(mixed ^ _shifted(mixed, 31), 11).to(torch.float64) / 2**53


def _shifted(numbers: Tensor, n_bits: int) -> Tensor:
    """To the right, zeros filled in."""
    return (numbers >> n_bits) & (2 ** (64 - n_bits) - 1)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Norm(AbstractScreening):
    """Keeps long states: the score is the length of the hidden state."""

    name = "norm"
    needs_states = True

    def observe(self, sight: Sight) -> None:
        """Length of the newest state."""
        assert sight.hidden is not None
        sight.scores[:, sight.newest] = sight.hidden[:, sight.newest].norm(dim=-1)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Surprise(AbstractScreening):
    """Keeps states after which the input was not foreseen.

    A linear map, learned along the sequence and for each sample by itself (normalised least mean squares), predicts
    the next input from the hidden state; the score is the squared error of that prediction.

    Args:
        lr: learning rate of the map, between 0 and 2.
    """

    lr: float = 0.5
    name = "surprise"
    needs_states = True

    def __post_init__(self) -> None:
        if require_positive(self.lr, "lr") >= 2:
            raise InvalidInput(f"lr must lie between 0 and 2, beyond which the map diverges; got {self.lr}.")

    def begin(self, batch: int, like: Tensor) -> Any:
        """The map, once sizes are known, and the state before."""
        return {}

    def observe(self, sight: Sight) -> None:
        """Score the state before the newest one by how well it foresaw this input."""
        assert sight.hidden is not None
        if sight.entering is None:
            raise InvalidInput("the policy 'surprise' needs the inputs of the network; there are none here.")
        now, own = sight.hidden[:, sight.newest], sight.own
        if own:
            error = sight.entering - torch.einsum("bmh,bh->bm", own["map"], own["state"])
            if sight.n_buffer > 1:  # with a buffer of one, it has left already
                sight.scores[:, own["place"]] = error.square().sum(-1)
            size = own["state"].square().sum(-1).clamp_min(torch.finfo(error.dtype).tiny)
            own["map"].add_(torch.einsum("bm,bh->bmh", error, own["state"]) * (self.lr / size)[:, None, None])
        else:
            own["map"] = now.new_zeros(len(now), sight.entering.shape[1], now.shape[1])
        own["state"], own["place"] = now.clone(), sight.newest


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class GivenScores(AbstractScreening):
    """Scores from outside, one per step: lengths of gradients of an earlier epoch, or whatever else is known.

    Args:
        given_scores: (t,) or (batch, t); steps beyond its end have score 0.
    """

    given_scores: Float[Tensor, "*batch t"]
    name = "gradient"

    def __post_init__(self) -> None:
        scores = as_tensor(self.given_scores, "given_scores")
        if scores.ndim not in (1, 2):
            raise ShapeError(f"given_scores must be (t,) or (batch, t); got {tuple(scores.shape)}.")
        object.__setattr__(self, "given_scores", torch.atleast_2d(scores.detach()))

    def observe(self, sight: Sight) -> None:
        """Look up the newest state."""
        if self.given_scores.shape[0] not in (1, len(sight.index)):
            raise ShapeError(
                f"given_scores is for {self.given_scores.shape[0]} sequences; got a batch of {len(sight.index)}."
            )
        steps = sight.index[:, sight.newest, None]
        table = self.given_scores.to(sight.scores).expand(len(steps), -1)
        found = table.gather(1, steps.clamp_max(table.shape[1] - 1))
        sight.scores[:, sight.newest] = torch.where(steps < table.shape[1], found, 0.0).squeeze(1)


def Oracle(relevant: Bool[Tensor, "*batch t"]) -> GivenScores:
    """The policy that is told: keeps the steps that are marked, as an upper bound for all others.

    Args:
        relevant: which steps matter, (t,) or (batch, t); for the copy task the symbols.

    Example:
        >>> from separatrix.nn import replay
        >>> marked = torch.arange(30) < 10
        >>> replay([1.0] * 30, 3, 10, screening=Oracle(marked)).relevant[-1]
        (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    """
    marks = torch.as_tensor(relevant)
    if marks.dtype != torch.bool:
        raise InvalidInput(f"relevant must be boolean, one mark a step; got {marks.dtype}.")
    return GivenScores(marks.to(torch.float64))


SCREENINGS: Mapping[str, AbstractScreening] = {
    "attention": AttentionSum(),
    "attention_share": AttentionSum("share"),
    "attention_mean": AttentionSum("mean"),
    "attention_max": AttentionMax(),
    "recency": Recency(),
    "fifo": Fifo(),
    "random": RandomChoice(),
    "norm": Norm(),
    "surprise": Surprise(),
    "heavy_hitter": HeavyHitter(),
}


def find_screening(screening: object, normalise: str) -> AbstractScreening:
    """The policy that two arguments mean: attention under a normalisation, or another policy by name or as it is."""
    choose("normalise", normalise, NORMALISATIONS)
    if screening is None:
        return AttentionSum(normalise)
    found = resolve("screening", screening, SCREENINGS, base=AbstractScreening)
    if normalise != "none":
        raise InvalidInput(
            f"normalise={normalise!r} is for the usual policy; leave it out with screening={found.name!r}."
        )
    return found
