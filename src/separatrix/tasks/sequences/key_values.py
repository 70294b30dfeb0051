"""Recall of values by their keys, exact or paraphrased, out of a long stretch of other symbols."""

from __future__ import annotations

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import suggest_options

from .task import SequenceBatch, SequenceTask

IGNORED = -100
"""Target of a step whose answer does not count."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class KeyValues(SequenceTask):
    """Pairs of a key and a value at random places among fillers; then some keys are asked for.

    A pair is one symbol, so that one look back suffices. A question is a marker, a key and its value, which is to be
    foretold at the key. Every key has an alias: a question by alias is paraphrased, and answered only by who has
    learned which alias belongs to which key.

    Symbols: ``n_keys`` keys, as many aliases, ``n_values`` values, ``n_fillers`` fillers, one marker, and
    ``n_keys * n_values`` pairs.

    Args:
        n_haystack: symbols before the first question.
        n_pairs: pairs among them, each with another key.
        n_questions: questions, each for another pair.
        n_keys: different keys.
        n_values: different values.
        n_fillers: different fillers.
        paraphrased: share of questions asked by alias.
    """

    n_haystack: int = 48
    n_pairs: int = 6
    n_questions: int = 4
    n_keys: int = 16
    n_values: int = 16
    n_fillers: int = 16
    paraphrased: float = 0.5

    def __post_init__(self) -> None:
        for name in ("n_haystack", "n_pairs", "n_questions", "n_keys", "n_values", "n_fillers"):
            require_integer(getattr(self, name), name, at_least=1)
        if not 0 <= self.paraphrased <= 1:
            raise InvalidInput(f"paraphrased must be a share between 0 and 1; got {self.paraphrased!r}.")
        if self.n_pairs > self.n_haystack:
            raise InvalidInput(f"n_haystack must hold n_pairs = {self.n_pairs} pairs; got {self.n_haystack}.")
        if self.n_pairs > self.n_keys or self.n_questions > self.n_pairs:
            raise InvalidInput(
                f"n_pairs must be at most n_keys = {self.n_keys} and at least n_questions = {self.n_questions}; got "
                f"{self.n_pairs}."
            )

    @property
    def length(self) -> int:
        """Haystack, and three symbols a question."""
        return self.n_haystack + 3 * self.n_questions

    @property
    def n_inputs(self) -> int:
        """Different symbols."""
        return self._marker + 1 + self.n_keys * self.n_values

    @property
    def _marker(self) -> int:
        return 2 * self.n_keys + self.n_values + self.n_fillers

    @property
    def n_outputs(self) -> int:
        """Different symbols."""
        return self.n_inputs

    @property
    def baseline(self) -> float:
        """Values are guessed."""
        return math.log(self.n_values)

    def sample(self, n: int, *, generator: torch.Generator) -> SequenceBatch:
        """Draw ``n`` problems; ``oracle`` are the steps of all pairs."""
        return self.sample_at(n, None, generator=generator)

    def sample_at(self, n: int, place: int | None, *, generator: torch.Generator) -> SequenceBatch:
        """Draw ``n`` problems whose first question is for the pair at step ``place``.

        Args:
            n: number of problems.
            place: from 0 to ``n_haystack - 1``; anywhere if not given.
            generator: source of the draws.
        """
        n = require_integer(n, "n", at_least=1)
        places = self._places(n, place, generator)
        keys = torch.rand(n, self.n_keys, generator=generator).argsort(1)[:, : self.n_pairs]
        values = torch.randint(self.n_values, (n, self.n_pairs), generator=generator)
        fillers = torch.randint(self.n_fillers, (n, self.n_haystack), generator=generator)
        pairs = self._marker + 1 + keys * self.n_values + values
        inputs = (2 * self.n_keys + self.n_values + fillers).scatter(1, places, pairs)
        is_alias = torch.rand(n, self.n_questions, generator=generator) < self.paraphrased
        asked = keys[:, : self.n_questions] + self.n_keys * is_alias
        answers = 2 * self.n_keys + values[:, : self.n_questions]
        marker = torch.full_like(asked, self._marker)
        inputs = torch.cat([inputs, torch.stack([marker, asked, answers], 2).flatten(1)], 1)
        targets = torch.full_like(inputs, IGNORED)
        targets[:, self.n_haystack + 1 :: 3] = answers
        return SequenceBatch(inputs, targets, places)

    def _places(self, n: int, place: int | None, generator: torch.Generator) -> Int[Tensor, "batch pairs"]:
        """Steps of the pairs in random order, the first at ``place``."""
        order = torch.rand(n, self.n_haystack, generator=generator)
        if place is not None:
            place = require_integer(place, "place", at_least=0)
            if place >= self.n_haystack:
                raise InvalidInput(f"place must be below n_haystack = {self.n_haystack}; got {place}.")
            order[:, place] = -1.0
        return order.argsort(1)[:, : self.n_pairs]

    def loss(self, outputs: Float[Tensor, "batch t classes"], batch: SequenceBatch) -> Float[Tensor, ""]:
        """Cross entropy of the answers."""
        self.require_outputs(outputs, batch)
        return functional.cross_entropy(outputs.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED)

    def accuracy(self, outputs: Float[Tensor, "batch t classes"], batch: SequenceBatch) -> Float[Tensor, ""]:
        """Share of right answers."""
        self.require_outputs(outputs, batch)
        asked = batch.targets != IGNORED
        return (outputs.argmax(-1) == batch.targets)[asked].to(outputs.dtype).mean()
