"""Claims: statements of the documents (and ours) with a verdict computed from what was measured.

A verdict is never typed in. A claim's ``judge`` receives the summary of a run and returns a judgement built from
rows of measured and expected numbers, each with its tolerance.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, final

from separatrix.core.errors import InvalidInput
from separatrix.core.labelled import Labelled
from separatrix.core.names import suggest_options

from .scales import require_scale


class Verdict(Labelled):
    """What the measurement says of a claim."""

    CONFIRMED = "confirmed"
    CORRECTED = "confirmed with correction"
    REFINED = "refined"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_RUN = "not run at this scale"


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison: what was measured, what is expected, and how far they may differ.

    ``expected`` is a number (printed in the document, or predicted by theory) or a sentence for a yes/no question.
    ``agrees`` follows from the numbers unless it is given, which a yes/no question must do. A measured or expected
    value that is not a number (NaN) decides nothing, whatever ``agrees`` says.
    """

    quantity: str
    measured: float | int | str
    expected: float | int | str
    tolerance: float | int | str = 0.0
    agrees: bool = None  # type: ignore[assignment]
    spread: float | None = None

    def __post_init__(self) -> None:
        if self.agrees is None:
            object.__setattr__(self, "agrees", self._within())

    def _within(self) -> bool:
        numbers = (self.measured, self.expected, self.tolerance)
        if not all(isinstance(number, int | float) for number in numbers):
            raise InvalidInput(
                f"row {self.quantity!r} compares words; say agrees=True or False from what was measured."
            )
        measured, expected, tolerance = (float(number) for number in numbers)
        return math.isfinite(measured) and abs(measured - expected) <= tolerance

    @property
    def is_number(self) -> bool:
        """Whether neither side is NaN."""
        return not any(isinstance(side, float) and math.isnan(side) for side in (self.measured, self.expected))


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Judgement:
    """A verdict with the evidence in one sentence and the rows behind it."""

    verdict: Verdict
    evidence: str
    rows: tuple[Row, ...] = ()


def judge(
    evidence: str,
    rows: Iterable[Row],
    *,
    printed: Iterable[Row] = (),
    counterexamples: Iterable[Row] = (),
) -> Judgement:
    """The verdict that follows from rows.

    Args:
        evidence: one sentence with the measured numbers.
        rows: what must hold for the claim (in corrected or restricted form, if the other arguments are given).
        printed: the claim as printed; if one of these disagrees while all ``rows`` agree, the print has a misprint.
        counterexamples: the claim in its full generality; if one disagrees while all ``rows`` agree, the claim
            holds only under a condition and is refined.

    A row that disagrees decides by itself; if none of its group does and one of them is not a number, the claim stays
    undecided, and the evidence says which measurement failed.
    """
    rows, printed, counterexamples = tuple(rows), tuple(printed), tuple(counterexamples)
    if not rows:
        return Judgement(Verdict.NOT_RUN, "nothing was measured")
    everything = rows + printed + counterexamples
    groups = ((rows, Verdict.REFUTED), (printed, Verdict.CORRECTED), (counterexamples, Verdict.REFINED))
    for group, verdict in groups:
        if any(row.is_number and not row.agrees for row in group):
            return Judgement(verdict, evidence, everything)
        missing = [row.quantity for row in group if not row.is_number]
        if missing:
            reason = f"undecided, because this is not a number: {', '.join(missing)}"
            return Judgement(Verdict.UNDECIDED, f"{reason} ({evidence})", everything)
    return Judgement(Verdict.CONFIRMED, evidence, everything)


@final
@suggest_options
@dataclasses.dataclass(frozen=True, repr=False, kw_only=True)
class Claim:
    """A statement and the rule that decides it.

    Args:
        id: stable identifier, unlike that of any other claim: ``"kerg2022-ch3-table5"``.
        statement: the claim in our own words.
        measures: the quantity that is measured.
        test: the tolerance or statistical test, in words.
        judge: summary of the experiment to a judgement.
        document: key of the source, or ``"separatrix"``; that of the experiment if not given.
        place: where the statement stands; the experiment's if not given.
        erratum: key of the erratum, when the print is known to be wrong.
        scale: the smallest scale at which the verdict means something.
    """

    id: str
    statement: str
    measures: str
    test: str
    judge: Callable[[Any], Judgement]
    document: str = ""
    place: str = ""
    erratum: str | None = None
    scale: str = "smoke"

    def __post_init__(self) -> None:
        require_scale(self.scale, f"scale of claim {self.id}")

    def __repr__(self) -> str:
        return f"Claim({self.id!r}: {self.statement})"

    def within(self, document: str, place: str) -> Claim:
        """The claim as one of an experiment on a place of a document, which it takes over unless it names its own."""
        return dataclasses.replace(self, document=self.document or document, place=self.place or place)
