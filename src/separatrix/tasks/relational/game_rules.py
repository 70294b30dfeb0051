"""The rules of the relational games: which objects stand in which of nine cells, kind by kind, many at once."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import TypeAlias, final

import torch
from jaxtyping import Int
from torch import Tensor

from .polyominoes import Objects

N_CELLS = 9
LINES = (
    (0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6),
)  # fmt: skip
LINE_WEIGHTS = (1, 2, 1, 1, 1, 1, 1, 1)
"""The middle row is drawn twice as often as the others, as in the public data."""
_TRIPLES = tuple(t for t in itertools.combinations(range(N_CELLS), 3) if t not in {tuple(sorted(x)) for x in LINES})
TOP, BOTTOM = 1, (6, 7, 8)
ROWS = ("aaa", "aab", "aba", "abb", "abc")

Draw: TypeAlias = Callable[[Tensor, Objects, torch.Generator], Tensor]
"""Kinds (batch,), objects and generator to cells (batch, 9): 0 for blank, otherwise an object's number plus 1."""


@final
@dataclasses.dataclass(frozen=True)
class Rule:
    """A game: kinds of problems with their labels and weights, and how they are drawn."""

    name: str
    kinds: tuple[tuple[str, int, int], ...]
    """Name, label and weight."""
    draw: Draw
    n_answers: int = 2
    needs_shapes: bool = False
    """Whether stripes, which all have one shape, cannot be asked."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the kinds."""
        return tuple(name for name, _, _ in self.kinds)


def different(size: int, k: int, n: int, generator: torch.Generator) -> Int[Tensor, "batch k"]:
    """k different numbers below n for each problem, in random order; cost k^2 numbers a problem, whatever n."""
    drawn = torch.empty(size, 0, dtype=torch.int64)
    for j in range(k):
        new = torch.randint(n - j, (size,), generator=generator)
        for earlier in drawn.sort(1).values.unbind(1):  # ascending: step over what is taken
            new = new + (new >= earlier)
        drawn = torch.cat([drawn, new.unsqueeze(1)], 1)
    return drawn


def _two_cells(size: int, generator: torch.Generator) -> Tensor:
    return different(size, 2, N_CELLS, generator)


def _placed(cells: Tensor, things: Tensor) -> Tensor:
    board = torch.zeros(len(cells), N_CELLS, dtype=torch.int64)
    return board.scatter_(1, cells, things + 1)


def _same(kind: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
    pair = different(len(kind), 2, len(objects), generator)
    second = pair.gather(1, kind.unsqueeze(1))  # kind 0: the first again
    return _placed(_two_cells(len(kind), generator), torch.cat([pair[:, :1], second], 1))


def _lines(size: int, generator: torch.Generator) -> Tensor:
    weights = torch.tensor(LINE_WEIGHTS, dtype=torch.float64)
    return torch.tensor(LINES)[torch.multinomial(weights, size, replacement=True, generator=generator)]


def _scattered(size: int, generator: torch.Generator) -> Tensor:
    triples = torch.tensor(_TRIPLES)[torch.randint(len(_TRIPLES), (size,), generator=generator)]
    return triples.gather(1, torch.rand(size, 3, generator=generator).argsort(1))


def _triples(
    kind: Tensor,
    on_line: Tensor,
    letters: Tensor,
    objects: Objects,
    generator: torch.Generator,
    *,
    ordered: bool = False,
) -> Tensor:
    """Three objects by letters, on a line (outer, middle, outer) or scattered, in any order or in that of reading."""
    drawn = different(len(kind), 3, len(objects), generator)
    lines, elsewhere = _lines(len(kind), generator), _scattered(len(kind), generator)
    elsewhere = elsewhere.sort(1).values if ordered else elsewhere
    cells = torch.where(on_line.unsqueeze(1), lines, elsewhere)
    return _placed(cells, drawn.gather(1, letters))


def _between(kind: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
    letters = torch.tensor([(0, 1, 0), (0, 1, 2), (0, 1, 2)])[kind]
    return _triples(kind, kind < 2, letters, objects, generator)


def _between_strict(kind: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
    """Of three scattered ones the first and the last to be read are equal, as those of a line are."""
    letters = torch.tensor([(0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 1, 2), (0, 1, 2)])[kind]
    return _triples(kind, (kind < 3) | (kind == 4), letters, objects, generator, ordered=True)


def _four(letters: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
    """One object above, three below; those below in random order."""
    size = len(letters)
    drawn = different(size, 4, len(objects), generator).gather(1, letters)
    below = drawn[:, 1:].gather(1, torch.rand(size, 3, generator=generator).argsort(1))
    cells = torch.tensor((TOP, *BOTTOM)).expand(size, -1)
    return _placed(cells, torch.cat([drawn[:, :1], below], 1))


def _occurs(kind: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
    return _four(torch.tensor([(0, 0, 1, 2), (0, 1, 2, 3)])[kind], objects, generator)


def _xoccurs(kind: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
    return _four(torch.tensor([(0, 0, 1, 2), (0, 1, 2, 3), (0, 0, 1, 1)])[kind], objects, generator)


def _row_matching(kind: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
    words = torch.tensor([["abc".index(letter) for letter in word] for word in ROWS])
    first, second = torch.tensor(_ROW_KINDS)[kind].unbind(1)
    letters = torch.cat([words[first], words[second] + 3], 1)
    drawn = different(len(kind), 6, len(objects), generator).gather(1, letters)
    return _placed(torch.tensor((0, 1, 2, *BOTTOM)).expand(len(kind), -1), drawn)


_ROW_KINDS = ([(k, k) for k in range(len(ROWS))]) + list(itertools.permutations(range(len(ROWS)), 2))


def _column(word: str) -> Rule:
    """Three objects in one column: is theirs the pattern of the word? Wrong ones have the other patterns alike."""
    words = (word, *(other for other in ROWS if other != word))
    letters = torch.tensor([["abc".index(letter) for letter in one] for one in words])

    def draw(kind: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
        drawn = different(len(kind), 3, len(objects), generator).gather(1, letters[kind])
        column = torch.randint(3, (len(kind), 1), generator=generator)
        return _placed(column + torch.tensor((0, 3, 6)), drawn)

    return Rule(f"column_{word}", tuple((one, int(one == word), 4 if one == word else 1) for one in words), draw)


def _colour_shape(kind: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
    n_colours, n_shapes = int(objects.colour.max()) + 1, int(objects.shape.max()) + 1
    colour = different(len(kind), 2, n_colours, generator)
    shape = different(len(kind), 2, n_shapes, generator)
    second_colour = colour.gather(1, (kind >= 2).long().unsqueeze(1))
    second_shape = shape.gather(1, (kind % 2).unsqueeze(1))
    first, second = (s * n_colours + c for s, c in ((shape[:, :1], colour[:, :1]), (second_shape, second_colour)))
    return _placed(_two_cells(len(kind), generator), torch.cat([first, second], 1))


def _left_of(kind: Tensor, objects: Objects, generator: torch.Generator) -> Tensor:
    pair = different(len(kind), 2, len(objects), generator)
    light = objects.luminance
    while bool((equal := light[pair[:, 0]] == light[pair[:, 1]]).any()):  # equal luminance is not asked
        pair[equal] = different(int(equal.sum()), 2, len(objects), generator)
    dim_first = light[pair[:, 0]] < light[pair[:, 1]]
    pair = torch.where(dim_first.unsqueeze(1), pair, pair.flip(1))  # the dimmer one first
    cells = _two_cells(len(kind), generator)
    rank = cells % 3 * 10 - torch.div(cells, 3, rounding_mode="floor")  # smaller column, then larger row, comes first
    ahead = rank[:, :1] < rank[:, 1:]
    wanted = (kind == 0).unsqueeze(1)
    return _placed(torch.where(ahead == wanted, cells, cells.flip(1)), pair)


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("same", (("same", 1, 1), ("different", 0, 1)), _same),
        Rule(
            "between",
            (("between", 1, 2), ("line, all different", 0, 1), ("scattered, all different", 0, 1)),
            _between,
        ),
        Rule(
            "between_strict",
            (
                ("between", 1, 12),
                ("line, first two equal", 0, 2),
                ("line, last two equal", 0, 2),
                ("scattered, two equal", 0, 4),
                ("line, all different", 0, 2),
                ("scattered, all different", 0, 2),
            ),
            _between_strict,
        ),
        Rule("occurs", (("occurs", 1, 1), ("does not", 0, 1)), _occurs),
        Rule("xoccurs", (("occurs", 1, 2), ("does not", 0, 1), ("occurs, other two equal", 0, 1)), _xoccurs),
        Rule(
            "row_matching",
            tuple(
                (f"{ROWS[a]} {ROWS[b]}", int(a == b), len(ROWS) - 1 if a == b else 1) for a, b in _ROW_KINDS
            ),
            _row_matching,
        ),
        Rule(
            "colour_shape",
            (
                ("same colour, same shape", 0, 1),
                ("same colour, other shape", 1, 1),
                ("other colour, same shape", 2, 1),
                ("other colour, other shape", 3, 1),
            ),
            _colour_shape,
            n_answers=4,
            needs_shapes=True,
        ),
        Rule("left_of", (("dimmer is left", 1, 1), ("dimmer is right", 0, 1)), _left_of, needs_shapes=True),
        *(_column(word) for word in ("aba", "aab", "abb")),
    )
}  # fmt: skip
