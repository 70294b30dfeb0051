"""What the two experiments on theorems share: numbers by name, and claims that a difference is rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from separatrix.lab import Cell, Claim, Judgement, Payload, Row, Summary, judge, with_fields

ROUNDING = 1e-12
"""Of relative differences in double precision, after a few hundred operations."""


class Measured(Summary):
    """Numbers by name, the worst over seeds."""

    numbers: dict[str, float]


def worst_of(results: Sequence[tuple[Cell, Payload]], part: str) -> dict[str, float]:
    """The largest of each number over the cells of a part."""
    found: dict[str, float] = {}
    for cell, payload in results:
        if cell.args["part"] == part:
            for name, value in payload.items():
                if isinstance(value, int | float):
                    found[name] = max(found.get(name, float(value)), float(value))
    return found


def put(**values: float) -> Callable[[Measured], Measured]:
    """A counterfeit or a genuine summary: other numbers."""
    return with_fields(numbers=lambda numbers: {**numbers, **values})


def error_rows(summary: Measured, names: Mapping[str, str], tolerance: float = ROUNDING) -> list[Row]:
    """One row per number that should be zero up to rounding."""
    return [Row(words, summary.numbers[name], 0.0, tolerance) for name, words in names.items()]


def equality(id: str, place: str, statement: str, names: Mapping[str, str], **rest: Any) -> Claim:
    """A claim that two ways to a number agree; ``names`` are those of its relative errors."""

    def judge_equality(summary: Measured) -> Judgement:
        rows = error_rows(summary, names)
        return judge(", ".join(f"{row.quantity}: relative difference {row.measured:.1e}" for row in rows), rows)

    return Claim(
        id=id,
        statement=statement,
        measures="relative difference between the formula and autodiff or enumeration",
        test=f"at most {ROUNDING:g}",
        judge=judge_equality,
        counterfeit=put(**dict.fromkeys(names, 0.1)),
        place=place,
        **rest,
    )
