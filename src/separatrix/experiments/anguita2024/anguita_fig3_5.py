"""anguita2024, Figure 3.5: how far descent strays from the exact flow, over the balance."""

from __future__ import annotations

from separatrix.lab import Cell, Claim, Judgement, Payload, Row, Summary, crossed, judge, spans, with_column

from .accuracy import MEASURES, SMALL, Settings, logspace, measure, rising, rows_of, sizes_of, sweep


def run(cell: Cell) -> Payload:
    """Relative deviation of the exact loss from that of descent, one number per trial."""
    return measure(cell)


def judge_balance(summary: Summary) -> Judgement:
    """Figure 3.5: at a fixed learning rate the deviation rises, at no step falls, and by a factor from end to end."""
    rows, growths = [], []
    for size in sizes_of(summary):
        cells = sorted(rows_of(summary, size), key=lambda row: row["balance"])
        growth = cells[-1]["deviation"] / cells[0]["deviation"]
        growths.append(growth)
        name = f"size {size}: deviation at the largest balance over the smallest"
        rows.append(Row(name, growth, "above 2", agrees=growth > 2))
        rows.append(
            rising(f"size {size}: deviation rises from balance to balance", [row["deviation"] for row in cells])
        )
    least = min(growths)
    deepest = min(float(row.measured) for row in rows if row.quantity.endswith("to balance"))
    return judge(
        f"the deviation at the largest balance is at least {least:.3g} times that at the smallest, and at every "
        f"balance at least {deepest:.3g} times that at the one before",
        rows,
    )


EXPERIMENT = sweep(
    "3.5",
    "Exact loss against descent over the balance",
    scales={
        "smoke": Settings(lrs=(1e-4,), balances=(0.01, 1.0, 100.0), **SMALL),
        "laptop": Settings(sizes=(3, 5, 10, 20), lrs=(1e-4,), balances=logspace(0.01, 100.0, 20), n_trials=20),
        "paper": Settings(sizes=(3, 5, 10, 20), lrs=(1e-4,), balances=logspace(0.01, 100.0, 20), stride=1),
    },
    run=run,
    claims=(
        Claim(
            id="anguita2024-fig3.5",
            statement="at a fixed learning rate a larger balance strays further",
            measures=MEASURES,
            test="a factor of 2 from end to end, monotone within 2 percent",
            needs=(
                crossed("deviation", "size", "balance"),
                spans("deviation", "balance", 0.01, 100.0),
                spans("deviation", "size", 5, 10),
            ),
            as_a_whole=("deviation",),
            judge=judge_balance,
            counterfeit=with_column("deviation", "deviation", 0.01),
        ),
    ),
    axis="balance",
    axis_label="balance",
)
