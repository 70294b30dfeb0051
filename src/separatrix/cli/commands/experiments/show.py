"""``separatrix show``: one experiment, its parameters, claims and latest result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from separatrix.core.result import brief, plain
from separatrix.lab.experiment.scales import require_scale

from ...lookup import find_experiment, reading
from ...options import AnyScale, AsJson, Name, StoreFolder
from ...printing import print_json, print_records, print_run, print_table, say_failures, tell

if TYPE_CHECKING:
    from separatrix.lab.campaign import RunReport
    from separatrix.lab.experiment.definition import Experiment


def show(name: Name, scale: AnyScale = None, store: StoreFolder = None, as_json: AsJson = False) -> None:
    """Show what an experiment computes, and the result of its largest complete run."""
    from separatrix.lab.campaign import best_report

    experiment = find_experiment(name)
    if scale is not None:
        require_scale(scale)
    with reading(store) as opened:
        report = best_report(experiment, opened, scale) if opened is not None else None
    if as_json:
        print_json({**_facts(experiment), "run": report.to_dict() if report is not None else None})
    else:
        _print_facts(experiment)
        _print_result(report, name, scale)
    if report is not None and report.failures:
        say_failures(report)
        raise typer.Exit(1)


def _facts(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "title": experiment.title,
        "document": experiment.document,
        "place": experiment.place,
        "version": experiment.version,
        "data": list(experiment.data),
        "scales": {scale: plain(params.model_dump()) for scale, params in experiment.scales.items()},
        "claims": [
            {"id": claim.id, "statement": claim.statement, "measures": claim.measures, "test": claim.test}
            for claim in experiment.claims
        ],
    }


def _print_facts(experiment: Experiment) -> None:
    tell(f"{experiment.name}, version {experiment.version}: {experiment.title}")
    tell(f"{experiment.document}, {experiment.place}")
    scales = {scale: params.model_dump() for scale, params in experiment.scales.items()}
    fields = scales["smoke"]
    rows = [(field, *(_setting(values[field]) for values in scales.values())) for field in fields]
    print_table(("parameter", *scales), rows)
    print_table(
        ("claim", "statement", "measures", "test"),
        [(claim.id, claim.statement, claim.measures, claim.test) for claim in experiment.claims],
    )


def _setting(value: Any) -> str:
    """A parameter in full: what is written as a list in Python as its entries, one after another."""
    if isinstance(value, list | tuple):
        return ", ".join(_setting(item) for item in value) or "none"
    return brief(value, 400)


def _print_result(report: RunReport | None, name: str, scale: str | None) -> None:
    if report is None or report.summary is None:
        tell(f"not run yet; try: separatrix run {name} --scale {scale or 'smoke'}")
        return
    print_run(report)
    for title, rows in report.summary.tables.items():
        print_records(rows, title)
