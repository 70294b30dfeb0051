"""``separatrix verify``: compute cells of a published result again and compare."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...lookup import find_experiment
from ...options import AsJson
from ...printing import print_json, say

if TYPE_CHECKING:
    from separatrix.lab.results.verification import Verification


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A published result, such as results/NAME.json.")],
    sample: Annotated[
        int | None, typer.Option(help="How many cells, drawn at random; default: all.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of that draw.")] = 0,
    rtol: Annotated[float, typer.Option(help="Largest relative difference that counts as the same.")] = 1e-6,
    experiment: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="The experiment, if it is one of your own.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute cells of a published result again and judge it again; leave with 0 if all agrees, with 1 if not."""
    from separatrix.lab.results.publication import read_publication
    from separatrix.lab.results.verification import verify as check

    name = experiment or read_publication(file, None).experiment
    found = check(file, find_experiment(name), sample=sample, seed=seed, rtol=rtol)
    if as_json:
        print_json(_plain(found))
    else:
        _print(found)
    if not found.ok:
        raise typer.Exit(1)


def _plain(found: Verification) -> dict[str, object]:
    return {
        "experiment": found.publication.experiment,
        "cells": found.n_cells,
        "checked": [
            {
                "args": dict(check.cell.args),
                "seed": check.cell.seed,
                "agreement": check.agreement,
                "worst": check.worst if check.worst < float("inf") else None,
                "reason": check.reason,
            }
            for check in found.checks
        ],
        "rules": found.rules,
        "promise": found.promise,
        "faults": list(found.faults),
        "ok": found.ok,
    }


def _print(found: Verification) -> None:
    name = found.publication.experiment
    kinds = Counter(check.agreement for check in found.checks)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    print(f"{name}: {len(found.checks)} of {found.n_cells} cells computed again: {counted}")
    print(f"{name}: {found.promise}")
    for standing, count in Counter(found.rules.values()).items():
        print(f"{name}: {count} {'verdict' if count == 1 else 'verdicts'} {standing}")
    for check in found.checks:
        if check.agreement == "different":
            say(f"{name}: the cell {dict(check.cell.args)}, seed {check.cell.seed}, is different: {check.reason}")
    for fault in found.faults:
        say(f"{name}: {fault}")
