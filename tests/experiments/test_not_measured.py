"""A number that was not measured decides nothing: NaN in any column of any published run, for every claim."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from separatrix.core import InvalidInput
from separatrix.experiments import catalogue
from separatrix.lab import Judgement, Needed, Summary, Verdict, judgements_of, read_publication
from separatrix.lab.experiment.reading import judge_what_was_measured

RESULTS = Path(__file__).parents[2] / "results"
PUBLISHED = [name for name in catalogue() if (RESULTS / f"{name}.json").exists()]
OPEN = (Verdict.UNDECIDED, Verdict.NOT_RUN)


def columns(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where numbers stand: by name, the places of a list together."""
    if isinstance(value, dict):
        for key, own in value.items():
            yield from columns(own, (*path, key))
    elif isinstance(value, list | tuple):
        for own in value:
            yield from columns(own, (*path, "*"))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def without(value: Any, path: tuple[str, ...], wanted: int) -> Any:
    """The value with NaN in a column, in all places of its first list or in one."""
    if not path:
        return math.nan if isinstance(value, int | float) and not isinstance(value, bool) else value
    if isinstance(value, dict):
        return {**value, path[0]: without(value[path[0]], path[1:], wanted)} if path[0] in value else value
    asked = range(len(value)) if wanted < 0 else (wanted % len(value),)
    return [without(own, path[1:], -1) if index in asked else own for index, own in enumerate(value)]


def decided(name: str, summary: Summary) -> dict[str, Judgement]:
    """What is said of every claim, at whatever scale it is asked."""
    return judgements_of(catalogue()[name], "paper", summary)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_verdict_follows_from_its_summary(name: str) -> None:
    """A column that does not apply may be NaN in a published table: a rule which does not need it does not ask for it,
    not even by copying its row."""
    experiment = catalogue()[name]
    published = read_publication(RESULTS / f"{name}.json", experiment)
    summary = experiment.summary.from_dict(published.summary)
    said = {key: judged.verdict.value for key, judged in judgements_of(experiment, published.scale, summary).items()}
    assert said == {key: judged["verdict"] for key, judged in published.claims.items()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PUBLISHED)
def test_nan_in_a_column_leaves_every_claim_that_reads_it_undecided(name: str) -> None:
    """A rule that does not read the column says what it said, word for word; any other decides nothing."""
    experiment = catalogue()[name]
    published = experiment.summary.from_dict(read_publication(RESULTS / f"{name}.json", experiment).summary)
    before, values = decided(name, published), {key: getattr(published, key) for key in type(published).model_fields}
    assert before
    wrong = []
    for path in dict.fromkeys(columns(values)):
        for wanted in (-1, zlib.crc32("/".join(path).encode()) if "*" in path else -1):
            try:
                summary = type(published)(**without(values, path, wanted))
            except InvalidInput:  # a count cannot be NaN: refused at the door
                continue
            for claim, judgement in decided(name, summary).items():
                if judgement != before[claim] and judgement.verdict not in OPEN:
                    wrong.append((claim, "/".join(path), "all" if wanted < 0 else "one", judgement.verdict.value))
    assert wrong == []


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [name for name in PUBLISHED if any(claim.needs for claim in catalogue()[name].claims)])
def test_a_group_that_a_statement_names_is_missed(name: str) -> None:
    """Without it nothing good is said; with all of them what is published is."""
    experiment = catalogue()[name]
    published = read_publication(RESULTS / f"{name}.json", experiment)
    real = experiment.summary.from_dict(published.summary)
    said = {key: judgement.verdict.value for key, judgement in decided(name, real).items()}
    assert {key: said[key] for key in published.claims} == {
        k: judged["verdict"] for k, judged in published.claims.items()
    }
    for claim in experiment.claims:
        for needed in (needed for needed in claim.needs if isinstance(needed, Needed)):
            is_field = needed.rows in type(real).model_fields
            rows = getattr(real, needed.rows) if is_field else real.tables[needed.rows]
            for value in needed.entries:
                left = [row for row in rows if needed.of(row) != value]
                assert len(left) < len(rows)
                changed = {needed.rows: left} if is_field else {"tables": {**real.tables, needed.rows: left}}
                lacking = real.model_copy(update=changed)
                found = judge_what_was_measured(claim, lacking)
                assert found.verdict in (*OPEN, Verdict.REFUTED), (claim.id, value)
