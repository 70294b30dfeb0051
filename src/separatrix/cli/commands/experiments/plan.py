"""``separatrix plan``: what a run will cost, before it is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...engine_options import require_workers
from ...lookup import find_experiment, reading
from ...options import AsJson, Jobs, Name, ScaleName, Seeds, Settings, StoreFolder
from ...parse import parse_duration, parse_seeds, parse_settings
from ...printing import print_json, say, shown_duration, tell

if TYPE_CHECKING:
    from separatrix.lab.experiment.definition import Experiment, Params
    from separatrix.lab.planning import Estimate, RunPlan


def plan(
    name: Name,
    scale: ScaleName = "paper",
    seeds: Seeds = None,
    settings: Settings = None,
    jobs: Jobs = None,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="First compute cells on the way to this size for so long (60s, 10m); their records are kept.",
            show_default=False,
        ),
    ] = None,
    first: Annotated[
        bool, typer.Option("--first-step", help="Begin the largest cell: does it run here, with what memory?")
    ] = False,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show how many cells a run has and what they will cost, learned from smaller runs."""
    from separatrix.lab.engines.local import physical_cores
    from separatrix.lab.ledger import shipped_publications
    from separatrix.lab.planning import plan_run

    seconds = parse_duration(measure, "--measure")
    require_workers(jobs)
    experiment = find_experiment(name)
    params = experiment.params(scale, parse_seeds(seeds), **parse_settings(settings))
    if first:
        _begin_largest(experiment, params, scale, as_json)
        return
    if seconds is not None:
        _measure(experiment, params, scale, store, seconds)
    published = shipped_publications({experiment.name: experiment}).get(experiment.name)
    with reading(store) as opened:
        found = plan_run(experiment, params, scale, opened, published)
    workers = jobs or physical_cores()
    if as_json:
        print_json(_told(found, workers))
    else:
        _print(found, workers)
    warning = found.memory_warning()
    if warning:
        say(f"warning: {warning}")


def _measure(experiment: Experiment, params: Params, scale: str, folder: Path | None, seconds: float) -> None:
    from separatrix.lab.engines.local import LocalEngine
    from separatrix.lab.probing import measure_towards
    from separatrix.lab.store.records import Store

    with Store(folder) as store:
        count = measure_towards(experiment, params, scale, store, LocalEngine(1), seconds)
    say(f"measured {count} {'cell' if count == 1 else 'cells'} on the way to scale {scale}")


def _begin_largest(experiment: Experiment, params: Params, scale: str, as_json: bool) -> None:
    """Begin the largest cell and leave with 1 if it does not begin."""
    from separatrix.lab.engines.first_step import first_step, largest_cell

    cell = largest_cell(experiment.cells(params))
    found = first_step(cell)
    if as_json:
        print_json({"experiment": experiment.name, "scale": scale, "args": dict(cell.args), **found.to_dict()})
    else:
        memory = f", {found.memory / 1e9:.2g} GB" if found.memory is not None else ""
        tell(f"the largest cell of {experiment.name} ({scale}): {found.outcome} after {found.seconds:.2g} s{memory}")
        if found.sentence:
            tell(found.sentence)
    if not found.began:
        raise typer.Exit(1)


_ESTIMATED = ("seconds", "longest", "memory")
"""What is learned from other cells; the rest is counted."""


def _told(found: RunPlan, workers: int) -> dict[str, Any]:
    """The plan for JSON. Numbers that cannot be told are null; what they were guessed to be stands apart, named so."""
    told = {"cannot_tell": found.is_guess, "sentence": _cannot_tell(found) if found.is_guess else "", **found.to_dict()}
    told |= {"workers": workers, "wall_seconds": found.wall_seconds(workers)}
    if found.is_guess:
        guesses = {name: told[name] for name in (*_ESTIMATED, "wall_seconds")}
        told |= {**dict.fromkeys(guesses), "guesses_not_to_be_relied_on": guesses}
    return told


def _cannot_tell(found: RunPlan) -> str:
    return (
        f"cannot tell from {found.source}, whose cells are too short or too unlike these; measure some that are nearer "
        "to them in size first, for a minute: the same command with --measure 60s"
    )


def _print(found: RunPlan, workers: int) -> None:
    tell(f"{found.experiment} ({found.scale}): {found.n_cells} cells, {found.n_done} of them done")
    if found.seconds is None or found.longest is None:
        return
    if found.is_guess:
        tell(f"computing: {_cannot_tell(found)}")
        return
    tell(f"computing: {_spread(found.seconds)} on one core, from {found.source}")
    tell(f"longest cell: {_spread(found.longest)}")
    if found.memory is not None:
        low, typical, high = (f"{value / 1e9:.2g}" for value in vars(found.memory).values())
        tell(f"memory of the largest cell: {typical} GB ({low} to {high} GB)")
    tell(f"on {workers} {'worker' if workers == 1 else 'workers'}: about {shown_duration(found.wall_seconds(workers))}")
    if found.is_rough:
        tell("this is rough; measure cells that are nearer in size for a minute: the same command with --measure 60s")


def _spread(estimate: Estimate) -> str:
    return (
        f"about {shown_duration(estimate.typical)} ({shown_duration(estimate.low)} to {shown_duration(estimate.high)})"
    )
