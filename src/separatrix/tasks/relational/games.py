"""The relational games: boards of nine cells, trained on pentominoes and asked on families never seen."""

from __future__ import annotations

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, resolve, suggest_options

from .game_rules import N_CELLS, RULES, Rule
from .patterns import draw_patterns
from .polyominoes import FAMILIES, Family, all_cells, as_pictures, first_cell, objects, to_canvas
from .task import PARTS, Part, Problems, RelationalTask


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class GameTask(RelationalTask):
    """A rule about objects in a 3 x 3 arrangement; a problem is its nine cells, blank ones included.

    Args:
        rule: ``"same"``, ``"between"``, ``"between_strict"``, ``"occurs"``, ``"xoccurs"``, ``"row_matching"``,
            ``"colour_shape"``, ``"left_of"``, or a pattern in a column, ``"column_aba"``, ``"column_aab"`` or
            ``"column_abb"``, of which there are public files.
        test: the family of the test; colours of shapes are not asked of stripes, which have one shape.
        train: the family of training.

    Source: kerg2022, section 5.4 and appendix C.2; canvases as measured on the public sample files. Shares of the kinds
    of wrong cases are ours (``Rule.kinds``), those of ``"between"`` follow the public files (in which
    three equal objects on a line, 3 boards of 10,000, count as between; here the middle one always differs).

    Example:
        >>> task = GameTask("same", "stripes")
        >>> task.train_batch(2)[0].shape, task.images.shape
        (torch.Size([2, 9]), torch.Size([3051, 3, 12, 12]))
    """

    rule: str
    test: Family = "hexominoes"
    train: Family = "pentominoes"

    def __post_init__(self) -> None:
        found: Rule = resolve("rule", self.rule, RULES)
        choose("test", self.test, FAMILIES)
        choose("train", self.train, FAMILIES)
        if found.needs_shapes and "stripes" in (self.test, self.train):
            raise InvalidInput(f"test must be a family with several shapes for rule {self.rule!r}; got 'stripes'.")

    @property
    def name(self) -> str:
        """``"game_"`` and the rule."""
        return f"game_{self.rule}"

    @property
    def seq_len(self) -> int:
        """Nine cells."""
        return N_CELLS

    @property
    def n_answers(self) -> int:
        """Two, or four for colour and shape."""
        return RULES[self.rule].n_answers

    @property
    def n_pictures(self) -> int:
        """Blank and every object of every family."""
        return len(all_cells())

    def family(self, part: Part) -> Family:
        """Of a part."""
        return self.train if choose("part", part, PARTS) == "train" else self.test

    def ids(self, part: Part) -> Int[Tensor, " k"]:
        """Blank and the objects of the family."""
        family = self.family(part)
        return torch.cat([torch.zeros(1, dtype=torch.int64), first_cell(family) + torch.arange(len(objects(family)))])

    def pictures(self, ids: Int[Tensor, " k"]) -> Float[Tensor, "k 3 12 12"]:
        """Cells by number."""
        return as_pictures(all_cells()[ids])

    def canvas(self, index: Int[Tensor, "n 9"]) -> UInt8[Tensor, "n 36 36 3"]:
        """The boards as images of 36 x 36 pixels."""
        return to_canvas(all_cells()[index])

    def problems(self, part: Part, size: int, *, generator: torch.Generator) -> Problems:
        """Draw boards; right and wrong ones are equally frequent."""
        rule, family = RULES[self.rule], self.family(part)
        kind, equal = draw_patterns([weight for _, _, weight in rule.kinds], size, generator=generator)
        board = rule.draw(kind, objects(family), generator)
        index = torch.where(board > 0, board + (first_cell(family) - 1), board)
        label = torch.tensor([label for _, label, _ in rule.kinds])[kind]
        return Problems(index, label, kind, rule.names, equal)
