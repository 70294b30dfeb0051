"""How each family of matrices looks in every figure: colour, mark and name."""

from __future__ import annotations

import dataclasses
from typing import final

from .style import PALETTE


@final
@dataclasses.dataclass(frozen=True)
class Look:
    """Colour, mark, and what the family is called in a legend."""

    colour: str
    mark: str
    label: str


FAMILIES: dict[str, Look] = {
    "gaussian": Look(PALETTE[0], "o", "independent entries"),
    "haar": Look(PALETTE[1], "s", "orthogonal"),
    "goe": Look(PALETTE[2], "^", "GOE"),
    "antisymmetric": Look(PALETTE[3], "v", "antisymmetric"),
    "symmetric-orthogonal": Look(PALETTE[4], "D", "symmetric orthogonal"),
    "elliptic": Look(PALETTE[5], "P", "elliptic"),
}


def family_look(name: str) -> Look:
    """The look of a family by its name, with or without a parameter (``elliptic:0.5``); grey for one not listed."""
    return FAMILIES.get(name.split(":")[0], Look(PALETTE[6], "x", name))
