"""``separatrix plan``: what a run will cost, before it is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lookup import find_experiment, reading
from ...options import AsJson, Jobs, Name, ScaleName, Seeds, Settings, StoreFolder
from ...parse import parse_seeds, parse_settings
from ...printing import print_json, say, shown_duration, tell

if TYPE_CHECKING:
    from separatrix.lab.planning import Estimate, RunPlan


def plan(
    name: Name,
    scale: ScaleName = "paper",
    seeds: Seeds = None,
    settings: Settings = None,
    jobs: Jobs = None,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show how many cells a run has and what they will cost, learned from smaller runs."""
    from separatrix.lab.engines.local import physical_cores
    from separatrix.lab.ledger import shipped_publications
    from separatrix.lab.planning import plan_run

    experiment = find_experiment(name)
    params = experiment.params(scale, parse_seeds(seeds), **parse_settings(settings))
    published = shipped_publications({experiment.name: experiment}).get(experiment.name)
    with reading(store) as opened:
        found = plan_run(experiment, params, scale, opened, published)
    workers = jobs or physical_cores()
    if as_json:
        print_json({**found.to_dict(), "workers": workers, "wall_seconds": found.wall_seconds(workers)})
    else:
        _print(found, workers)
    warning = found.memory_warning()
    if warning:
        say(f"warning: {warning}")


def _print(found: RunPlan, workers: int) -> None:
    tell(f"{found.experiment} ({found.scale}): {found.n_cells} cells, {found.n_done} of them done")
    if found.seconds is None or found.longest is None:
        return
    if found.is_guess:
        low, high = shown_duration(found.seconds.low), shown_duration(found.seconds.high)
        tell(
            f"computing: cannot tell from {found.source}, whose cells are too short or too unlike these "
            f"({low} to {high});"
        )
        tell("measure some that are nearer to them in size first: separatrix run with --scale or --set")
        return
    tell(f"computing: {_spread(found.seconds)} on one core, from {found.source}")
    tell(f"longest cell: {_spread(found.longest)}")
    if found.memory is not None:
        low, typical, high = (f"{value / 1e9:.2g}" for value in vars(found.memory).values())
        tell(f"memory of the largest cell: {typical} GB ({low} to {high} GB)")
    tell(f"on {workers} {'worker' if workers == 1 else 'workers'}: about {shown_duration(found.wall_seconds(workers))}")


def _spread(estimate: Estimate) -> str:
    return (
        f"about {shown_duration(estimate.typical)} ({shown_duration(estimate.low)} to {shown_duration(estimate.high)})"
    )
