"""kerg2022, appendix A, Table 5: total Fisher memory of twelve triangular matrices of 100 units."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.wording import small
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Needed,
    Params,
    Payload,
    Row,
    Summary,
    groups,
    instead,
    judge,
    with_column,
)
from separatrix.sources.kerg2022.recurrence import TABLE5, TABLE5_UNITS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor


class Settings(Params):
    """Rows of the table to compute."""

    rows: tuple[int, ...] = tuple(range(len(TABLE5)))  # all twelve
    n_units: int = TABLE5_UNITS  # N = 100 (caption of Fig. 1)
    n_steps: int = 150  # the steps that Fig. 1(c) shows


class Measured(Summary):
    """Steps after which the sum over time is cut."""

    n_steps: int


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per row."""
    for index in settings.rows:
        row = TABLE5[index]
        yield {
            "sub": row.sub,
            "rest": row.rest,
            "diagonal": row.diagonal,
            "n_units": settings.n_units,
            "n_steps": settings.n_steps,
        }


def run(cell: Cell) -> Payload:
    """Exact total, its first terms, and what plain double precision makes of them."""
    import torch

    from separatrix import matrices

    args = cell.args
    line = matrices.delay_line(args["n_units"], args["sub"], args["rest"], args["diagonal"])
    source = torch.eye(args["n_units"], dtype=torch.float64)[0]
    memory = matrices.fisher_memory_curve(line, source, args["n_steps"])
    return {
        "total": float(memory.total),
        "first_terms": float(memory.curve.sum()),
        "plain_double": _plain_double(line, source, args["n_steps"]),
        "bits": int(memory.bits),
        "condition": float(memory.condition),
        "trace_error": float(memory.trace_error),
    }


def _plain_double(line: Tensor, source: Tensor, n_steps: int) -> float:
    """The textbook route: add up the covariance, invert it, add up the curve, all in double precision."""
    import torch

    power = torch.eye(len(line), dtype=line.dtype)
    covariance = torch.zeros_like(line)
    for _ in range(4 * len(line)):
        covariance = covariance + power @ power.mT
        power = line @ power
    inverse = torch.linalg.inv(covariance)
    total, signal = 0.0, source
    for _ in range(n_steps):
        total += float(signal @ inverse @ signal)
        signal = line @ signal
    return total


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """The table with printed and exact totals side by side (no printed value at another size than the document's)."""
    printed = {(row.sub, row.rest, row.diagonal): row for row in TABLE5}
    table = []
    for cell, payload in results:
        row = printed[cell.args["sub"], cell.args["rest"], cell.args["diagonal"]]
        same_size = cell.args["n_units"] == TABLE5_UNITS
        table.append(
            {
                "alpha": row.sub,
                "beta": row.rest,
                "d": row.diagonal,
                "printed": row.total if same_size else None,
                "tolerance": row.tolerance,
                **payload,
            }
        )
    n_steps = results[0][0].args["n_steps"] if results else 0
    return Measured(
        tables={"Total Fisher memory": table},
        n_steps=n_steps,
    )


def _rows(summary: Measured, diagonal: bool) -> list[dict[str, Any]]:
    return [row for row in summary.table("Total Fisher memory") if (row["d"] > 0) == diagonal]


def _name(row: dict[str, Any]) -> str:
    return f"J_tot(alpha={row['alpha']}, beta={row['beta']}, d={row['d']})"


def _against_print(rows: list[dict[str, Any]]) -> list[Row]:
    return [
        Row(_name(row), row["total"], row["printed"], row["tolerance"]) for row in rows if row["printed"] is not None
    ]


def judge_nilpotent(summary: Measured) -> Judgement:
    """Rows without diagonal, to the printed digits."""
    rows = _against_print(_rows(summary, diagonal=False))
    worst = max((abs(float(row.measured) - float(row.expected)) for row in rows), default=0.0)
    return judge(f"{len(rows)} totals, largest difference from print {worst:.4f}", rows)


def judge_diagonal(summary: Measured) -> Judgement:
    """Rows with diagonal: the exact values must pass the trace identity; the print is then compared with them."""
    table = _rows(summary, diagonal=True)
    printed = _against_print(table)
    if not printed:
        return judge("", [])
    exact = [Row(f"trace identity, {_name(row)}", row["trace_error"], 0.0, 1e-6) for row in table]
    exact += [
        Row(f"within 0.5 of print, {_name(row)}", row["total"], row["printed"], 0.5)
        for row in table
        if row["printed"] is not None
    ]
    off = [row for row in printed if not row.agrees]
    widest = max(abs(float(row.measured) - float(row.expected)) for row in printed)
    evidence = f"{len(off)} of {len(printed)} printed totals differ from the exact ones, by up to {widest:.3f}"
    return judge(evidence, printed, instead("totals in ball arithmetic lie up to 0.5 from those printed", exact))


def judge_rounding(summary: Measured) -> Judgement:
    """Double precision against the exact first terms, with and without a diagonal."""
    nilpotent, diagonal = _rows(summary, diagonal=False), _rows(summary, diagonal=True)
    rows = [Row(f"double precision, {_name(row)}", row["plain_double"], row["first_terms"], 1e-6) for row in nilpotent]
    for row in diagonal:
        error = abs(row["plain_double"] - row["first_terms"])
        rows.append(Row(f"rounding error, {_name(row)}", error, "above 1e-6", "", agrees=not error <= 1e-6))
    errors = [abs(row["plain_double"] - row["first_terms"]) for row in diagonal]
    evidence = f"plain double precision is off by up to {small(max(errors, default=0.0))} with a diagonal"
    return judge(evidence, rows if diagonal else [])


def judge_order(summary: Measured) -> Judgement:
    """A diagonal adds memory to every line of the table."""
    without = {(row["alpha"], row["beta"]): row["total"] for row in _rows(summary, diagonal=False)}
    rows = []
    for row in _rows(summary, diagonal=True):
        partner = without.get((row["alpha"], row["beta"]))
        if partner is not None:
            gain = row["total"] / partner
            rows.append(Row(f"gain by d, {_name(row)}", gain, "above 1", "", agrees=gain > 1))
    gains = [float(row.measured) for row in rows]
    return judge(
        f"the diagonal multiplies the total by {min(gains, default=0):.2f} to {max(gains, default=0):.2f}", rows
    )


def judge_beta(summary: Measured) -> Judgement:
    """A small rest of the triangle costs little memory."""
    totals = {(row["alpha"], row["d"], row["beta"]): row["total"] for row in summary.table("Total Fisher memory")}
    rows = []
    for (alpha, d, beta), total in totals.items():
        if beta > 0 and (alpha, d, 0.0) in totals:
            change = total / totals[alpha, d, 0.0] - 1
            rows.append(Row(f"change by beta at alpha={alpha}, d={d}", change, 0.0, 0.05))
    changes = [float(row.measured) for row in rows]
    return judge(f"relative change between {min(changes, default=0):+.4f} and {max(changes, default=0):+.4f}", rows)


def judge_truncation(summary: Measured) -> Judgement:
    """The first 150 terms against the infinite sum."""
    rows = [
        Row(f"first {summary.n_steps} terms, {_name(row)}", row["first_terms"], row["total"], 0.003)
        for row in summary.table("Total Fisher memory")
    ]
    worst = max((abs(float(row.measured) - float(row.expected)) for row in rows), default=0.0)
    return judge(f"cutting the sum changes it by at most {worst:.4f}", rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Printed against exact totals."""
    from separatrix.report.figures.recurrent.memory import draw_memory_totals

    return {"totals": draw_memory_totals(summary.table("Total Fisher memory"))}


TOTALS = "Total Fisher memory"


def _totals(*diagonals: float) -> Needed:
    """Matrices of the printed table with these diagonals."""
    return groups(TOTALS, ("alpha", "beta", "d"), *itertools.product((0.95, 1.0, 1.05), (0.0, 0.005), diagonals))


_ALL = (_totals(0.0, 0.2),)
"""The twelve matrices of the printed table."""

EXPERIMENT = Experiment(
    name="kerg3-table5",
    title="Total Fisher memory of triangular matrices",
    document="kerg2022",
    place="appendix A, Table 5",
    version=1,
    scales={
        "smoke": Settings(rows=(0, 1, 2, 3, 4, 5, 6)),
        "laptop": Settings(),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-table5-nilpotent",
            statement="totals of the six matrices without diagonal",
            measures="total Fisher memory",
            test="equal to the printed digits",
            needs=(_totals(0.0),),
            judge=judge_nilpotent,
            counterfeit=with_column("Total Fisher memory", "total", lambda row: 1.05 * row["total"]),
        ),
        Claim(
            id="kerg2022-table5-diagonal",
            statement="totals of the six matrices with diagonal 0.2",
            measures="total Fisher memory in ball arithmetic",
            test="exact totals pass the trace identity and lie near the print; print to its digits",
            needs=(_totals(0.2),),
            scale="laptop",
            judge=judge_diagonal,
            counterfeit=with_column("Total Fisher memory", "trace_error", 0.1),
            genuine=with_column(
                "Total Fisher memory", "total", lambda row: row["printed"], where=lambda row: row["printed"] is not None
            ),
            erratum="kerg2022-table5",
        ),
        Claim(
            id="kerg2022-table5-rounding",
            statement="double precision settles the totals without diagonal and not those with it",
            measures="plain double precision against exact first 150 terms",
            test="1e-6",
            needs=_ALL,
            scale="laptop",
            judge=judge_rounding,
            counterfeit=with_column("Total Fisher memory", "plain_double", lambda row: row["first_terms"]),
            erratum="kerg2022-table5",
        ),
        Claim(
            id="kerg2022-table5-order",
            statement="a diagonal raises the total of every line",
            measures="ratio of totals with and without diagonal",
            test="above 1 in every pair",
            needs=_ALL,
            scale="laptop",
            judge=judge_order,
            counterfeit=with_column(
                "Total Fisher memory", "total", lambda row: row["total"] / 5, where=lambda row: row["d"] > 0
            ),
        ),
        Claim(
            id="kerg2022-table5-beta",
            statement="entries of 0.005 below the sub-diagonal do not cost much memory",
            measures="relative change of the total",
            test="within 5 %",
            needs=_ALL,
            scale="laptop",
            judge=judge_beta,
            counterfeit=with_column(
                "Total Fisher memory", "total", lambda row: 0.8 * row["total"], where=lambda row: row["beta"] > 0
            ),
        ),
        Claim(
            id="kerg2022-table5-truncation",
            statement="150 terms are enough for the infinite sum to the printed digits",
            measures="sum of 150 terms against the infinite sum",
            test="0.003",
            needs=_ALL,
            scale="laptop",
            judge=judge_truncation,
            counterfeit=with_column("Total Fisher memory", "first_terms", lambda row: 0.99 * row["total"]),
        ),
    ),
    draw=draw,
)
