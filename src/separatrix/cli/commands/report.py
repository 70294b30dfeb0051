"""``separatrix report``: everything that was run, as one folder of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from separatrix.core.errors import MissingData

from ..lookup import find_experiments, reading
from ..options import AnyScale, AsJson, Names, StoreFolder
from ..printing import print_json, say_failures


def report(
    names: Names = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")] = Path(
        "separatrix-report"
    ),
    scale: AnyScale = None,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write figures, tables and the claim ledger of the stored runs as HTML."""
    from separatrix.lab.campaign import best_report
    from separatrix.lab.ledger import ledger
    from separatrix.report.pages.html import write_report

    experiments = find_experiments(names)
    with reading(store) as opened:
        found = {}
        if opened is not None:
            found = {experiment.name: best_report(experiment, opened, scale) for experiment in experiments}
        runs = [run for run in found.values() if run is not None]
        if not runs:
            raise MissingData("no experiment has a complete run yet; begin with: separatrix run --all --scale smoke")
        # the ledger judges by the largest runs, which are these unless a scale was asked for
        entries = ledger(experiments, opened, found if scale is None else None)
        index = write_report(output, runs, entries, title="Separatrix")
    if as_json:
        print_json({"index": str(index), "experiments": [run.experiment.name for run in runs]})
    else:
        print(index)
    for run in runs:
        say_failures(run)
    if any(run.failures for run in runs):
        raise typer.Exit(1)
