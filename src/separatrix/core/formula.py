"""Every closed form carries its source: document, place and, where the print is wrong, the erratum.

``@formula`` stores a record on the function and in ``FORMULAS``. The tests refuse a registered formula that no test
marks as checked by an independent route, and the documentation builds its equation index from the registry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])


@dataclasses.dataclass(frozen=True)
class Formula:
    """Where a closed form comes from."""

    name: str
    document: str
    place: str
    erratum: str | None
    summary: str


FORMULAS: dict[str, Formula] = {}


def formula(document: str, place: str, *, erratum: str | None = None) -> Callable[[Function], Function]:
    """Register a closed form.

    Args:
        document: key of a source document (``"altafini2025"``), or ``"separatrix"`` for a result of our own.
        place: equation, theorem or section in that document.
        erratum: key of the erratum in ``separatrix.sources`` when the print is wrong.

    Example:
        >>> @formula("agarwala2022", "Eq. (8)")
        ... def iid_second_moment(weight_var: float) -> float:
        ...     return 1 / (1 - weight_var)
        >>> iid_second_moment.formula.place
        'Eq. (8)'
    """

    def register(function: Function) -> Function:
        name = f"{function.__module__}.{function.__qualname__}"
        summary = (function.__doc__ or "").strip().split("\n")[0]
        record = Formula(name, document, place, erratum, summary)
        FORMULAS[name] = record
        function.formula = record  # type: ignore[attr-defined]
        return function

    return register
