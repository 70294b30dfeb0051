"""``separatrix sweep``: one experiment over a grid, or random points, of its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.core.errors import InvalidInput

from ...engine_options import EngineOptions
from ...lookup import find_experiment
from ...options import Address, AsJson, CellTimeout, EngineName, Jobs, Name, Quiet, ScaleName, Seeds, StoreFolder
from ...outputs import require_picture
from ...parse import parse_axis, parse_duration, parse_seeds
from ...printing import print_json, print_records, say, say_failures

if TYPE_CHECKING:
    from separatrix.lab.campaign import RunReport
    from separatrix.lab.sweeping import Sweep


def sweep(
    name: Name,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="KEY=VALUES",
            help="width=8,16,32; with --random also spans: lr=0.001..0.1:log, n=2..64. Repeat for more.",
        ),
    ] = None,
    n_random: Annotated[
        int | None, typer.Option("--random", metavar="N", help="N random points instead of all.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random points.")] = 0,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop after this long (30m, 2h).", show_default=False)
    ] = None,
    quantity: Annotated[
        str | None, typer.Option(help="Quantity of the heat map; default: the first number.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Heat map (.png, .svg, .pdf).", show_default=False),
    ] = None,
    scale: ScaleName = "smoke",
    seeds: Seeds = None,
    jobs: Jobs = None,
    cell_timeout: CellTimeout = None,
    engine: EngineName = "local",
    address: Address = None,
    store: StoreFolder = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment at many settings; the same command again continues it."""
    from separatrix.lab.sweeping import sweep_points, sweep_requests, swept

    where = EngineOptions(engine, address, jobs, cell_timeout, scale)
    seconds = parse_duration(budget, "--budget")
    axes = dict(parse_axis(text) for text in grid or ())
    if output is not None:
        if len(axes) != 2:
            raise InvalidInput(f"a heat map needs two parameters to sweep over; --grid names {len(axes)}.")
        require_picture(output, "--output")
    experiment = find_experiment(name)
    points = sweep_points(axes, n_random, seed)
    requests = sweep_requests(experiment, scale, points, parse_seeds(seeds))
    reports, stopped = _computed(requests, store, where, seconds, quiet)
    found = swept(experiment, scale, points, reports)
    _show(found, output, quantity, as_json)
    for report in reports:
        say_failures(report)
    if stopped is not None:
        say(f"{stopped} {len(found.rows)} of {found.n_points} points are complete; the same command continues.")
        raise typer.Exit(stopped.exit_code)
    if any(report.failures for report in reports):
        raise typer.Exit(1)


def _computed(
    requests: Sequence[Any], folder: Path | None, where: EngineOptions, seconds: float | None, quiet: bool
) -> tuple[list[RunReport], Any]:
    """The reports of all points, and how the run was stopped, if it was."""
    from separatrix.lab.campaign import report_from_store, run_experiments
    from separatrix.lab.engines.base import RunInterrupted
    from separatrix.lab.engines.progress import RunProgress
    from separatrix.lab.store.records import Store
    from separatrix.lab.sweeping import WithinBudget

    with where.engine() as plain, Store(folder) as store:
        engine = plain if seconds is None else WithinBudget(plain, seconds)
        try:
            with RunProgress(quiet) as progress:
                return run_experiments(requests, store, engine, progress), None
        except RunInterrupted as stopped:
            return [report_from_store(one, params, scale, store) for one, params, scale in requests], stopped


def _show(found: Sweep, output: Path | None, quantity: str | None, as_json: bool) -> None:
    if as_json:
        print_json(found.to_dict())
    elif found.rows:
        print_records(found.rows, f"{found.experiment} ({found.scale})")
    if output is not None and found.rows:
        from separatrix.report.figures.house.style import save
        from separatrix.report.figures.results.sweep import draw_sweep

        across, up = found.axes
        save(draw_sweep(found.rows, across, up, found.quantity(quantity)), output)
        if not as_json:
            print(output)
