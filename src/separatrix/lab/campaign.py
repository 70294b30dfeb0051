"""A campaign: several experiments run as one, and the report of each, computed or read back from the store."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, final

from separatrix.core.errors import SeparatrixError
from separatrix.core.names import suggest_options
from separatrix.core.result import plain
from separatrix.core.scalars import in_words

from .engines.base import AbstractEngine
from .engines.progress import RunProgress
from .experiment.cell import Cell, Cells
from .experiment.claim import Claim, Judgement, Verdict, require_earned
from .experiment.definition import Experiment, Params, Payload
from .experiment.reading import judge_what_was_measured
from .experiment.scales import SCALES, require_scale
from .experiment.summary import Summary
from .store.condensed import find_condensed, keep_condensed, state_of
from .store.costs import expected_seconds, longest_first
from .store.gathering import Gathering
from .store.records import Store
from .store.run_keys import RunKeys
from .store.runs import is_complete, is_known, ranked_runs, remember_run, run_command, run_name, touch_run

FEW = 4
"""Earlier records that a run which goes on takes in with every new one."""


class ExperimentError(SeparatrixError, RuntimeError):
    """An experiment's own code failed on complete records: a bug, said in one sentence."""


@final
@suggest_options
@dataclasses.dataclass(frozen=True, repr=False)
class RunReport:
    """What one run of an experiment gave. ``summary`` and ``judgements`` exist only when every cell is done."""

    experiment: Experiment
    scale: str
    params: Params
    cells: Sequence[Cell]
    n_done: int
    summary: Summary | None
    judgements: Mapping[str, Judgement]
    """By claim id; claims that need a larger scale are left out."""
    seconds: float
    """Computing time: the sum over cells, wherever and whenever each was computed."""
    provenance: Mapping[str, Any]
    """Package versions, code fingerprints, data digests, seeds, machines and times of all records."""
    command: str
    failures: Mapping[str, str]
    """Error text by cell key; when the records are complete, under ``"summarise"`` if the summary failed, and under
    the id of a claim if its rule did."""

    @property
    def complete(self) -> bool:
        """Whether every cell has a record."""
        return self.n_done == len(self.cells)

    def judgement_of(self, claim: Claim) -> Judgement | None:
        """The judgement on a claim, if there is one; where its rule failed, none can be made: undecided."""
        if claim.id in self.failures:
            return Judgement(Verdict.UNDECIDED, self.failures[claim.id])
        return self.judgements.get(claim.id)

    def __repr__(self) -> str:
        return f"RunReport({self.experiment.name!r}, {self.scale}: {self.n_done} of {len(self.cells)} cells)"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "experiment": self.experiment.name,
            "version": self.experiment.version,
            "scale": self.scale,
            "params": plain(self.params.model_dump()),
            "n_cells": len(self.cells),
            "n_done": self.n_done,
            "summary": self.summary.to_dict() if self.summary is not None else None,
            "judgements": plain(dict(self.judgements)),
            "seconds": self.seconds,
            "provenance": plain(dict(self.provenance)),
            "command": self.command,
            "failures": dict(self.failures),
        }


def run_experiments(
    requests: Sequence[tuple[Experiment, Params, str]],
    store: Store,
    engine: AbstractEngine,
    progress: RunProgress,
    data: Mapping[str, str] | None = None,
) -> list[RunReport]:
    """Compute whatever has no record yet, for all experiments together, and report each.

    Args:
        requests: experiment, parameters and the scale they were taken from.
        store: finished cells are read from it and new ones written to it.
        engine: runs the cells.
        progress: the display, already entered.
        data: SHA-256 of data sets by name, for the provenance.

    Returns:
        One report per request, in order. A cell that failed stands in ``failures``; the others are kept.

    Raises:
        RunInterrupted, StoreError, EngineError: see ``AbstractEngine.run``; finished cells are kept.
    """
    plans = [PlannedRun(experiment, params, scale, store) for experiment, params, scale in requests]
    for plan in plans:
        plan.remember()
    n_cells = len(plans[0].keys) if len(plans) == 1 else len({key for plan in plans for key in plan.keys.listed()})
    missing = {cell.key: cell for cell in longest_first([c for plan in plans for c in plan.missing()], store)}
    for plan in plans if missing else ():
        plan.expect(missing)
    failures: dict[str, str] = {}
    expected = expected_seconds(list(missing.values()), store)
    ahead = math.fsum(expected.values()) if len(expected) == len(missing) else None
    progress.begin(n_cells, n_cells - len(missing), ahead)
    if missing:
        for finished in engine.run(list(missing.values()), store, data or {}):
            if finished.error is not None:
                failures[finished.key] = finished.error
            for plan in plans:
                plan.gather(finished.key)
            progress.advance(missing[finished.key].experiment, finished.error)
    return [_report(plan, failures) for plan in plans]


def report_from_store(experiment: Experiment, params: Params, scale: str, store: Store) -> RunReport:
    """The report of a run from its records alone; what has no record counts as not done.

    Raises:
        ExperimentError: the experiment's ``summarise`` failed; a claim whose ``judge`` did stands in ``failures``.
    """
    require_scale(scale)
    return _reported(PlannedRun(experiment, params, scale, store))


def _reported(plan: PlannedRun) -> RunReport:
    report = _report(plan, {})
    if "summarise" in report.failures:
        raise ExperimentError(report.failures["summarise"])
    return report


def best_report(experiment: Experiment, store: Store, scale: str | None = None) -> RunReport | None:
    """The report of the run that judges an experiment (see ``runs.best_run``), if there is one."""
    for name, params, own_scale in ranked_runs(experiment, store, scale):
        plan = PlannedRun(experiment, params, own_scale, store)
        if plan.state() is not None or is_complete(store, name):
            return _reported(plan)
    return None


@final
class PlannedRun:
    """What one run needs: its keys, and its cells as far as they are asked for.

    Args:
        experiment: of the run.
        params: its parameters.
        scale: from which they were taken.
        store: where its records are.
    """

    def __init__(self, experiment: Experiment, params: Params, scale: str, store: Store) -> None:
        self.experiment, self.params, self.scale, self.store = experiment, params, scale, store
        self.name = run_name(experiment, scale, params)
        self._is_known = is_known(store, experiment, scale, params)
        made = None if self._is_known else tuple(experiment.cells(params))
        self.keys = RunKeys(store, self.name if made is None else [cell.key for cell in made])
        self.cells: Cells = Cells(lambda: made or experiment.cells(params), len(self.keys))
        self._state: tuple[str, int] | None = None
        self._gathering: Gathering | None = None
        self._expected: dict[str, int] = {}

    def remember(self) -> None:
        """Keep the run in the store."""
        if self._is_known:
            touch_run(self.store, self.experiment, self.scale, self.params)
        else:
            command = run_command(self.experiment, self.params, self.scale)
            remember_run(self.store, self.experiment, self.scale, self.params, self.cells, command)

    def missing(self) -> list[Cell]:
        """Cells without a record; a file that was touched is read and verified."""
        if self.state() is not None:
            return []
        doubtful = [key for key, digest in self.keys.digests() if digest is None]
        absent = {key for key in doubtful if self.store.read(key) is None}
        return [cell for cell in self.cells if cell.key in absent] if absent else []

    def expect(self, missing: Mapping[str, Cell]) -> None:
        """Get ready to gather the records of cells that are about to be computed."""
        keys = self.keys.listed()
        self._expected = {key: position for position, key in enumerate(keys) if key in missing}
        if self._expected:
            self._gathering = Gathering(self.store, keys, self._expected.values())

    def gather(self, key: str) -> None:
        """A cell has ended: take its record in, and a few of those that were there before."""
        position = self._expected.pop(key, None)
        if position is not None and self._gathering is not None:
            self._gathering.take(position)
            self._gathering.catch_up(FEW)

    def gathered(self) -> Gathering:
        """All records that are there."""
        state, own = self.state(), self._gathering
        if own is not None:
            own.catch_up()
            if state is not None and own.digests != state[1]:  # one was changed while the run was under way
                own = None
        self._gathering = None
        if own is None:
            own = Gathering(self.store, self.keys.listed())
            own.catch_up()
        return own

    def state(self) -> tuple[str, int] | None:
        """Of the records, if all are whole; they are not looked at again once they were found to be."""
        if self._state is None:
            self._state = state_of(self.experiment, self.keys)
        return self._state


def _report(plan: PlannedRun, failures: Mapping[str, str]) -> RunReport:
    experiment, store, n_cells = plan.experiment, plan.store, len(plan.keys)
    own_failures = {key: failures[key] for key in plan.keys.listed() if key in failures} if failures else {}
    state = plan.state()
    kept = find_condensed(store, plan.name, experiment, state[0]) if state is not None else None
    summary, judgements = None, dict[str, Judgement]()
    if kept is not None:
        (summary, origin), n_done = kept, n_cells
    else:
        gathered = plan.gathered()
        origin, n_done = gathered.origins.combined(), gathered.results.n_present
        try:
            if n_done == n_cells:
                summary = _summary(experiment, gathered.results)
                if state is not None and not store.read_only:
                    keep_condensed(store, plan.name, experiment, state[0], summary, origin)
        except ExperimentError as error:
            own_failures["summarise"] = str(error)
    if summary is not None:
        judgements, unjudged = _judged(experiment, plan.scale, summary)
        own_failures |= unjudged
    return RunReport(
        experiment=experiment,
        scale=plan.scale,
        params=plan.params,
        cells=plan.cells,
        n_done=n_done,
        summary=summary,
        judgements=judgements,
        seconds=origin["seconds"],
        provenance=origin,
        command=run_command(experiment, plan.params, plan.scale),
        failures=own_failures,
    )


def _summary(experiment: Experiment, payloads: Sequence[tuple[Cell, Payload]]) -> Summary:
    try:
        found = experiment.summarise(payloads)
        if not isinstance(found, experiment.summary):
            raise TypeError(f"summarise must return {experiment.summary.__name__}; got {type(found).__name__}")
        return found
    except Exception as error:
        raise ExperimentError(_bug(experiment, "its summary", error)) from error


def judgements_of(experiment: Experiment, scale: str, summary: Summary) -> dict[str, Judgement]:
    """The verdict on each claim that may be judged at this scale.

    Raises:
        ExperimentError: a claim's ``judge`` failed.
    """
    require_scale(scale)
    found, unjudged = _judged(experiment, scale, summary)
    for sentence in unjudged.values():
        raise ExperimentError(sentence)
    return found


def _judged(experiment: Experiment, scale: str, summary: Summary) -> tuple[dict[str, Judgement], dict[str, str]]:
    """Verdicts by claim id, and what went wrong in the rules that failed: one bad rule hides no other verdict."""
    found, unjudged = dict[str, Judgement](), dict[str, str]()
    for claim in experiment.claims:
        if SCALES.index(claim.scale) <= SCALES.index(scale):
            try:
                judgement = judge_what_was_measured(claim, summary)
                if not isinstance(judgement, Judgement):
                    raise TypeError(f"judge must return a Judgement; got {in_words(judgement)}")
                found[claim.id] = require_earned(judgement)
            except Exception as error:
                unjudged[claim.id] = _bug(experiment, f"its claim {claim.id}", error)
    return found, unjudged


def _bug(experiment: Experiment, what: str, error: Exception) -> str:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"experiment {experiment.name}: {what} failed on complete records ({reason}); this is a bug of the experiment."
    )
