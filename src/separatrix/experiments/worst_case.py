"""Statements judged by the worst that any seed gave, for experiments whose cells are one statement and one seed.

The worst is the largest value of a quantity, the smallest of those named in ``least``, the sum of those in ``totals``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from separatrix.core.wording import number, small
from separatrix.lab import Cell, Judgement, Payload, Row, Summary, judge


def highest(*values: float) -> float:
    """The largest of some numbers, and NaN if one of them is: ``max`` forgets a NaN that does not come first."""
    return math.nan if any(math.isnan(value) for value in values) else max(values)


def lowest(*values: float) -> float:
    """The smallest of some numbers, and NaN if one of them is."""
    return math.nan if any(math.isnan(value) for value in values) else min(values)


class Measured(Summary):
    """The worst of each quantity over all seeds, by statement."""

    parts: dict[str, dict[str, int | float]]


def worst_of_all(
    results: Sequence[tuple[Cell, Payload]], least: Sequence[str] = (), totals: Sequence[str] = ()
) -> Measured:
    """The worst of each quantity over the seeds."""
    parts: dict[str, dict[str, float]] = {}
    for cell, payload in results:
        kept = parts.setdefault(cell.args["part"], {})
        for name, value in payload.items():
            combine = lowest if name in least else highest
            before = kept.get(name)
            kept[name] = value if before is None else before + value if name in totals else combine(before, value)
    rows = [
        {"statement": part, "quantity": name, "worst": v} for part, found in parts.items() for name, v in found.items()
    ]
    return Measured(parts=parts, tables={"Worst over all instances": rows})


def judge_limits(part: str, **limits: float | str) -> Callable[[Measured], Judgement]:
    """Every quantity within its limit: a number from above, ``"some"`` more than none, ``"most"`` more than half."""

    def judge_part(summary: Measured) -> Judgement:
        found, rows = summary.parts[part], []
        for key, limit in limits.items():
            name = key.replace("_", " ")
            value = found[name]
            if isinstance(limit, str):
                rows.append(Row(name, value, limit, agrees=value > {"some": 0.0, "most": 0.5}[limit]))
            else:
                rows.append(Row(name, value, f"at most {small(limit)}", agrees=value <= limit))
        return judge(", ".join(f"{name} {number(value)}" for name, value in found.items()), rows)

    return judge_part
