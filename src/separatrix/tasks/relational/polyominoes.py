"""Objects of the relational games: pentominoes, hexominoes and striped squares on cells of 12 x 12 pixels."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Literal, TypeAlias, final

import numpy
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from separatrix.core.names import choose

Family: TypeAlias = Literal["pentominoes", "hexominoes", "stripes"]
FAMILIES: tuple[Family, ...] = ("pentominoes", "hexominoes", "stripes")
CELL, BLOCK, MARGIN, GRID = 12, 3, 1, 3
"""Pixels of a cell, of a block of an object, and beside the object; blocks a side."""
LUMINANCE = (0.2126, 0.7152, 0.0722)
_LEVELS = {"pentominoes": (0, 128, 255), "hexominoes": (64, 144, 192), "stripes": (64, 144, 192)}


def connected_masks(n_blocks: int) -> list[tuple[int, ...]]:
    """Connected sets of so many blocks of the 3 x 3 grid, as sorted block numbers; placed, not up to translation.

    Example:
        >>> len(connected_masks(5)), len(connected_masks(6))
        (49, 48)
    """
    return [blocks for blocks in itertools.combinations(range(GRID * GRID), n_blocks) if _connected(blocks)]


def _connected(blocks: tuple[int, ...]) -> bool:
    left, reached = set(blocks[1:]), [blocks[0]]
    while reached:
        row, column = divmod(reached.pop(), GRID)
        near = {(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)}
        found = {block for block in left if divmod(block, GRID) in near}
        left -= found
        reached += sorted(found)
    return not left


def colours(family: Family) -> UInt8[Tensor, "25 3"]:
    """The 25 colours of a family: all of three levels but the darkest and the lightest grey."""
    levels = _LEVELS[choose("family", family, FAMILIES)]
    triples = [t for t in itertools.product(levels, repeat=3) if t not in ((levels[0],) * 3, (levels[-1],) * 3)]
    return torch.tensor(triples, dtype=torch.uint8)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Objects:
    """The objects of a family: what each looks like, and its shape and colour by number."""

    family: Family
    images: UInt8[Tensor, "n 12 12 3"]
    shape: Int[Tensor, " n"]
    colour: Int[Tensor, " n"]
    """Of stripes the outer one."""
    luminance: Float[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.images)


@functools.lru_cache(maxsize=3)
def objects(family: Family) -> Objects:
    """All objects of a family: 49 x 25 pentominoes, 48 x 25 hexominoes, 25 x 25 stripes.

    Example:
        >>> [len(objects(family)) for family in FAMILIES]
        [1225, 1200, 625]
    """
    palette = colours(family)
    if family == "stripes":
        outer, inner = torch.arange(25).repeat_interleave(25), torch.arange(25).repeat(25)
        squares = palette[torch.stack([outer, inner, outer], 1)]  # (n, 3 bars, rgb)
        blocks = squares.unsqueeze(1).expand(-1, GRID, -1, -1)
        shape, colour = torch.zeros_like(outer), outer
    else:
        masks = connected_masks(5 if family == "pentominoes" else 6)
        filled = torch.zeros(len(masks), GRID * GRID, dtype=torch.uint8)
        for place, mask in enumerate(masks):
            filled[place, list(mask)] = 1
        shape = torch.arange(len(masks)).repeat_interleave(25)
        colour = torch.arange(25).repeat(len(masks))
        blocks = filled[shape].reshape(-1, GRID, GRID, 1) * palette[colour][:, None, None, :]
    grown = blocks.repeat_interleave(BLOCK, 1).repeat_interleave(BLOCK, 2)
    images = torch.zeros(len(shape), CELL, CELL, 3, dtype=torch.uint8)
    images[:, MARGIN : MARGIN + GRID * BLOCK, MARGIN : MARGIN + GRID * BLOCK] = grown
    luminance = (palette[colour].to(torch.float64) * torch.tensor(LUMINANCE, dtype=torch.float64)).sum(1)
    return Objects(family, images, shape, colour, luminance)


@functools.lru_cache(maxsize=1)
def all_cells() -> UInt8[Tensor, "n 12 12 3"]:
    """Every cell of every family in one table: blank first, then the families in order."""
    blank = torch.zeros(1, CELL, CELL, 3, dtype=torch.uint8)
    return torch.cat([blank, *(objects(family).images for family in FAMILIES)])


def first_cell(family: Family) -> int:
    """Where the objects of a family begin in the table of all cells."""
    return 1 + sum(len(objects(other)) for other in itertools.takewhile(lambda f: f != family, FAMILIES))


def as_pictures(cells: UInt8[Tensor, "*batch 12 12 3"]) -> Float[Tensor, "*batch 3 12 12"]:
    """Cells as models take them: channels first, in [0, 1]."""
    return (cells.to(torch.float32) / 255).movedim(-1, -3)


def to_cells(canvas: numpy.ndarray) -> UInt8[Tensor, "n 9 12 12 3"]:
    """Canvases (n, 36, 36, 3) as their nine cells, row by row."""
    n, three = len(canvas), GRID
    split = canvas.astype(numpy.uint8).reshape(n, three, CELL, three, CELL, 3).swapaxes(2, 3)
    return torch.from_numpy(numpy.ascontiguousarray(split.reshape(n, three * three, CELL, CELL, 3)))


def to_canvas(cells: UInt8[Tensor, "n 9 12 12 3"]) -> UInt8[Tensor, "n 36 36 3"]:
    """The inverse of ``to_cells``."""
    n, side = len(cells), GRID * CELL
    return cells.reshape(n, GRID, GRID, CELL, CELL, 3).transpose(2, 3).reshape(n, side, side, 3)
