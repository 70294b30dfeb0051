"""anguita2024, Figure 3.6: how far descent strays from the exact flow when learning rate times balance is fixed."""

from __future__ import annotations

from typing import Any

from separatrix.lab import Cell, Claim, Judgement, Payload, Row, Summary, crossed, judge, spans, with_column

from .accuracy import MEASURES, SMALL, Settings, measure, rows_of, sizes_of, sweep

BALANCES = tuple(50.0 + 150.0 * index / 9 for index in range(10))
SWEEP: dict[str, Any] = {
    "sizes": (5, 10, 20),
    "lrs": tuple(0.01 / balance for balance in BALANCES),
    "balances": BALANCES,
    "paired": True,
}


def run(cell: Cell) -> Payload:
    """Relative deviation of the exact loss from that of descent, one number per trial."""
    return measure(cell)


def judge_constant(summary: Summary) -> Judgement:
    """Figure 3.6: constant when learning rate times balance is."""
    rows = []
    for size in sizes_of(summary):
        values = [row["deviation"] for row in rows_of(summary, size)]
        rows.append(Row(f"size {size}: largest over smallest deviation", max(values) / min(values), 1.0, 0.35))
    most = max(float(row.measured) for row in rows)
    return judge(f"with lr * balance fixed the largest deviation is at most {most:.2f} times the smallest", rows)


EXPERIMENT = sweep(
    "3.6",
    "Exact loss against descent at a fixed product of learning rate and balance",
    scales={
        "smoke": Settings(lrs=(2e-4, 1e-4, 5e-5), balances=(50.0, 100.0, 200.0), paired=True, **SMALL),
        "laptop": Settings(**SWEEP, n_trials=20),
        "paper": Settings(**SWEEP, stride=1),
    },
    run=run,
    claims=(
        Claim(
            id="anguita2024-fig3.6",
            statement="learning rate times balance alone decides the deviation",
            measures=MEASURES,
            test="within 35 percent",
            needs=(crossed("deviation", "size", ("lr", "balance")), spans("deviation", "balance", 50.0, 200.0)),
            judge=judge_constant,
            counterfeit=with_column("deviation", "deviation", lambda row: row["deviation"] * row["balance"]),
        ),
    ),
    axis="balance",
    axis_label="balance (learning rate 0.01 / balance)",
)
