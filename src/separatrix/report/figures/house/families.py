"""How a matrix family looks in figures: what it says itself, found through its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from separatrix.core.errors import InvalidInput
from separatrix.core.names import resolve

from .style import COLOURS

if TYPE_CHECKING:
    from separatrix.matrices.ensembles import AbstractEnsemble


class Look(NamedTuple):
    """Colour (as matplotlib takes it), marker and label of a family."""

    colour: str
    marker: str
    label: str


def look(family: str | AbstractEnsemble) -> Look:
    """The look of a family or of its name. A name that no family has is drawn in grey, under that name."""
    from separatrix.matrices.ensembles import find_ensemble

    try:
        found = find_ensemble(family)
    except InvalidInput:
        if not isinstance(family, str):
            raise
        return Look(COLOURS["grey"], "x", family)
    return Look(resolve("colour", found.colour, COLOURS), found.marker, found.label)
