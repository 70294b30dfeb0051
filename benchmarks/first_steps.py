"""Whether the largest cell of every experiment begins here at the documents' own sizes, and what its first step takes.

    python benchmarks/first_steps.py [--names kerg3-table1 ...] [--seconds 30] [--gigabytes 6] [--json FILE]

One experiment after the other; with ``--json`` those that stand in the file already are passed over, so that a run that
was stopped goes on. Where the largest cell lacks its data set, the largest with other words among its arguments is
taken and the row says so.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from separatrix.cli.lookup import find_experiments
from separatrix.lab import Cell, Experiment, FirstStep, Limits, first_step, largest_cell

TRIES = 6


def words(cell: Cell) -> tuple[str, ...]:
    return tuple(str(value) for value in cell.args.values() if isinstance(value, str))


def begun(experiment: Experiment, limits: Limits) -> dict[str, Any]:
    cells = experiment.cells(experiment.params("paper"))
    left, missing = cells, list[str]()
    for _ in range(TRIES):
        cell = largest_cell(left)
        found: FirstStep = first_step(cell, limits)
        left = [other for other in left if words(other) != words(cell)]
        if not (found.outcome == "refused" and found.sentence.startswith("DatasetUnavailable")) or not left:
            break
        missing.append(" ".join(words(cell)))
    return {
        "outcome": found.outcome,
        "processor s": round(found.seconds, 2),
        "memory MB": round(found.memory / 1e6) if found.memory is not None else None,
        "said": found.sentence[:200],
        "cells": len(cells),
        **({"without data": missing} if missing else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", nargs="*")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--gigabytes", type=float, default=6.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    kept = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {"experiments": {}}
    kept |= {"seconds": arguments.seconds, "gigabytes": arguments.gigabytes}
    table = kept["experiments"]
    for experiment in find_experiments(arguments.names or None):
        if experiment.name not in table:
            table[experiment.name] = begun(experiment, Limits(arguments.seconds, 1e9 * arguments.gigabytes))
            print(experiment.name, table[experiment.name], flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    outcomes = [row["outcome"] for row in table.values()]
    print({outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))})


if __name__ == "__main__":
    main()
