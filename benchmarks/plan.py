"""Whether ``plan`` tells what a run will cost: forecasts from the smoke scale against the laptop scale, as measured.

    python benchmarks/plan.py --store DIR [--names kerg3-fig1 ...] [--json FILE]

The experiments below were chosen before any of them was measured, and no record of theirs was used in making the rule
of ``lab/store/costs.py``: of the published laptop runs of 15 to 120 s, those whose names come first by their SHA-256
(the second row of them was added, unmeasured, when half of the first could not tell; the rule stayed as it was).
A forecast that says it cannot tell is counted by itself. What is in the store is not computed again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from separatrix.cli.lookup import find_experiments
from separatrix.lab import Experiment, LocalEngine, RunPlan, Store, plan_run, run_experiments
from separatrix.lab.engines.progress import RunProgress
from separatrix.lab.store.records import spent

HELD_OUT = (
    *("linear-conservation", "kergA-fig2", "kerg3-fig1", "kerg5-text", "altafini-fig1", "agarwala-theorems"),
    *("kerg4-theorems", "kergA-fig3", "agarwala-fig3", "kergB-theorems", "kerg3-prop3-4-2", "linear-regime-map"),
)


def computed(experiment: Experiment, scale: str, store: Store) -> None:
    with RunProgress(quiet=True) as progress:
        (report,) = run_experiments([(experiment, experiment.params(scale), scale)], store, LocalEngine(1), progress)
    assert not report.failures, next(iter(report.failures.values()))


def forecast(experiment: Experiment, folder: Path) -> RunPlan:
    """From the smoke scale alone: in a store of its own."""
    with Store(folder / "smoke" / experiment.name) as store:
        computed(experiment, "smoke", store)
        return plan_run(experiment, experiment.params("laptop"), "laptop", store)


def truth(experiment: Experiment, folder: Path) -> float:
    """Seconds of the processor of the cells that were not done at the smoke scale; a cell that was the first of its
    process holds imports and counts as the mean of the others."""
    with Store(folder / "smoke" / experiment.name) as store:
        before = store.keys()
    with Store(folder / "laptop" / experiment.name) as store:
        computed(experiment, "laptop", store)
        rows = dict(store.database.query("SELECT key, seconds FROM records"))
        rows |= {key: spent(store.read(key).provenance) for key in rows if len(rows) == 1}
    known = [seconds for key, seconds in rows.items() if seconds is not None and key not in before]
    return sum(known) + sum(known) / len(known) * sum(rows[key] is None for key in rows.keys() - before)


def row(experiment: Experiment, folder: Path) -> dict[str, Any]:
    plan = forecast(experiment, folder)
    assert plan.seconds is not None
    measured = truth(experiment, folder)
    return {
        "cells": plan.n_cells - plan.n_done,
        "measured before": plan.n_measured,
        "forecast s": [round(x, 2) for x in (plan.seconds.low, plan.seconds.typical, plan.seconds.high)],
        "measured s": round(measured, 2),
        "forecast over measured": round(plan.seconds.typical / measured, 3),
        "says it cannot tell": plan.is_guess,
        "inside": plan.seconds.low <= measured <= plan.seconds.high,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--names", nargs="*", default=list(HELD_OUT))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    table = {}
    for experiment in find_experiments(arguments.names):
        table[experiment.name] = row(experiment, arguments.store)
        print(experiment.name, table[experiment.name], flush=True)
    told = [found for found in table.values() if not found["says it cannot tell"]]
    within = sum(0.5 <= found["forecast over measured"] <= 2 for found in told)
    result = {"experiments": table, "tell": len(told), "within a factor 2": within}
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{within} of the {len(told)} that tell are within a factor 2; {len(table) - len(told)} cannot tell")


if __name__ == "__main__":
    main()
