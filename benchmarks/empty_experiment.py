"""An experiment whose cells compute nothing: what is left is the cost of the lab itself."""

from __future__ import annotations

import os

from separatrix.lab import Experiment, Params, Summary


class Settings(Params):
    n_cells: int = 100


class Total(Summary):
    total: float


def expand(settings):
    return ({"number": number} for number in range(settings.n_cells))


def run(cell):
    return {"value": cell.args["number"] / 7}


def summarise(results):
    return Total(total=sum(payload["value"] for _, payload in results))


EMPTY = Experiment(
    name="empty",
    title="nothing",
    document="separatrix",
    place="benchmarks",
    version=1,
    scales={
        "smoke": Settings(n_cells=int(os.environ.get("EMPTY_CELLS", "100"))),
        "laptop": Settings(),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    summary=Total,
)
