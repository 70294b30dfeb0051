"""Tasks about a part of what is seen: colours that do not count, colours beside shapes, and sizes."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options

from .cognitive import AbstractGlyphTask, PatternTask
from .glyphs import GlyphSet, glyphs, random_colours
from .patterns import distinct_objects, draw_patterns
from .task import PARTS, Part, Problems, RelationalTask

Relevant: TypeAlias = Literal["shape", "colour"]
SIZES = (16, 24, 32)
"""Sides of small, medium and large glyphs in pixels; the source names none, these are ours."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class ColouredTask(RelationalTask):
    """A pattern task whose objects carry a second feature that does not count.

    An image is a glyph times a colour: the background takes the colour, ink stays black. Where the shape counts, every
    position draws its colour with replacement; where the colour counts, held-out objects are colours and every
    position draws its shape.

    Args:
        base: the task that the relevant feature obeys; its held-out objects are shapes, or colours.
        relevant: which feature the answer depends on.
        n_colours: of which there are as many as shapes if the colour counts.

    Source: kerg2022, section 5.4.3.

    Example:
        >>> task = ColouredTask(PatternTask("same_diff", 98))
        >>> index, label = task.train_batch(4)
        >>> bool(((task.symbols(index)[:, 0] == task.symbols(index)[:, 1]) == (label == 0)).all())
        True
    """

    base: PatternTask
    relevant: Relevant = "shape"
    n_colours: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.base, PatternTask):
            raise InvalidInput(f"base must be a PatternTask; got {type(self.base).__name__}.")
        choose("relevant", self.relevant, ("shape", "colour"))
        require_integer(self.n_colours, "n_colours", at_least=2)
        if self.relevant == "colour" and self.n_colours != self.base.n_pictures:
            raise InvalidInput(
                f"n_colours must be {self.base.n_pictures}, that of the objects of base; got {self.n_colours}."
            )

    @property
    def name(self) -> str:
        """That of the base with what counts."""
        return f"{self.base.name}_colour" if self.relevant == "shape" else f"{self.base.name}_by_colour"

    @property
    def seq_len(self) -> int:
        """That of the base."""
        return self.base.seq_len

    @property
    def n_answers(self) -> int:
        """That of the base."""
        return self.base.n_answers

    @property
    def groups(self) -> tuple[int, ...]:
        """Those of the base."""
        return self.base.groups

    def marked(self, label: int) -> range:
        """As in the base."""
        return self.base.marked(label)

    @property
    def n_pictures(self) -> int:
        """Every shape in every colour."""
        return len(self.base.glyph_set) * self.n_colours

    def ids(self, part: Part) -> Int[Tensor, " k"]:
        """Every object of the part with every value of the other feature."""
        objects = self.base.ids(part)
        other = torch.arange(self.n_colours if self.relevant == "shape" else len(self.base.glyph_set))
        first, second = torch.meshgrid(objects, other, indexing="ij")
        return self._index(first, second).flatten()

    def _index(self, objects: Tensor, other: Tensor) -> Tensor:
        shape, colour = (objects, other) if self.relevant == "shape" else (other, objects)
        return shape * self.n_colours + colour

    def pictures(self, ids: Int[Tensor, " k"]) -> Float[Tensor, "k 3 h w"]:
        """Glyphs times colours."""
        colours = random_colours(self.n_colours)[ids % self.n_colours]
        shape = torch.div(ids, self.n_colours, rounding_mode="floor")
        return self.base.glyph_set.images[shape] * colours[:, :, None, None]

    def symbols(self, index: Int[Tensor, "*batch t"]) -> Int[Tensor, "*batch t"]:
        """Shapes, or colours."""
        if self.relevant == "colour":
            return index % self.n_colours
        return torch.div(index, self.n_colours, rounding_mode="floor")

    def problems(self, part: Part, size: int, *, generator: torch.Generator) -> Problems:
        """Problems of the base with the other feature drawn at every position."""
        drawn = self.base.problems(part, size, generator=generator)
        n_other = self.n_colours if self.relevant == "shape" else len(self.base.glyph_set)
        other = torch.randint(n_other, drawn.index.shape, generator=generator)
        return dataclasses.replace(drawn, index=self._index(drawn.index, other))


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class SeparatedTask(AbstractGlyphTask):
    """Shape, colour, shape, colour, each an image of its own: are the two shapes the same?

    Colour patches are constant images, drawn with replacement from the same colours in training and test.

    Args:
        holdout: m, shapes that occur in the test alone.
        seed: of the choice of held-out shapes.
        glyph_set: the shapes; 100 procedural ones by default.
        n_colours: how many patches there are.

    Source: kerg2022, appendix C.6.
    """

    holdout: int = 0
    seed: int = 0
    glyph_set: GlyphSet = dataclasses.field(default_factory=glyphs)
    n_colours: int = 100

    def __post_init__(self) -> None:
        require_integer(self.n_colours, "n_colours", at_least=2)
        self._settle(2, 2)

    def __repr__(self) -> str:
        how = f"holdout={self.holdout}, seed={self.seed}, n_colours={self.n_colours}"
        return f"SeparatedTask({how}, {self.glyph_set.name})"

    name = property(lambda self: "same_diff_separated", doc="``same_diff_separated``.")
    seq_len = property(lambda self: 4, doc="Two shapes and two colours.")
    n_answers = property(lambda self: 2, doc="Same or different.")
    groups = property(lambda self: (2, 2), doc="Each shape with its colour.")

    @property
    def n_pictures(self) -> int:
        """Shapes, then patches."""
        return len(self.glyph_set) + self.n_colours

    def least(self, part: Part) -> int:
        """Two."""
        return 2

    def ids(self, part: Part) -> Int[Tensor, " k"]:
        """Shapes of the part and all patches."""
        choose("part", part, PARTS)
        shapes = self.split.train if part == "train" else self.split.test
        return torch.cat([shapes, len(self.glyph_set) + torch.arange(self.n_colours)])

    def pictures(self, ids: Int[Tensor, " k"]) -> Float[Tensor, "k 3 h w"]:
        """Glyphs, or constant images."""
        side = self.glyph_set.images.shape[-1]
        patches = random_colours(self.n_colours)[:, :, None, None].expand(-1, -1, side, side)
        return torch.cat([self.glyph_set.images, patches])[ids]

    def problems(self, part: Part, size: int, *, generator: torch.Generator) -> Problems:
        """Half of the problems have equal shapes."""
        pattern, equal = draw_patterns([1, 1], size, generator=generator)
        shapes = self.split.train if part == "train" else self.split.test
        objects = distinct_objects(size, 2, shapes, generator=generator)
        second = objects.gather(1, pattern.unsqueeze(1)).squeeze(1)
        patches = len(self.glyph_set) + torch.randint(self.n_colours, (size, 2), generator=generator)
        index = torch.stack([objects[:, 0], patches[:, 0], second, patches[:, 1]], dim=1)
        return Problems(index, pattern.clone(), pattern, ("same", "different"), equal)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class ComparisonTask(AbstractGlyphTask):
    """One shape in two sizes: which of the two pictures shows the larger one?

    Args:
        holdout: m, shapes that occur in the test alone.
        transitive: train on neighbouring sizes (small and medium, medium and large), test on small and large.
        seed: of the choice of held-out shapes.
        glyph_set: the shapes; 100 procedural ones by default.

    Source: kerg2022, section 7.2. Sizes of 16, 24 and 32 pixels are ours: the source names none.
    """

    holdout: int = 95
    transitive: bool = False
    seed: int = 0
    glyph_set: GlyphSet = dataclasses.field(default_factory=glyphs)

    def __post_init__(self) -> None:
        self._settle(1, 1)

    def __repr__(self) -> str:
        how = f"holdout={self.holdout}, transitive={self.transitive}, seed={self.seed}"
        return f"ComparisonTask({how}, {self.glyph_set.name})"

    seq_len = property(lambda self: 2, doc="Two pictures.")
    n_answers = property(lambda self: 2, doc="The first or the second.")

    @property
    def name(self) -> str:
        """``comparison`` or ``comparison_transitive``."""
        return "comparison_transitive" if self.transitive else "comparison"

    def marked(self, label: int) -> range:
        """The larger one."""
        return range(label, label + 1)

    @property
    def n_pictures(self) -> int:
        """Every shape in three sizes."""
        return len(self.glyph_set) * len(SIZES)

    def least(self, part: Part) -> int:
        """One."""
        return 1

    def ids(self, part: Part) -> Int[Tensor, " k"]:
        """Shapes of the part in the sizes that the part shows."""
        choose("part", part, PARTS)
        shapes = self.split.train if part == "train" else self.split.test
        sizes = torch.tensor(sorted({size for pair in self.pairs(part) for size in pair}))
        return (shapes.unsqueeze(1) * len(SIZES) + sizes).flatten()

    def pairs(self, part: Part) -> tuple[tuple[int, int], ...]:
        """Pairs of sizes that a part shows, as places in ``SIZES``."""
        if self.transitive and part == "train":
            return ((1, 2), (2, 1), (0, 1), (1, 0))
        return ((0, 2), (2, 0))

    def pictures(self, ids: Int[Tensor, " k"]) -> Float[Tensor, "k 3 h w"]:
        """Glyphs made smaller, in the middle of a white image."""
        shape = torch.div(ids, len(SIZES), rounding_mode="floor")
        images = self.glyph_set.images[shape].clone()
        for place, side in enumerate(SIZES):
            chosen = ids % len(SIZES) == place
            if bool(chosen.any()):
                images[chosen] = resized(images[chosen], side)
        return images

    def problems(self, part: Part, size: int, *, generator: torch.Generator) -> Problems:
        """One shape a problem, its pair of sizes equally often each."""
        pairs = self.pairs(part)
        pattern, equal = draw_patterns([1] * len(pairs), size, generator=generator)
        shapes = self.split.train if part == "train" else self.split.test
        shape = shapes[torch.randint(len(shapes), (size, 1), generator=generator)]
        sizes = torch.tensor(pairs)[pattern]
        words = ("small", "medium", "large")
        names = tuple(f"{words[a]}, {words[b]}" for a, b in pairs)
        return Problems(shape * len(SIZES) + sizes, sizes.argmax(1), pattern, names, equal)


def resized(images: Float[Tensor, "k 3 h w"], side: int) -> Float[Tensor, "k 3 h w"]:
    """Images made smaller (bilinear, antialiased) in the middle of a white canvas of the old size."""
    full = images.shape[-1]
    small = functional.interpolate(images, size=(side, side), mode="bilinear", antialias=True, align_corners=False)
    before = (full - side) // 2
    after = full - side - before
    return functional.pad(small.clamp(0, 1), (before, after, before, after), value=1.0)
