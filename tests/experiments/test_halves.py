"""Half of a table neither confirms a statement about all of it nor refutes what all of it bears out: every claim,
every numeric column.

A rule that goes through the rows it finds says of some what the statement says of all: of scales on one side of a
transition, of short delays, of what was measured as small. ``Claim.needs`` names what must be there, and
``Claim.as_a_whole`` the tables of which bad news needs it too: an end, a count or a best of half a table is none of the
whole, and what a half lacks is no evidence. Where rows are draws of one distribution and each is judged by itself,
``Claim.interchangeable`` names the column that numbers them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from separatrix.experiments import catalogue
from separatrix.lab import Claim, Summary, Verdict, read_publication
from separatrix.lab.experiment.reading import judge_what_was_measured

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = [name for name in catalogue() if (RESULTS / f"{name}.json").exists()]
LEAST_VALUES = 4
"""Of fewer different numbers one side of the median is often one group alone, as of two trainings."""


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def halves(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The rows up to the median of a column, and those beyond it; rows without a number there are in both."""
    for column in sorted({key for row in rows for key, value in row.items() if is_number(value)}):
        values = [row[column] for row in rows if is_number(row.get(column))]
        if len(set(values)) < LEAST_VALUES:
            continue
        middle = statistics.median(values)
        for side in (True, False):
            left = [row for row in rows if not is_number(row.get(column)) or (row[column] <= middle) is side]
            if 0 < len(left) < len(rows):
                yield f"{column} {'up to' if side else 'above'} {middle:.4g}", left


def tables_of(real: Summary) -> dict[str, list[Any]]:
    """Rows by the title of their table or the name of their field."""
    fields = {name: getattr(real, name) for name in type(real).model_fields if name != "tables"}
    kept = {name: list(rows) for name, rows in fields.items() if isinstance(rows, list | tuple)}
    return {**real.tables, **{name: rows for name, rows in kept.items() if all(isinstance(row, dict) for row in rows)}}


def with_rows(real: Summary, name: str, rows: Sequence[Any]) -> Summary:
    """The summary with other rows in a table or field."""
    changed = {"tables": {**real.tables, name: list(rows)}} if name in real.tables else {name: list(rows)}
    return real.model_copy(update=changed)


def refuting_halves(claim: Claim, real: Summary) -> list[str]:
    """Halves of tables that refute what the whole does not: of every column, and every second row."""
    if judge_what_was_measured(claim, real).verdict is Verdict.REFUTED:
        return []
    refuting = []
    for title, rows in tables_of(real).items():
        for half, left in (("even rows", rows[::2]), ("odd rows", rows[1::2]), *halves(rows)):
            if not 0 < len(left) < len(rows):
                continue
            try:
                judged = judge_what_was_measured(claim, with_rows(real, title, left))
            except Exception:  # a rule that stumbles over what is missing refutes nothing
                continue
            if judged.verdict is Verdict.REFUTED:
                refuting.append(f"{claim.id}: {title}, {half}")
    return refuting


def are_fewer_draws(claim: Claim, rows: Sequence[Mapping[str, Any]], left: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all that is gone are whole draws."""
    return any(
        len(left) == sum(row.get(column) in {kept.get(column) for kept in left} for row in rows)
        for column in claim.interchangeable
    )


def kept_by_half(claim: Claim, real: Summary) -> list[str]:
    """Halves of tables that confirm the claim by other evidence, although they lack more than draws."""
    whole = judge_what_was_measured(claim, real)
    if whole.verdict is not Verdict.CONFIRMED:
        return []
    kept = []
    for title, rows in real.tables.items():
        for half, left in halves(rows):
            if are_fewer_draws(claim, rows, left):
                continue
            try:
                judged = judge_what_was_measured(
                    claim, real.model_copy(update={"tables": {**real.tables, title: left}})
                )
            except Exception:  # a rule that stumbles over what is missing confirms nothing
                continue
            if judged.verdict is Verdict.CONFIRMED and judged != whole:
                kept.append(f"{claim.id}: {title}, {half}")
    return kept


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PUBLISHED)
def test_half_of_a_table_does_not_confirm_a_statement_about_all_of_it(name: str) -> None:
    experiment = catalogue()[name]
    real = experiment.summary.from_dict(read_publication(RESULTS / f"{name}.json", experiment).summary)
    assert [kept for claim in experiment.claims for kept in kept_by_half(claim, real)] == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PUBLISHED)
def test_half_of_a_table_does_not_refute_what_all_of_it_bears_out(name: str) -> None:
    experiment = catalogue()[name]
    real = experiment.summary.from_dict(read_publication(RESULTS / f"{name}.json", experiment).summary)
    assert [half for claim in experiment.claims for half in refuting_halves(claim, real)] == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name", [n for n in PUBLISHED if any(claim.interchangeable for claim in catalogue()[n].claims)]
)
def test_columns_of_draws_are_there(name: str) -> None:
    """A name of none would exempt nothing and tell a reader that something is."""
    experiment = catalogue()[name]
    real = experiment.summary.from_dict(read_publication(RESULTS / f"{name}.json", experiment).summary)
    columns = {column for rows in real.tables.values() for row in rows for column in row}
    assert {column for claim in experiment.claims for column in claim.interchangeable} <= columns


def test_groups_that_claims_name_are_those_which_are_run() -> None:
    """They are written down a second time, so that a verdict does not have to import what makes them."""
    from separatrix.experiments.ours.advice.pairs import PAIRS
    from separatrix.experiments.ours.check_advice import FAULTS
    from separatrix.experiments.ours.conservation_blocks import BLOCKS
    from separatrix.experiments.ours.linear_conservation import KINDS

    assert tuple(PAIRS) == FAULTS
    assert BLOCKS == KINDS
