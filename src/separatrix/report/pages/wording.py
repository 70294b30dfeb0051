"""Values as people read them: numbers, durations, verdicts, names that may stand in an address."""

from __future__ import annotations

import math
import re
from typing import Any

from separatrix.core.errors import InvalidInput
from separatrix.core.result import brief
from separatrix.core.wording import measured, number
from separatrix.core.wording.names import model_name
from separatrix.lab.experiment.claim import Row, Verdict

VERDICT_MARKS = {
    Verdict.CONFIRMED: "✓",
    Verdict.MISPRINT: "✎",
    Verdict.CONDITIONAL: "◐",
    Verdict.REFUTED: "✗",
    Verdict.UNDECIDED: "?",
    Verdict.NOT_RUN: "…",
}
"""A sign beside each verdict's words, for readers who do not see colours."""


def shown(value: Any) -> str:
    """A value in a table: six digits, yes or no, a dash for nothing; long values are cut."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return brief(", ".join(shown(item) for item in value), width=240)
    return brief(value, width=240)


def names_in_words(column: str, text: str) -> str:
    """A family, a network or a task in a table, by the one name it has in the whole product."""
    if column in ("family", "ensemble"):
        from separatrix.matrices.ensembles import find_ensemble

        try:
            return str(find_ensemble(text).label)
        except InvalidInput:
            return text
    if column == "task":
        from separatrix.tasks.relational.titles import task_title

        return task_title(text)
    if column in ("model", "network"):
        return model_name(text)
    return text


def compared(row: Row, side: float | int | str) -> str:
    """One side of a comparison: the digits that its spread bears, and enough of them to see what disagrees."""
    if not is_number(side):
        return shown(side)
    if row.spread is not None and side is row.measured:
        return measured(float(side), row.spread)
    if row.spread is not None and row.spread > 0:
        return measured(float(side), row.spread).partition(" ±")[0]
    return number(float(side), _digits(row)) if isinstance(side, float) else str(side)


def _digits(row: Row) -> int:
    if not (is_number(row.measured) and is_number(row.expected)) or row.agrees or not row.expected:
        return 4
    apart = abs(float(row.measured) - float(row.expected)) / abs(float(row.expected))
    return 4 if not 0 < apart < 1e-3 else min(2 - math.floor(math.log10(apart)), 15)


def is_number(value: Any) -> bool:
    """Whether a value should be aligned as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def duration(seconds: float) -> str:
    """Seconds as people say them.

    Example:
        >>> duration(0.25), duration(75.0), duration(7300.0)
        ('0.25 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def slug(name: str) -> str:
    """A name reduced to letters, digits, ``-`` and ``_``, fit for an address or a file."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-").lower() or "unnamed"
