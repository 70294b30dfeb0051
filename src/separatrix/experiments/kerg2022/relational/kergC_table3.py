"""kerg2022, appendix C, Table 3: numbers of parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    judge,
    misprint,
    with_column,
)
from separatrix.sources.kerg2022.relational_numbers import PARAMETERS

COUNTS = "Parameters, counted and printed"
MISPRINT = ("CoRelNet-nhid", "same_diff6")


class Settings(Params):
    """Nothing to set: every task and network of the table."""


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per task."""
    for task in PARAMETERS:
        yield {"task": task}


def run(cell: Cell) -> Payload:
    """Numbers of parameters of the three networks on a task."""
    from separatrix import nn, tasks

    task = tasks.make_task(cell.args["task"])
    sizes = (task.seq_len, task.n_answers)
    hidden = nn.MATCHED_HIDDEN[task.name]
    counts = {name: _count(nn.make_network(name, *sizes)) for name in ("CoRelNet", "ESBN")}
    single = nn.CoRelNet(*sizes, hidden=1)  # hundreds of thousands of units are not worth building: each adds the same
    per_unit = single.hidden.in_features + 1 + task.n_answers
    counts["CoRelNet-nhid"] = _count(single) + (hidden - 1) * per_unit
    return {"counts": counts, "hidden": hidden, "per_unit": per_unit}


def _count(network: Any) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """A row per task and network; of the matched one, the hidden units that the printed number would need."""
    rows = []
    for cell, payload in results:
        task = cell.args["task"]
        for model, printed in PARAMETERS[task].items():
            found = payload["counts"][model]
            units = payload["hidden"] + (printed - found) / payload["per_unit"] if model == "CoRelNet-nhid" else None
            rows.append({"task": task, "model": model, "counted": found, "printed": printed, "printed needs": units})
    return Summary(tables={COUNTS: rows})


def judge_counts(summary: Summary) -> Judgement:
    """Counted and printed numbers agree, but for one entry that no whole number of units gives."""
    table = summary.table(COUNTS)
    rows = [Row(f"{row['model']} on {row['task']}", row["counted"], row["printed"]) for row in table]
    (odd,) = (row for row in table if (row["model"], row["task"]) == MISPRINT)
    others = [made for made, row in zip(rows, table, strict=True) if row is not odd]
    needs = float(odd["printed needs"])
    whole = None if math.isnan(needs) else needs.is_integer()
    needed = Row(
        f"whole number of units for {odd['printed']}",
        "yes" if whole else f"no, {odd['printed needs']}",
        "no",
        "",
        None if whole is None else not whole,
    )
    right = Row("CoRelNet-nhid on same_diff6, as on rmts", odd["counted"], 1_910_754)
    says = "the entry is 1,910,754, as for match to sample, which has as many positions and answers"
    agree = sum(row["counted"] == row["printed"] for row in table)
    return judge(f"{agree} of {len(table)} entries agree", rows, misprint(says, [*others, needed, right]))


def _off(row: Mapping[str, Any]) -> bool:
    return bool(row["model"] == "ESBN")


EXPERIMENT = Experiment(
    name="kergC-table3",
    title="Numbers of parameters",
    document="kerg2022",
    place="appendix C, Table 3",
    version=1,
    scales={"smoke": Settings(), "laptop": Settings(), "paper": Settings()},
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-C-table3",
            statement="CoRelNet, its version with matched size and ESBN have the printed numbers of parameters.",
            measures="parameters of the networks as built",
            test="equal, every entry; for the misprint, that no whole number of units gives it",
            judge=judge_counts,
            counterfeit=with_column(COUNTS, "counted", lambda row: row["counted"] + 1, _off),
            erratum="kerg2022-matched-size",
        ),
    ),
)
