"""Checking a published result: recompute a sample of the cells behind it, and judge its summary again.

A file is right if its cells are those of its parameters, each cell that is computed again gives what was published of
it, the summary follows from the records (where all of them were computed again), and the verdicts and their rows follow
from the summary by the rules of this code.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from separatrix.core.errors import InvalidInput, MissingData, SeparatrixError
from separatrix.core.names import suggest_options

from ..engines.computation import compute_record
from ..experiment.cell import Cell
from ..experiment.definition import Experiment
from ..experiment.instruction_sets import named, settings_for
from ..experiment.record import Record
from .fingerprints import MOST_RECORDS, numbers
from .publication import Publication, read_publication
from .publishing import judged_claims

ROUNDING_SCALE = 1e-6
"""Numbers smaller than this share of the largest of their record are compared with that share: they may be rounding."""
ROUNDING = 1e-12
"""Numbers of records computed by other kernels that differ by less are the same: a record may hold nothing but errors
of rounding, whose ratio says nothing."""

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
    faults: tuple[str, ...] = ()
    """What is wrong with the file beside its cells, a sentence each: cells, summary, verdicts, rules."""
    promise: str = ""
    """What agreement can be asked for, with the devices on which the cells were computed then and now."""

    @property
    def ok(self) -> bool:
        """Whether every cell that was computed again agrees, and what follows from the records does."""
        return not self.faults and all(check.agreement != "different" for check in self.checks)


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
    expected = {cell.key: cell for cell in experiment.cells(experiment.params(published.scale, **published.params))}
    keys = [key for key in expected if key in published.records]
    chosen = keys if sample is None or sample >= len(keys) else random.Random(seed).sample(sorted(keys), sample)
    records = {key: compute_record(expected[key], {}) for key in chosen}
    checks = tuple(_check(expected[key], record, published.records[key], rtol) for key, record in records.items())
    faults = [
        *_wrong_header(published, experiment),
        *_wrong_cells(published, expected),
        *_wrong_claims(published, experiment, rtol),
    ]
    if len(records) == len(expected):
        faults += _wrong_summary(published, experiment, list(records.values()), rtol)
    promise = promised(
        published.provenance.get("devices", ["cpu"]),
        {record.provenance["device"] for record in records.values()},
        kernels_of(published.provenance),
        kernels_of({"machines": [record.provenance["machine"] for record in records.values()]}),
    )
    return Verification(published, len(published.records), checks, dict(_rules(published)), tuple(faults), promise)


def kernels_of(provenance: Mapping[str, Any]) -> list[object]:
    """What each machine of a provenance, which may be somebody else's, says of its kernels."""
    machines = provenance.get("machines")
    found = machines if isinstance(machines, list) else []
    return [machine.get("kernels") if isinstance(machine, Mapping) else None for machine in found]


def promised(
    then: Iterable[str], now: Iterable[str], kernels_then: Iterable[object], kernels_now: Iterable[object]
) -> str:
    """What agreement of cells that were computed on some devices by some kernels, and again by others, can be asked
    for."""
    before, here = sorted(set(then)), sorted(set(now))
    if before == here == ["cpu"]:
        return _promised_by_kernels(_in_order(kernels_then), _in_order(kernels_now))
    if before == here:
        return f"computed on {', '.join(here)} then and now: equal up to rounding, which training may carry far"
    return (
        f"computed on {', '.join(before)} then and on {', '.join(here)} now: what was trained may differ by more than "
        "rounding, so a difference is no proof of a fault"
    )


def _in_order(told: Iterable[object]) -> list[str]:
    """Kernels that differ, each library by library in order."""
    return sorted({_in_words(named(chosen)) for chosen in told})


def _in_words(chosen: Mapping[str, str]) -> str:
    return ", ".join(f"{library} {name}" for library, name in sorted(chosen.items()))


def _promised_by_kernels(then: list[str], now: list[str]) -> str:
    """What agreement of processors can be asked for: equal bits where libraries choose the same kernels."""
    if not then or not all(then):
        return (
            "computed on processors then and now, with kernels that were not recorded then: equal bits are promised "
            "where libraries choose the same, and elsewhere numbers equal up to rounding, which training may carry far"
        )
    if then == now:
        return f"computed by the same kernels then and now ({'; '.join(now)}): equal bits are promised"
    if len(then) == len(now) == 1:
        before, here = named(then[0]), named(now[0])
        shared = {library: name for library, name in before.items() if here.get(library) == name}
        if shared and shared.keys() == before.keys() & here.keys():  # a process names the libraries it has loaded
            return (
                f"computed by the same kernels then and now as far as both are recorded ({_in_words(shared)}): equal "
                "bits are promised where the others are the same too, and elsewhere numbers equal up to rounding, "
                "which training may carry far"
            )
    settings = settings_for(then[0]) if len(then) == 1 else ""
    how = f"; for equal bits try {settings} separatrix verify" if settings else ""
    return (
        f"computed by other kernels then ({'; '.join(then)}) than now ({'; '.join(now)}): numbers are equal up to "
        f"rounding, which training may carry far{how}"
    )


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


def _wrong_header(published: Publication, experiment: Experiment) -> Iterator[str]:
    """What the file says of itself and its experiment does not: title, document, place, scale, seeds.

    Dates, commits, machines and history cannot be computed again; the version control of the file vouches for them.
    """
    for part in ("title", "document", "place"):
        if getattr(published, part) != getattr(experiment, part):
            yield f"its {part} is {getattr(published, part)!r}; that of the experiment is {getattr(experiment, part)!r}"
    plain: dict[str, Any] = {
        scale: json.loads(json.dumps(settings.model_dump(exclude={"seeds"})))
        for scale, settings in experiment.scales.items()
    }
    own = {name: value for name, value in published.params.items() if name != "seeds"}
    others = [scale for scale, params in plain.items() if params == own and scale != published.scale]
    if others and plain.get(published.scale) != own:
        yield f"it calls itself {published.scale}, with the parameters of {others[0]}"
    seeds = sorted({record["seed"] for record in published.records.values()})
    claimed = published.provenance.get("seeds", seeds)
    if sorted(claimed) != seeds:
        yield f"it claims the seeds {list(claimed)}; those of its cells are {seeds}"


def _wrong_cells(published: Publication, expected: dict[str, Cell]) -> Iterator[str]:
    """Cells of the file that the parameters do not have, or that it lacks."""
    due = set(sorted(expected)[:MOST_RECORDS]) if len(expected) > MOST_RECORDS else expected.keys()
    missing = len(due - published.records.keys())
    foreign = len(published.records.keys() - expected.keys())
    counted = published.n_records if published.n_records is not None else len(published.records)
    if missing:
        yield f"{missing} of the {len(due)} cells that a file of its parameters has are missing"
    if counted != len(expected) and not missing:
        yield f"it tells of {counted} records, and its parameters have {len(expected)} cells"
    if foreign:
        yield f"{foreign} of its cells are none that its parameters have"
    for key, cell in expected.items():
        kept = published.records.get(key)
        if kept is not None and (dict(cell.args), cell.seed) != (kept["args"], kept["seed"]):
            yield f"the cell {dict(cell.args)}, seed {cell.seed}, stands there as {kept['args']}, seed {kept['seed']}"


def _wrong_claims(published: Publication, experiment: Experiment, rtol: float) -> Iterator[str]:
    """Verdicts, rows and rules that do not follow from the published summary by the rules of this code."""
    try:
        judged = judged_claims(experiment, published)
    except SeparatrixError as error:
        yield str(error)
        return
    for name in judged.keys() ^ published.claims.keys():
        yield f"{name} is {'missing' if name in judged else 'no claim of this experiment at its scale'}"
    for name in judged.keys() & published.claims.keys():
        ours, theirs = judged[name], published.claims[name]
        wrong = [part for part in {*ours, *theirs} if not _same(ours.get(part), theirs.get(part), rtol)]
        if wrong:
            yield f"{name} does not follow from the summary by the rule of this code: {', '.join(sorted(wrong))}"


def _wrong_summary(published: Publication, experiment: Experiment, records: list[Record], rtol: float) -> Iterator[str]:
    """Parts of the summary that do not follow from the records, all of which were computed again."""
    found = json.loads(
        json.dumps(experiment.summarise([(record.cell, record.payload) for record in records]).to_dict())
    )
    for part in sorted({*found, *published.summary}):
        if not _same(found.get(part), published.summary.get(part), rtol, ROUNDING):
            yield f"{part} of its summary does not follow from its records"


def _same(ours: Any, theirs: Any, rtol: float, rounding: float = 0.0) -> bool:
    """Whether plain values are equal, numbers up to rounding beside the largest of theirs."""
    if _skeleton(ours) != _skeleton(theirs):
        return False
    pairs = list(zip(numbers(ours), numbers(theirs), strict=True))
    floor = ROUNDING_SCALE * max((abs(value) for _, (_, value) in pairs), default=0.0)
    return all(_relative(a, b, floor, rounding) <= rtol for (_, a), (_, b) in pairs)


def _skeleton(value: Any) -> Any:
    """A plain value without its finite numbers."""
    if isinstance(value, Mapping):
        return {str(key): _skeleton(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_skeleton(item) for item in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return 0 if is_number and math.isfinite(value) else str(value)


def _check(cell: Cell, record: Record, kept: dict[str, Any], rtol: float) -> CellCheck:
    check = _compared(cell, record, kept["numbers"], rtol)
    if record.digest != kept["digest"]:
        return check
    if check.agreement == "different" and kept["numbers"]:
        return dataclasses.replace(check, reason=f"{check.reason}, although its digest is right")
    return CellCheck(cell, "bit for bit", 0.0)


def _compared(cell: Cell, record: Record, published: dict[str, float], rtol: float) -> CellCheck:
    found = dict(numbers(record.payload))
    missing = [path for path in published if path not in found]
    if missing or not published:
        reason = f"{missing[0]} is no number now" if missing else "the record differs and holds no numbers to compare"
        return CellCheck(cell, "different", math.inf, reason)
    floor = ROUNDING_SCALE * max(abs(value) for value in found.values())
    differences = {path: _relative(found[path], value, floor, ROUNDING) for path, value in published.items()}
    path = max(differences, key=differences.__getitem__)
    if differences[path] <= rtol:
        return CellCheck(cell, "within tolerance", differences[path])
    reason = f"{path} is {found[path]:.10g}, published was {published[path]:.10g}"
    return CellCheck(cell, "different", differences[path], reason)


def _relative(a: float, b: float, floor: float, rounding: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return 0.0 if a == b or (math.isnan(a) and math.isnan(b)) else math.inf
    if abs(a - b) <= rounding:
        return 0.0
    return abs(a - b) / max(abs(a), abs(b), floor)
