"""``separatrix report``: everything that was run, as one folder of HTML."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.core.disk import require_place_for_folder
from separatrix.core.errors import InvalidInput, MissingData

from ...lookup import find_experiments, reading
from ...options import AnyScale, AsJson, Names, StoreFolder
from ...printing import print_json, say_failures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from separatrix.lab.campaign import RunReport
    from separatrix.lab.experiment.definition import Experiment
    from separatrix.lab.ledger import LedgerEntry


def report(
    names: Names = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to write.")] = Path(
        "separatrix-report"
    ),
    scale: AnyScale = None,
    store: StoreFolder = None,
    published: Annotated[
        bool, typer.Option("--published", help="From the results that came with the package; nothing need be run.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write figures, tables and the claim ledger of the stored runs as HTML."""
    from separatrix.lab.campaign import best_report
    from separatrix.lab.ledger import ledger

    experiments = find_experiments(names)
    if published:
        _report_published(experiments, output, as_json, scale, store)
        return
    with reading(store) as opened:
        found = {}
        if opened is not None:
            found = {experiment.name: best_report(experiment, opened, scale) for experiment in experiments}
        runs = [run for run in found.values() if run is not None]
        if not runs:
            raise MissingData(
                "no experiment has a complete run yet; begin with: separatrix run --all --scale smoke, or see the "
                "published results: separatrix report --published"
            )
        require_place_for_folder(output, "--output")
        # the ledger judges by the largest runs, which are these unless a scale was asked for
        entries = ledger(experiments, opened, found if scale is None else None)
        index = _write_if_changed(output, runs, entries)
    if as_json:
        print_json({"index": str(index), "experiments": [run.experiment.name for run in runs]})
    else:
        print(index)
    for run in runs:
        say_failures(run)
    if any(run.failures for run in runs):
        raise typer.Exit(1)


def _report_published(
    experiments: Sequence[Experiment], output: Path, as_json: bool, scale: str | None, store: Path | None
) -> None:
    """Pages from the shipped results alone."""
    from separatrix.lab.ledger import ledger, shipped_publications
    from separatrix.lab.results.reports import published_report

    if store is not None or scale is not None:
        raise InvalidInput("--published shows the shipped results as they are; leave --store and --scale out.")
    require_place_for_folder(output, "--output")
    found = shipped_publications({experiment.name: experiment for experiment in experiments})
    runs = [
        published_report(found[experiment.name], experiment) for experiment in experiments if experiment.name in found
    ]
    if not runs:
        raise MissingData("no result of these experiments came with the package.")
    index = _write_if_changed(output, runs, ledger(experiments, None, None, found), published=True)
    if as_json:
        print_json({"index": str(index), "experiments": [run.experiment.name for run in runs]})
    else:
        print(index)


def _write_if_changed(
    output: Path, runs: Sequence[RunReport], entries: Sequence[LedgerEntry], *, published: bool = False
) -> Path:
    """Write the pages, unless those that stand there were made from the same results by the same code."""
    from separatrix.lab.experiment.provenance import code_fingerprint
    from separatrix.report.pages.html import write_report

    facts = [code_fingerprint("separatrix"), [run.to_dict() for run in runs], [entry.to_dict() for entry in entries]]
    facts.append([str(published), *sorted({code_fingerprint(run.experiment.module) for run in runs})])
    wanted = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
    index, state = output / "index.html", output / ".state"
    try:
        kept = json.loads(state.read_text(encoding="utf-8"))
        if kept["made from"] == wanted and all((output / name).stat().st_size == size for name, size in kept["pages"]):
            return index
    except (OSError, ValueError, TypeError, KeyError):
        pass
    state.unlink(missing_ok=True)
    index = write_report(output, runs, entries, title="Separatrix", published=published)
    pages = [(page.relative_to(output).as_posix(), page.stat().st_size) for page in sorted(output.rglob("*.html"))]
    state.write_text(json.dumps({"made from": wanted, "pages": pages}), encoding="utf-8")
    return index
