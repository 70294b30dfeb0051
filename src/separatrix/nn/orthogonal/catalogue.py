"""The maps by name."""

from __future__ import annotations

from collections.abc import Callable

from separatrix.core.errors import InvalidInput
from separatrix.core.names import resolve

from .cayley import Cayley, ComplexCayley
from .givens import Fft, Givens
from .householder import Householder
from .manifold import AbstractOrthogonalMap
from .rebased import Exp, FullCapacity
from .singular import SingularMargin
from .unitary import LieU, UnitaryRecipe

ORTHOGONAL_MAPS: dict[str, Callable[[int], AbstractOrthogonalMap]] = {
    kind.name: kind
    for kind in (
        Exp,
        Cayley,
        Householder,
        Givens,
        Fft,
        UnitaryRecipe,
        FullCapacity,
        LieU,
        ComplexCayley,
        SingularMargin,
    )
}
"""By name, what makes a map of a size with its usual options."""


def find_orthogonal_map(map: str | AbstractOrthogonalMap, n: int) -> AbstractOrthogonalMap:
    """The map of a name at its usual options, or the one that was given, which must be of size n.

    Example:
        >>> find_orthogonal_map("cayley", 4)
        Cayley(4)
    """
    if isinstance(map, AbstractOrthogonalMap):
        if map.n != n:
            raise InvalidInput(f"map must be of size {n}; got one of size {map.n}.")
        return map
    return resolve("map", map, ORTHOGONAL_MAPS, also="an AbstractOrthogonalMap object")(n)
