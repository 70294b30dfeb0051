"""Claims: statements of the documents (and ours) with a verdict computed from what was measured.

A verdict is never typed in. A claim's ``judge`` receives the summary of a run and returns a judgement built from
rows of measured and expected numbers, each with its tolerance. Good and bad news follow from the same rows: a row
agrees, disagrees, or cannot tell.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsFloat, final

from separatrix.core.errors import InvalidInput
from separatrix.core.labelled import Labelled
from separatrix.core.names import suggest_options
from separatrix.core.scalars import in_words
from separatrix.core.wording import alike, number

from .scales import require_scale


class Verdict(Labelled):
    """What the measurement says of a claim."""

    CONFIRMED = "confirmed"
    MISPRINT = "misprint"
    """The symbols are wrong; the statement holds once they are right."""
    CONDITIONAL = "holds under a condition"
    """False in its generality, true with a named condition."""
    REFUTED = "refuted"
    """The statement as meant is false, whatever may be true instead."""
    UNDECIDED = "undecided"
    NOT_RUN = "not run at this scale"


_FOLLOWS: Any = object()
"""That ``agrees`` was not given and follows from the numbers."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Row:
    """One comparison: what was measured, what is expected, and how far they may differ.

    ``expected`` is a number (printed in the document, or predicted by theory) or a sentence for a yes/no question.
    ``agrees`` follows from the numbers unless it is given, which a yes/no question must do; ``None`` means that the
    measurement cannot tell. A measured or expected value that is not there (NaN, also as a word; ``None``; no word at
    all) never can, whatever is given. Nor can one whose ``spread``, or the tolerance made of it, is as large as what is
    expected: it would agree with nothing at all. Such a spread decides nothing against what lies within it either. A
    spread or tolerance that is NaN or without end agrees with nothing.
    """

    quantity: str
    measured: float | int | str
    expected: float | int | str
    tolerance: float | int | str = 0.0
    agrees: bool | None = _FOLLOWS
    spread: float | None = None
    concerns: str = "the statement"
    """The statement itself, or what is true in its place."""

    def __post_init__(self) -> None:
        for name in ("measured", "expected", "tolerance", "spread"):
            object.__setattr__(self, name, _own_number(getattr(self, name)))
        if self.spread is not None and self.spread < 0:
            raise InvalidInput(f"spread of row {self.quantity!r} must be at least 0; got {self.spread}.")
        if self.agrees is not _FOLLOWS:
            object.__setattr__(self, "agrees", _answer(self.agrees, self.quantity))
        if not self.is_number:
            object.__setattr__(self, "agrees", None)
        elif self.agrees is _FOLLOWS:
            object.__setattr__(self, "agrees", self._within())
        if (self.agrees and self._is_blurred()) or (self.agrees is False and self._covers()):
            object.__setattr__(self, "agrees", None)

    def _within(self) -> bool:
        numbers = (self.measured, self.expected, self.tolerance)
        if not all(isinstance(number, int | float) for number in numbers):
            raise InvalidInput(
                f"row {self.quantity!r} compares words; say agrees=True or False from what was measured."
            )
        measured, expected, tolerance = (float(number) for number in numbers)
        if not 0 <= tolerance < math.inf:
            raise InvalidInput(f"tolerance of row {self.quantity!r} must be finite and at least 0; got {tolerance}.")
        return math.isfinite(measured) and abs(measured - expected) <= tolerance

    def _is_blurred(self) -> bool:
        """Whether zero would agree as well, for want of precision, where something else is expected."""
        room = self.tolerance if isinstance(self.tolerance, int | float) else 0.0
        if not math.isfinite(room) or not math.isfinite(self.spread or 0.0):
            return True
        if self.spread is None or not isinstance(self.expected, int | float) or self.expected == 0:
            return False
        return not (room < abs(self.expected) and self.spread < abs(self.expected))

    def _covers(self) -> bool:
        """Whether the spread is as large as what is expected and as the distance from it."""
        if self.spread is None or not (
            isinstance(self.measured, int | float) and isinstance(self.expected, int | float)
        ):
            return False
        return self.expected != 0 and self.spread >= max(abs(self.expected), abs(self.measured - self.expected))

    @property
    def is_number(self) -> bool:
        """Whether both sides are there: neither NaN, nor None, nor an empty word."""
        return not any(_is_missing(side) for side in (self.measured, self.expected))


_NOTHING = frozenset({"", "nan", "none", "null", "n/a", "na", "nat", "<na>"})
"""Words that stand for a value which is not there."""


def _is_missing(side: object) -> bool:
    """Whether a value is None, no word or a word for none, or NaN of any kind, also another library's."""
    if side is None:
        return True
    if isinstance(side, str):
        return side.strip().lower().lstrip("+-") in _NOTHING
    return not isinstance(side, int) and isinstance(side, SupportsFloat) and math.isnan(float(side))


def _own_number(value: Any) -> Any:
    """A number of another library as one of Python's; anything else as it is."""
    if value is None or isinstance(value, int | float | str):
        return value
    single = value.item() if getattr(value, "shape", None) == () else value
    return float(single) if isinstance(single, SupportsFloat) and not isinstance(single, int) else single


def _answer(agrees: object, quantity: str) -> bool | None:
    """True, False or None; a truth value of another library is taken over, and nothing else passes for yes."""
    if agrees is None or isinstance(agrees, bool):
        return agrees
    single = agrees.item() if hasattr(agrees, "item") and getattr(agrees, "size", None) is not None else agrees
    if isinstance(single, bool):
        return single
    raise InvalidInput(f"agrees of row {quantity!r} must be True, False or None; got {agrees!r}.")


def interval_row(
    quantity: str,
    measured: float,
    interval: tuple[float, float],
    *,
    above: float | None = None,
    below: float | None = None,
) -> Row:
    """A row that agrees if the interval lies on the stated side, disagrees if on the other, and else cannot tell.

    The same rule for good and bad news: swapping the sides swaps agreement and disagreement. An interval need not hold
    its estimate (resampled intervals of an extreme often do not): the interval alone decides.

    Args:
        quantity: what was measured.
        measured: its estimate.
        interval: lower and upper end of its confidence interval.
        above: the statement says more than this.
        below: the statement says less than this.

    Raises:
        InvalidInput: not exactly one side is stated, or the interval is not two numbers or runs backwards.
    """
    if (above is None) is (below is None):
        raise InvalidInput(f"row {quantity!r} must state exactly one of above and below.")
    try:
        low, high = map(float, interval)
    except (TypeError, ValueError):
        raise InvalidInput(f"interval of row {quantity!r} must be two numbers; got {in_words(interval)}.") from None
    if low > high:
        raise InvalidInput(f"interval of row {quantity!r} must run upwards; got {interval}.")
    bound = above if above is not None else below
    assert bound is not None
    known = not (math.isnan(low) or math.isnan(high))
    over, under = bool(low > bound) and known, bool(high < bound) and known
    agrees = None if over is under else over is (above is not None)
    side = "above" if above is not None else "below"
    ends = alike(low, high, error=(high - low) / 2) if math.isfinite(high - low) else [number(low), number(high)]
    return Row(quantity, measured, f"{side} {number(bound, 6)}", f"interval {ends[0]} to {ends[1]}", agrees)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Truth:
    """What is true where a statement, as it stands, is not: made by ``misprint``, ``condition`` or ``instead``."""

    verdict: Verdict
    says: str
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        if self.verdict not in (Verdict.MISPRINT, Verdict.CONDITIONAL, Verdict.REFUTED):
            raise InvalidInput(f"what is true in place of a false statement cannot make it {self.verdict.value!r}.")
        if not self.says.strip():
            raise InvalidInput("says must name what is true in place of the statement; it is empty.")
        marked = tuple(dataclasses.replace(row, concerns="what is true") for row in self.rows)
        object.__setattr__(self, "rows", marked)


def misprint(says: str, rows: Iterable[Row]) -> Truth:
    """The statement with its symbols right: only for a slip of print, sign or index that changes no meaning."""
    return Truth(Verdict.MISPRINT, says, tuple(rows))


def condition(says: str, rows: Iterable[Row]) -> Truth:
    """The statement under a named condition which the document does not make."""
    return Truth(Verdict.CONDITIONAL, says, tuple(rows))


def instead(says: str, rows: Iterable[Row]) -> Truth:
    """Another statement, true in place of one that is false as meant; it is shown and does not soften the verdict."""
    return Truth(Verdict.REFUTED, says, tuple(rows))


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Judgement:
    """A verdict with the evidence in one sentence and the rows behind it."""

    verdict: Verdict
    evidence: str
    rows: tuple[Row, ...] = ()
    truth: str = ""
    """What is true instead, where the statement as it stands is not and the rows show it."""


def judge(evidence: str, rows: Iterable[Row], truth: Truth | None = None) -> Judgement:
    """The verdict that follows from rows.

    The statement as it stands is confirmed if every row agrees and undecided if one cannot tell and none disagrees.
    If one disagrees it is false as it stands. The verdict is then that of ``truth``, if all of its rows agree, and
    refuted otherwise.

    Args:
        evidence: one sentence with the measured numbers.
        rows: the statement as it stands in the document, in its full generality.
        truth: what is true if that is false.
    """
    rows = tuple(rows)
    if not rows:
        return Judgement(Verdict.NOT_RUN, "nothing was measured")
    shown = rows + (truth.rows if truth is not None else ())
    if holds(rows) is None:
        missing = [row.quantity for row in rows if not row.is_number]
        reason = f"undecided, because this is not a number: {', '.join(missing)} ({evidence})" if missing else evidence
        return Judgement(Verdict.UNDECIDED, reason, shown)
    if holds(rows):
        return Judgement(Verdict.CONFIRMED, evidence, shown)
    if truth is None or not truth.rows or not holds(truth.rows):  # what was not measured softens nothing
        return Judgement(Verdict.REFUTED, evidence, shown)
    return Judgement(truth.verdict, evidence, shown, truth.says)


def require_earned(judgement: Judgement) -> Judgement:
    """The judgement, if its rows bear it: a rule may build one by hand, and then nothing binds the verdict to them.

    Raises:
        InvalidInput: the rows of the statement say otherwise.
    """
    if judgement.verdict in (Verdict.UNDECIDED, Verdict.NOT_RUN):
        return judgement
    answer = holds([row for row in judgement.rows if row.concerns == "the statement"]) if judgement.rows else None
    if answer is not (judgement.verdict is Verdict.CONFIRMED):
        what = {True: "agree", False: "disagree", None: "cannot tell, or are not there"}[answer]
        raise InvalidInput(f"the rule says {judgement.verdict.value!r} and its rows {what}.")
    return judgement


def holds(rows: Sequence[Row]) -> bool | None:
    """Whether all rows agree: no if one disagrees, ``None`` if none does and one cannot tell."""
    answers = {row.agrees for row in rows}
    return False if False in answers else None if None in answers else True


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Needed:
    """Groups that a statement names: entries that a column must hold before a rule may say anything good of it."""

    rows: str
    """Title of a table of the summary, or name of a field that holds rows."""
    column: str | tuple[str, ...]
    entries: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.entries or not all(self._fits(entry) for entry in self.entries):
            what = "words or numbers" if isinstance(self.column, str) else f"tuples of {len(self.column)}"
            raise InvalidInput(
                f"entries of groups in column {self.column!r} must be one or more {what}, each an argument "
                f"of its own; got {in_words(self.entries)}."
            )

    def _fits(self, entry: Any) -> bool:
        if isinstance(self.column, str):
            return isinstance(entry, str | int | float)
        parts = entry if isinstance(entry, tuple) else ()
        return len(parts) == len(self.column) and all(isinstance(part, str | int | float) for part in parts)

    def of(self, row: Mapping[str, Any]) -> Any:
        """The entry of a row."""
        return row.get(self.column) if isinstance(self.column, str) else tuple(row.get(name) for name in self.column)

    def lacking(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """The entries that no row has."""
        found = [self.of(row) for row in rows]
        for entry in (entry for entry in self.entries if entry not in found):
            named = [(self.column, entry)] if isinstance(self.column, str) else zip(self.column, entry, strict=True)
            yield ", ".join(f"{name} {value}" for name, value in named)


def groups(rows: str, column: str | tuple[str, ...], *entries: Any) -> Needed:
    """That a statement names these groups, as in "for independent and orthogonal weights".

    Of several columns each entry is a tuple: ``groups("cases", ("family", "phi"), ("goe", "tanh"))``.
    """
    return Needed(rows, column, entries)


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Spanned:
    """A range that a statement is about: numbers of a column must reach both of its ends."""

    rows: str
    column: str
    low: float | int
    high: float | int
    only: tuple[tuple[str, str | float | int | bool], ...] = ()
    """Columns and the entry that a row must hold there to count."""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InvalidInput(f"range of column {self.column!r} must run upwards; got {self.low} to {self.high}.")

    def lacking(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """The ends that no row reaches."""
        numbers = [row.get(self.column) for row in _chosen(rows, self.only)]
        known = [value for value in numbers if isinstance(value, int | float) and not isinstance(value, bool)]
        if not any(value <= self.low for value in known):
            yield f"{self.column} up to {number(self.low)}"
        if not any(value >= self.high for value in known):
            yield f"{self.column} from {number(self.high)}"


def spans(rows: str, column: str, low: float | int, high: float | int, **only: str | float | int | bool) -> Spanned:
    """That a statement is about a range: ``spans("scales", "scale", 0.2, 0.9, family="haar")``.

    Choose ends that runs at every scale reach at which the claim is judged, so far apart that half of a run does not.
    """
    return Spanned(rows, column, low, high, tuple(sorted(only.items())))


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Crossed:
    """Columns whose entries a run combines: every combination of what is found there must be, each as often as any.

    Rows that are missing for what was measured in them leave a hole, whatever column they were left out by.
    """

    rows: str
    axes: tuple[tuple[str, ...], ...]
    """Columns that vary by themselves, each in a tuple with those that change with it."""
    only: tuple[tuple[str, str | float | bool], ...] = ()

    def lacking(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Combinations that are absent or rarer than others."""
        found = Counter(
            tuple(tuple(row.get(name) for name in axis) for axis in self.axes) for row in _chosen(rows, self.only)
        )
        if not found:
            yield f"any of {self.rows}"
            return
        most = max(found.values())
        names = [name for axis in self.axes for name in axis]
        for combined in itertools.product(*(dict.fromkeys(entries) for entries in zip(*found, strict=True))):
            if found[combined] < most:
                entries = [entry for axis in combined for entry in axis]
                yield ", ".join(f"{name} {entry}" for name, entry in zip(names, entries, strict=True))


def crossed(rows: str, *axes: str | tuple[str, ...], **only: str | float | int | bool) -> Crossed:
    """That a statement is about all combinations of a table: ``crossed("scales", "family", "scale")``.

    Columns that change together are given as one: ``crossed("deviation", "size", ("lr", "balance"))``.
    """
    if not axes:
        raise InvalidInput("crossed needs the names of one or more columns; got none.")
    tuples = tuple((axis,) if isinstance(axis, str) else tuple(axis) for axis in axes)
    return Crossed(rows, tuples, tuple(sorted(only.items())))


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Counted:
    """How many rows, or how many different entries of columns, a rule needs before it says anything."""

    rows: str
    least: int
    columns: tuple[str, ...] = ()
    """Different entries of these are counted; rows if there are none."""
    only: tuple[tuple[str, str | float | int | bool], ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.least, bool) or not isinstance(self.least, int) or self.least < 1:
            raise InvalidInput(f"least number of rows of {self.rows!r} must be at least 1; got {in_words(self.least)}.")

    def lacking(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """How many there are of how many."""
        chosen = _chosen(rows, self.only)
        found = {repr([row.get(name) for name in self.columns]) for row in chosen} if self.columns else chosen
        n = len(found)
        if n < self.least:
            what = f"different {' and '.join(self.columns)}" if self.columns else "rows"
            where = "".join(f", {name} {entry}" for name, entry in self.only)
            yield f"{self.rows}{where}: {n} of {self.least} {what}"


def at_least(rows: str, least: int, *columns: str, **only: str | float | int | bool) -> Counted:
    """That a rule needs a number of rows, or of different entries: ``at_least("runs", 3, "seed", model="CoRelNet")``.

    Choose a number that runs at every scale reach at which the claim is judged.
    """
    return Counted(rows, least, columns, tuple(sorted(only.items())))


def _chosen(rows: Sequence[Mapping[str, Any]], only: Sequence[tuple[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if all(row.get(name) == entry for name, entry in only)]


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
        counterfeit: summary of a real run to one in which the statement is false (a wrong exponent, swapped labels,
            twice the stated effect in the other direction): the rule must refute it, or it has no power.
        genuine: summary of a real run to one in which the statement is true: the rule must confirm it. Needed where
            real runs refute the claim or leave it undecided, so that good news could have been told as well.
        needs: what the statement names, by ``groups``, ``spans``, ``crossed`` and ``at_least``: without all of it the
            statement cannot be confirmed.
        as_a_whole: tables, or fields, of which bad news, too, needs all that ``needs`` asks of them: those of which the
            rule compares ends, seeks a best or an example, counts, or draws a line through points. One that lacks some
            tells nothing. Not those of which a single row can refute the statement.
        interchangeable: columns that number draws of one distribution, where the statement is about each draw by
            itself: a table without some of them is a smaller sample of the same. The verdict does not depend on it; a
            test asks every other claim to miss half of its rows.
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
    counterfeit: Callable[[Any], Any]
    genuine: Callable[[Any], Any] | None = None
    needs: tuple[Needed | Spanned | Crossed | Counted, ...] = ()
    as_a_whole: tuple[str, ...] = ()
    interchangeable: tuple[str, ...] = ()
    document: str = ""
    place: str = ""
    erratum: str | None = None
    scale: str = "smoke"

    def __post_init__(self) -> None:
        require_scale(self.scale, f"scale of claim {self.id}")
        kinds = (Needed, Spanned, Crossed, Counted)
        if not isinstance(self.needs, tuple) or not all(isinstance(needed, kinds) for needed in self.needs):
            raise InvalidInput(
                f"needs of claim {self.id} must be a tuple of groups(...), spans(...), crossed(...) or "
                f"at_least(...); got {in_words(self.needs)}."
            )
        known, whole = [needed.rows for needed in self.needs], self.as_a_whole
        if not isinstance(whole, tuple) or not all(table in known for table in whole):
            raise InvalidInput(
                f"as_a_whole of claim {self.id} must be a tuple of tables of which needs says what the whole is "
                f"({', '.join(dict.fromkeys(known)) or 'none'}); got {in_words(whole)}."
            )
        columns = self.interchangeable
        if not isinstance(columns, tuple) or not all(isinstance(column, str) for column in columns):
            raise InvalidInput(
                f"interchangeable of claim {self.id} must be a tuple of names of columns; got {in_words(columns)}."
            )

    def __repr__(self) -> str:
        return f"Claim({self.id!r}: {self.statement})"

    def within(self, document: str, place: str) -> Claim:
        """The claim as one of an experiment on a place of a document, which it takes over unless it names its own."""
        return dataclasses.replace(self, document=self.document or document, place=self.place or place)
