"""``separatrix run`` and ``separatrix resume``: compute what has no record yet."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.core.errors import InvalidInput

from ...engine_options import EngineOptions
from ...lookup import find_experiments, reading
from ...options import (
    Address,
    AsJson,
    CellTimeout,
    EngineName,
    Jobs,
    Names,
    Quiet,
    ScaleName,
    Seeds,
    Settings,
    StoreFolder,
)
from ...parse import parse_seeds, parse_settings
from ...printing import print_json, print_run, print_runs, program, say, say_failures, tell

if TYPE_CHECKING:
    from separatrix.lab.experiment.definition import Experiment, Params


MANY = 3
"""More runs than this are printed a line each."""


def run(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="Every experiment of the package.")] = False,
    scale: ScaleName = "smoke",
    seeds: Seeds = None,
    settings: Settings = None,
    jobs: Jobs = None,
    cell_timeout: CellTimeout = None,
    engine: EngineName = "local",
    address: Address = None,
    store: StoreFolder = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run experiments; finished cells are kept and never computed twice."""
    if bool(names) == everything:
        raise InvalidInput("name the experiments to run, or give --all; separatrix list shows them.")
    chosen, changes = parse_seeds(seeds), parse_settings(settings)
    where = EngineOptions(engine, address, jobs, cell_timeout, scale)
    experiments = find_experiments(names)
    requests = [(experiment, experiment.params(scale, chosen, **changes), scale) for experiment in experiments]
    compute(requests, store, where, quiet, as_json)


def resume(
    names: Names = None,
    jobs: Jobs = None,
    cell_timeout: CellTimeout = None,
    engine: EngineName = "local",
    address: Address = None,
    store: StoreFolder = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Continue every run that was interrupted or had failures."""
    from separatrix.lab.store.runs import unfinished_runs

    where = EngineOptions(engine, address, jobs, cell_timeout, "paper")
    with reading(store) as opened:
        requests = unfinished_runs(find_experiments(names), opened) if opened is not None else []
    if not requests and not as_json:
        tell("nothing to resume: every remembered run is complete.")
        return
    compute(requests, store, where, quiet, as_json)


def compute(
    requests: Sequence[tuple[Experiment, Params, str]],
    folder: Path | None,
    where: EngineOptions,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run, print, and leave with 0 (all well), 1 (a cell or a summary failed) or 130, 143, 129 (stopped)."""
    from separatrix.lab.campaign import run_experiments
    from separatrix.lab.engines.base import RunInterrupted
    from separatrix.lab.engines.progress import RunProgress
    from separatrix.lab.store.records import Store

    try:
        with where.engine() as engine, Store(folder) as store, RunProgress(quiet) as progress:
            reports = run_experiments(requests, store, engine, progress, _data_digests(requests))
    except RunInterrupted as interruption:
        command = _resume_command([request[0] for request in requests], folder, where)
        say(f"{interruption} Continue with: {command}")
        raise typer.Exit(interruption.exit_code) from None
    if as_json:
        print_json([report.to_dict() for report in reports])
    elif len(reports) > MANY:
        print_runs(reports)
    else:
        for report in reports:
            print_run(report)
    for report in reports:
        say_failures(report)
    if any(report.failures for report in reports):
        raise typer.Exit(1)


def _resume_command(experiments: Sequence[Experiment], folder: Path | None, where: EngineOptions) -> str:
    own = [experiment.entry for experiment in experiments if experiment.typed_name == experiment.entry]
    store = ["--store", str(folder)] if folder is not None else []
    return shlex.join([*program(), "resume", *own, *where.words(), *store])


def _data_digests(requests: Sequence[tuple[Experiment, Params, str]]) -> dict[str, str]:
    """The digest of every data set that is read and found here, for the records; a missing one is the cell's error."""
    names = sorted({name for experiment, *_ in requests for name in experiment.data})
    if not names:
        return {}
    from separatrix.core.errors import MissingData
    from separatrix.tasks.store.location import locate

    digests = {}
    for name in names:
        with contextlib.suppress(MissingData):
            digests[name] = locate(name).digest
    return digests
