"""Whether ``plan`` tells what a run will cost: forecasts against the laptop scale, as measured.

    python benchmarks/plan.py --store DIR [--names kerg2-lemmas ...] [--measure 20] [--json FILE]

A forecast is made from the smoke scale and, with ``--measure``, from cells on the way to the laptop scale, computed for
so many seconds (``plan --measure``). The experiments below were chosen after the rule of ``lab/store/costs.py`` and
``lab/probing.py`` was fixed, and none was measured before: of the published laptop runs of 8 to 60 s with two records
or more that stand in no earlier list (nor among those whose smoke scale the priors were chosen on), the first six by
the SHA-256 of their names. One of them, agarwala-fig2, had shown at paper scale what was wrong. A forecast that says it
cannot tell is counted by itself. What is in the store is not computed again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from separatrix.cli.lookup import find_experiments
from separatrix.lab import Experiment, LocalEngine, RunPlan, Store, plan_run, run_experiments
from separatrix.lab.engines.progress import RunProgress
from separatrix.lab.probing import measure_towards
from separatrix.lab.store.costs import IMPORTS
from separatrix.lab.store.records import spent

HELD_OUT = (
    *("anguita-fig4-6", "kergA-schur", "altafini-fig3a"),
    *("anguita-fig4-8", "anguita-fig4-2", "agarwala-fig2"),
)
EARLIER = (
    *("altafini-multihead", "kerg2-lemmas", "anguita-fig3-3"),
    *("altafini-polygonal", "anguita-fig3-6", "altafini-propositions"),
    *("linear-conservation", "kergA-fig2", "kerg3-fig1", "kerg5-text", "altafini-fig1", "agarwala-theorems"),
    *("kerg4-theorems", "kergA-fig3", "agarwala-fig3", "kergB-theorems", "kerg3-prop3-4-2", "linear-regime-map"),
)
"""Those on which earlier rules were judged: the last twelve from the smoke scale alone."""


def computed(experiment: Experiment, scale: str, store: Store) -> None:
    with RunProgress(quiet=True) as progress:
        (report,) = run_experiments([(experiment, experiment.params(scale), scale)], store, LocalEngine(1), progress)
    assert not report.failures, next(iter(report.failures.values()))


def forecast(experiment: Experiment, folder: Path, seconds: float) -> RunPlan:
    """From the smoke scale and cells on the way: in a store of its own."""
    with Store(folder / "smoke" / experiment.name) as store:
        computed(experiment, "smoke", store)
        if seconds:
            measure_towards(experiment, experiment.params("laptop"), "laptop", store, LocalEngine(1), seconds)
        return plan_run(experiment, experiment.params("laptop"), "laptop", store)


def truth(experiment: Experiment, folder: Path) -> float:
    """Seconds of the processor of the cells that were not done at the smoke scale; a cell that was the first of its
    process, which is the longest, counts without the imports that it may hold, and at least as the mean of the others.
    """
    with Store(folder / "smoke" / experiment.name) as store:
        before = store.keys()
    with Store(folder / "laptop" / experiment.name) as store:
        computed(experiment, "laptop", store)
        rows = dict(store.database.query("SELECT key, seconds FROM records"))
        cold = {key: spent(store.read(key).provenance) for key, seconds in rows.items() if seconds is None}
    known = [seconds for key, seconds in rows.items() if seconds is not None and key not in before]
    least = sum(known) / len(known) if known else 0.0
    return sum(known) + sum(max(least, seconds - IMPORTS) for key, seconds in cold.items() if key not in before)


def row(experiment: Experiment, folder: Path, seconds: float) -> dict[str, Any]:
    plan = forecast(experiment, folder, seconds)
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
    parser.add_argument("--measure", type=float, default=20.0, help="seconds; 0: from the smoke scale alone")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    table = {}
    for experiment in find_experiments(arguments.names):
        table[experiment.name] = row(experiment, arguments.store, arguments.measure)
        print(experiment.name, table[experiment.name], flush=True)
    told = [found for found in table.values() if not found["says it cannot tell"]]
    within = sum(0.5 <= found["forecast over measured"] <= 2 for found in told)
    result = {
        "seconds measured": arguments.measure,
        "experiments": table,
        "tell": len(told),
        "within a factor 2": within,
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{within} of the {len(told)} that tell are within a factor 2; {len(table) - len(told)} cannot tell")


if __name__ == "__main__":
    main()
