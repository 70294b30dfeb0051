"""Checking a published result: recompute a sample of the cells behind it and compare."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from separatrix.core.errors import InvalidInput, MissingData
from separatrix.core.names import suggest_options

from ..engines.computation import compute_record
from ..experiment.cell import Cell
from ..experiment.definition import Experiment
from ..experiment.record import Record
from .fingerprints import numbers
from .publication import Publication, read_publication

ROUNDING_SCALE = 1e-6
"""Numbers smaller than this share of the largest of their record are compared with that share: they may be rounding."""

Agreement: TypeAlias = Literal["bit for bit", "within tolerance", "different"]


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class CellCheck:
    """One cell computed again."""

    cell: Cell
    agreement: Agreement
    worst: float
    """Largest relative difference of the numbers that were published."""
    reason: str = ""
    """What differs, in words."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Verification:
    """What came of checking a published file."""

    publication: Publication
    n_cells: int
    checks: tuple[CellCheck, ...]
    rules: dict[str, str]
    """By claim id, how its rule stands to the run: see ``rule_standing``."""

    @property
    def ok(self) -> bool:
        """Whether every cell that was computed again agrees."""
        return all(check.agreement != "different" for check in self.checks)


def verify(
    path: Path, experiment: Experiment, *, sample: int | None = None, seed: int = 0, rtol: float = 1e-6
) -> Verification:
    """Compute cells of a published result again, in this process, and compare them with what was published.

    Records agree bit for bit on one kind of machine; elsewhere the numbers kept in the file are compared, relative to
    the larger of each pair.

    Args:
        path: the published file.
        experiment: which made it.
        sample: how many cells, drawn at random by ``seed``; all if not given.
        seed: of that draw.
        rtol: largest relative difference that counts as the same.

    Raises:
        InvalidInput: ``sample`` is not positive.
        MissingData: the file belongs to another version of the experiment, or was published without its records.

    Cost: that of the cells.
    """
    if sample is not None and sample < 1:
        raise InvalidInput(f"sample must be a positive number of cells; got {sample}.")
    published = read_publication(path, experiment)
    if published.stale:
        raise MissingData(
            f"{path} was made by version {published.version} of {published.experiment}; this code has another version."
        )
    if not published.records:
        raise MissingData(f"{path} was published without its records; only publishing it again can mend that.")
    keys = sorted(published.records)
    chosen = keys if sample is None or sample >= len(keys) else random.Random(seed).sample(keys, sample)
    checks = tuple(_check(experiment, published.records[key], rtol) for key in chosen)
    return Verification(published, len(keys), checks, dict(_rules(published)))


def rule_standing(judged: dict[str, Any]) -> str:
    """How the rule of a published verdict stands to its run, in words."""
    of_run = judged.get("rules_of_run", [])
    if "rule" not in judged or not of_run:
        return "the rule was not recorded when the run began"
    if of_run == [judged["rule"]]:
        return "judged by the rule that stood before the run"
    return "judged by another rule than the one that stood when the run began"


def _rules(published: Publication) -> Iterator[tuple[str, str]]:
    return ((name, rule_standing(judged)) for name, judged in published.claims.items())


def _check(experiment: Experiment, kept: dict[str, Any], rtol: float) -> CellCheck:
    cell = Cell(experiment.name, experiment.version, kept["args"], kept["seed"], experiment.entry)
    record = compute_record(cell, {})
    if record.digest == kept["digest"]:
        return CellCheck(cell, "bit for bit", 0.0)
    return _compared(cell, record, kept["numbers"], rtol)


def _compared(cell: Cell, record: Record, published: dict[str, float], rtol: float) -> CellCheck:
    found = dict(numbers(record.payload))
    missing = [path for path in published if path not in found]
    if missing or not published:
        reason = f"{missing[0]} is no number now" if missing else "the record differs and holds no numbers to compare"
        return CellCheck(cell, "different", math.inf, reason)
    floor = ROUNDING_SCALE * max(abs(value) for value in found.values())
    differences = {path: _relative(found[path], value, floor) for path, value in published.items()}
    path = max(differences, key=differences.__getitem__)
    if differences[path] <= rtol:
        return CellCheck(cell, "within tolerance", differences[path])
    reason = f"{path} is {found[path]:.10g}, published was {published[path]:.10g}"
    return CellCheck(cell, "different", differences[path], reason)


def _relative(a: float, b: float, floor: float) -> float:
    scale = max(abs(a), abs(b), floor)
    return abs(a - b) / scale if scale > 0 else 0.0
