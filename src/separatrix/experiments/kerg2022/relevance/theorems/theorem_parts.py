"""What the two experiments on theorems share: numbers by name, and claims that a difference is rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from separatrix.core.wording import small
from separatrix.lab import Cell, Claim, Judgement, Payload, Row, Summary, Truth, judge, with_fields

ROUNDING = 1e-12
"""Of relative differences in double precision, after a few hundred operations."""


class Measured(Summary):
    """Numbers by name, the worst over seeds."""

    numbers: dict[str, float]


class Said(float):
    """A number in a template of words: ``{error:small}`` says its size, other formats are those of floats."""

    def __format__(self, spec: str) -> str:
        return small(self) if spec == "small" else super().__format__(spec)


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


class Right(NamedTuple):
    """What is true where the print is not: ``misprint``, ``condition`` or ``instead``, and numbers that are then zero.

    A tuple of plain values, so that the digest of a rule sees all of it.
    """

    how: Callable[[str, Iterable[Row]], Truth]
    says: str
    zeros: Mapping[str, str]
    within: float = ROUNDING


def zeros(
    id: str,
    place: str,
    statement: str,
    test: str,
    numbers: Mapping[str, str],
    evidence: str,
    *,
    within: float = ROUNDING,
    right: Right | None = None,
    measures: str = "see the evidence",
    **rest: Any,
) -> Claim:
    """A claim that holds if some numbers are zero: errors, differences, cases that fail.

    Args:
        id: identifier of the claim.
        place: where the statement stands.
        statement: the statement in our words.
        test: the tolerance in words.
        numbers: by name, what each number is.
        evidence: the sentence of the judgement, with fields for numbers of the summary.
        within: how far from zero a number may be.
        right: what is true if they are not zero.
        measures: the quantity that is measured.
        rest: other fields of the claim.
    """

    def judge_zeros(summary: Measured) -> Judgement:
        truth = right and right.how(right.says, error_rows(summary, right.zeros, right.within))
        return judge(
            evidence.format(**{name: Said(value) for name, value in summary.numbers.items()}),
            error_rows(summary, numbers, within),
            truth,
        )

    wrong = numbers if right is None else right.zeros
    return Claim(
        id=id,
        statement=statement,
        measures=measures,
        test=test,
        judge=judge_zeros,
        counterfeit=put(**dict.fromkeys(wrong, 1.0)),
        genuine=put(**dict.fromkeys(numbers, 0.0)),
        place=place,
        **rest,
    )


def equality(id: str, place: str, statement: str, names: Mapping[str, str], **rest: Any) -> Claim:
    """A claim that two ways to a number agree; ``names`` are those of its relative errors."""

    def judge_equality(summary: Measured) -> Judgement:
        rows = error_rows(summary, names)
        return judge(
            ", ".join(f"{row.quantity}: relative difference {small(float(row.measured))}" for row in rows), rows
        )

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
