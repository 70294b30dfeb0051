"""An experiment whose cells compute nothing: what is left is the cost of the lab itself."""

from __future__ import annotations

import os

from separatrix.lab import Claim, Experiment, Params, Row, Summary, judge, with_fields


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


def judge_total(summary):
    return judge(f"sum {summary.total:g}", [Row("sum", summary.total, summary.total, 0.0)])


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
    claims=(
        Claim(
            id="empty-total",
            statement="the sum is what it is",
            measures="sum",
            test="equal",
            judge=judge_total,
            scale="smoke",
            counterfeit=with_fields(total=float("nan")),
        ),
    ),
)
