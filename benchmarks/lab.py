"""What the lab itself costs: per empty cell on each engine, and per command on a store of 100,000 records.

    python benchmarks/lab.py [--cells 2000] [--records 100000] [--json FILE]

An empty cell computes nothing, so all of its time is scheduling, writing and publishing. Wall time is that from the
first cell that ended to the last (starting processes is not counted); processor time is of this process and all it
started. Commands are run in a process of their own; wall, processor time and peak memory are those of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *(path for path in sys.path if path)])

from empty_experiment import EMPTY  # noqa: E402

from separatrix.lab import AbstractEngine, DaskEngine, LocalEngine, Record, Store  # noqa: E402
from separatrix.lab.experiment.provenance import provenance  # noqa: E402
from separatrix.lab.store.runs import remember_run, run_command  # noqa: E402


def processor_time() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in used)


def engine_cost(engine: AbstractEngine, folder: Path, n_cells: int) -> dict[str, float]:
    """Milliseconds per cell."""
    cells = EMPTY.cells(EMPTY.params("smoke", n_cells=n_cells))
    before, first, last = processor_time(), 0.0, 0.0
    with Store(folder) as store:
        n_burst = 0
        for number, finished in enumerate(engine.run(cells, store, {})):
            assert finished.error is None, finished.error
            last = time.perf_counter()
            if number == 0:
                first = last
            n_burst += last == first
        assert len(store.keys()) == n_cells
    return {
        "wall ms per cell": 1e3 * (last - first) / (n_cells - 1),
        "processor ms per cell, with the start of the workers": 1e3 * (processor_time() - before) / n_cells,
    }


def engines(folder: Path, n_cells: int) -> dict[str, dict[str, float]]:
    return {
        "local, 2 workers": engine_cost(LocalEngine(2), folder / "local", n_cells),
        "dask, 2 workers": engine_cost(DaskEngine(workers=2), folder / "dask", n_cells),
    }


def fill(folder: Path, n_records: int) -> None:
    """A complete run of so many records, written without waiting for the disk."""
    params = EMPTY.params("smoke", n_cells=n_records)
    cells = EMPTY.cells(params)
    waiting, os.fsync = os.fsync, lambda handle: None
    try:
        with Store(folder) as store:
            remember_run(store, EMPTY, "smoke", params, cells, run_command(EMPTY, params, "smoke"))
            origin = provenance(EMPTY, cells[0], 1e-3, {})
            store.database._connection.execute("PRAGMA synchronous = OFF")
            for begin in range(0, n_records, 1000):
                staged = []
                for cell in cells[begin : begin + 1000]:
                    record = Record(cell, {"value": cell.args["number"] / 7}, {**origin, "args": dict(cell.args)})
                    staged.append((record, *store.stage(record)))
                with store.database.transaction() as connection:
                    for record, temporary, content in staged:
                        store.promote(connection, record, temporary, content)
    finally:
        os.fsync = waiting


SMALL = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(code)
"""
"""A process is charged with the memory of the one that started it, so that one has to be small."""


def command_cost(*words: str) -> dict[str, float]:
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", SMALL, sys.executable, "-m", "separatrix", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, error = process.communicate()
    assert process.returncode == 0, error.decode()
    busy, peak = (float(word) for word in out.split())
    return {
        "wall s": time.perf_counter() - begun,
        "processor s": busy,
        "peak MB": peak / 1024,
    }


def crowd(folder: Path, n_records: int) -> dict[str, Any]:
    """What every command that looks at a finished run costs."""
    fill(folder / "store", n_records)
    where, name = ("--store", str(folder / "store")), "empty_experiment:empty"
    os.environ["EMPTY_CELLS"] = str(n_records)  # the size of its scale, so that show and claims take the run as it is
    run, show = ("run", name, "-q", *where), ("show", name, *where)
    report = ("report", name, "-o", str(folder / "pages"), *where)
    publish = ("publish", name, "--scale", "smoke", "-o", str(folder / "published"), *where)
    commands = {
        "version, for comparison": ("version",),
        "the finished run, first time": run,
        "the finished run again": run,
        "show": show,
        "claims": ("claims", name, *where),
        "report": report,
        "report again": report,
        "publish": publish,
        "publish again": publish,
        "list": ("list",),
    }
    return {title: command_cost(*words) for title, words in commands.items()}


def growth(small: dict[str, Any], large: dict[str, Any]) -> dict[str, float]:
    """Peak memory of each command on the large store over that on the small one."""
    return {title: large[title]["peak MB"] / small[title]["peak MB"] for title in large}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only-commands", action="store_true", help="leave out the engines")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lab-bench-"))
    try:
        result: dict[str, Any] = {
            "cells": arguments.cells,
            **({} if arguments.only_commands else engines(folder, arguments.cells)),
            "records": arguments.records,
            "commands": crowd(folder / "crowd", arguments.records),
            "commands on a tenth of them": crowd(folder / "tenth", arguments.records // 10),
        }
        result["memory beside a tenth of them"] = growth(result["commands on a tenth of them"], result["commands"])
    finally:
        shutil.rmtree(folder)
    text = json.dumps(result, indent=1)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
