"""The cognitive tasks: sequences of single objects, made by patterns or by permutations."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Literal, TypeAlias, final

import numpy
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, resolve, suggest_options

from .designs import DESIGNS
from .glyphs import GlyphSet, glyphs
from .patterns import Design, distinct_objects, draw_patterns, fill
from .splits import Split
from .task import PARTS, Part, Problems, RelationalTask

Direction: TypeAlias = Literal["preserving", "non_preserving"]
DIRECTIONS: tuple[Direction, ...] = ("preserving", "non_preserving")
MOST_POSITIONS = 300


def require_holdout(name: str, n: int, m: object, least_train: int, least_test: int) -> int:
    """``m`` if both parts have shapes enough; otherwise a sentence with both minima and the largest m."""
    largest = n - least_train
    rule = (
        f"{name} needs at least {least_train} shapes in training and {least_test} in the test, so of {n} shapes "
        f"holdout may be 0 or {least_test} to {largest}"
    )
    if n < max(least_train, least_test):
        raise InvalidInput(f"{name} needs at least {max(least_train, least_test)} shapes; there are {n}.")
    whole = not isinstance(m, bool) and isinstance(m, int | numpy.integer)
    if not whole or (m != 0 and not least_test <= m <= largest):  # type: ignore[operator]
        raise InvalidInput(f"{rule}; got {m!r}.")
    return int(m)  # type: ignore[call-overload]


class AbstractGlyphTask(RelationalTask):
    """A task whose pictures are glyphs, some of which are held out.

    For implementers: beside what a relational task needs, ``least`` shapes of each part.
    """

    holdout: int
    seed: int
    glyph_set: GlyphSet

    @abc.abstractmethod
    def least(self, part: Part) -> int:
        """Shapes that a part needs."""

    @property
    def split(self) -> Split:
        """Which shapes are held out."""
        return Split(len(self.glyph_set), self.holdout, self.seed)

    @property
    def n_pictures(self) -> int:
        """As many as there are shapes."""
        return len(self.glyph_set)

    def ids(self, part: Part) -> Int[Tensor, " k"]:
        """Shapes of a part."""
        choose("part", part, PARTS)
        return self.split.train if part == "train" else self.split.test

    def pictures(self, ids: Int[Tensor, " k"]) -> Float[Tensor, "k 3 h w"]:
        """Glyphs by number."""
        return self.glyph_set.images[ids]

    def _settle(self, least_train: int, least_test: int) -> None:
        """Check the number of held-out shapes, once both minima are known."""
        held = require_holdout(self.name, len(self.glyph_set), self.holdout, least_train, least_test)
        object.__setattr__(self, "holdout", held)
        Split(len(self.glyph_set), self.holdout, self.seed)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class PatternTask(AbstractGlyphTask):
    """Problems made by the patterns of a design.

    Args:
        design: a name (``"same_diff"``, ``"rmts"``, ``"dist3"``, ``"identity_rules"``, ...) or a design of yours.
        holdout: m, shapes that occur in the test alone; 0 shows all of them in both parts.
        seed: of the choice of held-out shapes.
        glyph_set: the shapes; 100 procedural ones by default.

    Source: kerg2022, section 5.4 and appendix C.

    Example:
        >>> task = PatternTask("identity_rules", 95)
        >>> index, label = task.train_batch(6)
        >>> index.shape, len(task.ids("train"))
        (torch.Size([6, 9]), 5)
    """

    design: Design | str
    holdout: int = 0
    seed: int = 0
    glyph_set: GlyphSet = dataclasses.field(default_factory=glyphs)

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", resolve("design", self.design, DESIGNS, base=Design))
        self._settle(self.least("train"), self.least("test"))

    def __repr__(self) -> str:
        return f"PatternTask({self.name!r}, holdout={self.holdout}, seed={self.seed}, {self.glyph_set.name})"

    @property
    def plan(self) -> Design:
        """The design as an object."""
        assert isinstance(self.design, Design)
        return self.design

    @property
    def name(self) -> str:
        """Of the design."""
        return self.plan.name

    @property
    def seq_len(self) -> int:
        """T, choices included."""
        return self.plan.seq_len

    @property
    def n_answers(self) -> int:
        """Of the design."""
        return self.plan.n_answers

    def least(self, part: Part) -> int:
        """Distinct objects of the largest pattern."""
        return self.plan.n_objects(part)

    @property
    def groups(self) -> tuple[int, ...]:
        """Of the design."""
        return self.plan.groups

    def marked(self, label: int) -> range:
        """Of the design."""
        return self.plan.marked(label)

    def problems(self, part: Part, size: int, *, generator: torch.Generator) -> Problems:
        """Draw problems; patterns are equally frequent, or as their weights say."""
        ids, patterns = self.ids(part), self.plan.patterns(part)
        pattern, equal = draw_patterns([one.weight for one in patterns], size, generator=generator)
        objects = distinct_objects(size, self.least(part), ids, generator=generator)
        index, label = fill(patterns, pattern, objects, self.plan.choices, generator=generator)
        return Problems(index, label, pattern, tuple(one.name for one in patterns), equal)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class DistributionOfN(AbstractGlyphTask):
    """N objects, the first N - 1 of a permutation of them, then N + 1 choices: which one is missing?

    With a direction, permutations of training and test differ by whether they map the first N - 3 places to
    themselves.

    Args:
        n: N.
        holdout: m, shapes that occur in the test alone.
        train: ``"preserving"`` trains on those that do (as the text says), ``"non_preserving"`` on the others (as the
            public code does); ``None`` uses all permutations in both parts.
        seed: of the choice of held-out shapes.
        glyph_set: the shapes; 100 procedural ones by default.

    Source: kerg2022, appendix C.4, with erratum ``kerg2022-restricted-permutations``.

    Example:
        >>> DistributionOfN(4, train="preserving").train_batch(2)[0].shape
        torch.Size([2, 12])
    """

    n: int = 10
    holdout: int = 0
    train: Direction | None = None
    seed: int = 0
    glyph_set: GlyphSet = dataclasses.field(default_factory=glyphs)

    def __post_init__(self) -> None:
        require_integer(self.n, "n", at_least=3)
        if 3 * self.n > MOST_POSITIONS:
            raise InvalidInput(
                f"n must be at most {MOST_POSITIONS // 3}: relations of {3 * self.n} positions take "
                f"{9 * self.n * self.n} numbers a problem; got {self.n}."
            )
        if self.train is not None:
            choose("train", self.train, DIRECTIONS)
            if self.n < 4:
                raise InvalidInput(f"n must be at least 4 where permutations are restricted; got {self.n}.")
        self._settle(self.n + 1, self.n + 1)

    def __repr__(self) -> str:
        how = f"holdout={self.holdout}, train={self.train}, seed={self.seed}"
        return f"DistributionOfN({self.n}, {how}, {self.glyph_set.name})"

    @property
    def name(self) -> str:
        """``"dist10"``, with the direction of training if there is one."""
        return f"dist{self.n}" + (f"_{self.train}" if self.train else "")

    @property
    def seq_len(self) -> int:
        """3 N."""
        return 3 * self.n

    @property
    def n_answers(self) -> int:
        """N + 1."""
        return self.n + 1

    @property
    def groups(self) -> tuple[int, ...]:
        """The objects, the permutation without its last, the choices."""
        return (self.n, self.n - 1, self.n + 1)

    def marked(self, label: int) -> range:
        """The right choice."""
        place = 2 * self.n - 1 + label
        return range(place, place + 1)

    @property
    def baseline(self) -> float:
        """The distractor is never right, but stands anywhere: all places are equally likely."""
        return math.log(self.n_answers)

    def least(self, part: Part) -> int:
        """N and a distractor."""
        return self.n + 1

    def problems(self, part: Part, size: int, *, generator: torch.Generator) -> Problems:
        """Draw problems, permutations uniform among those of the part."""
        ids = self.ids(part)
        preserving = None if self.train is None else (self.train == "preserving") == (part == "train")
        order = permutations(size, self.n, preserving, generator=generator)
        objects = distinct_objects(size, self.n + 1, ids, generator=generator)
        shuffle = torch.rand(size, self.n + 1, generator=generator).argsort(1)
        label = (shuffle == order[:, -1:]).to(torch.int64).argmax(1)
        rows = [objects[:, : self.n], objects.gather(1, order[:, :-1]), objects.gather(1, shuffle)]
        pattern = preserves(order).to(torch.int64)
        return Problems(torch.cat(rows, 1), label, pattern, ("not preserving", "preserving"), False)


def preserves(order: Int[Tensor, "*batch n"]) -> Bool[Tensor, "*batch"]:
    """Whether a permutation maps the first n - 3 places to themselves, as a set."""
    return (order[..., :-3] < order.shape[-1] - 3).all(-1)


def permutations(size: int, n: int, preserving: bool | None, *, generator: torch.Generator) -> Int[Tensor, "batch {n}"]:
    """Uniform permutations: all, or those that map the first n - 3 places to themselves, or the others."""
    if preserving:
        parts = [torch.rand(size, k, generator=generator).argsort(1) for k in (n - 3, 3)]
        return torch.cat([parts[0], parts[1] + n - 3], 1)
    order = torch.rand(size, n, generator=generator).argsort(1)
    while preserving is False and bool((wrong := preserves(order)).any()):  # at most a quarter of them, at n = 4
        order[wrong] = torch.rand(int(wrong.sum()), n, generator=generator).argsort(1)
    return order
