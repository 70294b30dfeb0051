"""Every closed form carries its source: document, place and, where the print is wrong, the erratum.

``@formula`` stores a record on the function and in ``FORMULAS``; ``@not_a_formula`` says why a public function of
theory is none, in ``NOT_FORMULAS``. The tests refuse a function of theory without either, and a formula that no test
marks as checked by an independent route. The documentation builds its equation index from the registry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from .errors import InvalidInput, unknown_name
from .names import suggest_options
from .rooms import public_names

Function = TypeVar("Function", bound=Callable[..., object])


@suggest_options
@dataclasses.dataclass(frozen=True)
class Formula:
    """Where a closed form comes from."""

    name: str
    """Where the function is defined: ``separatrix.theory.attention.counting.count_stable``."""
    document: str
    place: str
    erratum: str | None
    summary: str

    @property
    def public_name(self) -> str:
        """The name people use, from the package's room on (``theory.count_stable``); of an inner function its place."""
        return public_names(self.name)[0].partition(".")[2]


FORMULAS: dict[str, Formula] = {}
NOT_FORMULAS: dict[str, str] = {}
"""By full name, why a function is no closed form."""


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
        name = full_name(function)
        summary = (function.__doc__ or "").strip().split("\n")[0]
        record = Formula(name, document, place, erratum, summary)
        FORMULAS[name] = record
        function.formula = record  # type: ignore[attr-defined]
        return function

    return register


def not_a_formula(reason: str) -> Callable[[Function], Function]:
    """Say why a public function of theory has no source: ``@not_a_formula("a search along exact curves")``.

    A method that replaces a marked method of a base class needs no mark of its own.
    """

    def register(function: Function) -> Function:
        NOT_FORMULAS[full_name(function)] = reason
        function.not_a_formula = reason  # type: ignore[attr-defined]
        return function

    return register


def full_name(function: Callable[..., object]) -> str:
    """Module and qualified name, the key of both registries."""
    return f"{function.__module__}.{function.__qualname__}"


def find_by_name(kind: str, name: str, known: Collection[str], others: Iterable[str] = ()) -> str:
    """The full name meant by a short one, one from its room on, or the full one.

    Args:
        kind: what is looked for, as errors say it.
        name: any tail of a full name (``count_stable``, ``theory.count_stable``, ``BalancedFlow.product``).
        known: full names, as in ``FORMULAS``.
        others: names of other kinds that may be suggested for an unknown one.

    Raises:
        InvalidInput: nothing bears the name, or several things do.
    """
    if name in known:
        return name
    by_tail = _tails(known)
    found = by_tail.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        meant = ", ".join(sorted(public_names(full)[0].partition(".")[2] for full in found))
        raise InvalidInput(f"{name!r} names {len(found)} things: {meant}. Give one of these.")
    raise unknown_name(kind, name, [*others, *by_tail])


def _tails(known: Iterable[str]) -> Mapping[str, list[str]]:
    """Full names by every tail of every name under which they can be reached; a class stands for its methods."""
    tails: dict[str, list[str]] = {}
    for full in known:
        for reached in {full, *public_names(full)}:
            parts = reached.split(".")
            ways = [parts, parts[:-1]] if len(parts) > 1 and parts[-2][0].isupper() else [parts]
            for way in ways:
                for start in range(len(way)):
                    meant = tails.setdefault(".".join(way[start:]), [])
                    if full not in meant:
                        meant.append(full)
    return tails
