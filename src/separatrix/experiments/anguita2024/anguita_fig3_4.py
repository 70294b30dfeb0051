"""anguita2024, Figure 3.4: how far descent strays from the exact flow, over the learning rate."""

from __future__ import annotations

from separatrix.core.wording import measured, number, several
from separatrix.lab import Cell, Claim, Judgement, Payload, Row, Summary, condition, crossed, judge, spans, with_column

from .accuracy import MEASURES, SMALL, Settings, logspace, measure, rising, rows_of, sizes_of, sweep


def run(cell: Cell) -> Payload:
    """Relative deviation of the exact loss from that of descent, one number per trial."""
    return measure(cell)


def judge_small(summary: Summary) -> Judgement:
    """Below 0.05 for every learning rate of the figure."""
    worst = max(rows_of(summary), key=lambda row: row["deviation"])
    rows = [Row(f"size {row['size']}, lr {row['lr']:.1g}", row["deviation"], 0.0, 0.05) for row in rows_of(summary)]
    return judge(
        f"largest mean deviation {measured(worst['deviation'], worst['sd'])} (size {worst['size']}, "
        f"learning rate {number(worst['lr'])})",
        rows,
    )


def judge_growth(summary: Summary) -> Judgement:
    """Grows with the learning rate while the loss still falls; beyond that both have converged and it need not."""
    rows, whole = [], []
    for size in sizes_of(summary):
        cells = sorted(rows_of(summary, size), key=lambda row: row["lr"])
        early = [row["deviation"] for row in cells if row["lr"] <= 1.1e-3]
        rows.append(rising(f"size {size}, learning rates up to 1e-3: deviation rises", early))
        largest = max(row["deviation"] for row in cells)
        last = cells[-1]["deviation"] / largest
        whole.append(
            Row(f"size {size}: deviation at the largest learning rate over the largest of all", last, 1.0, 0.02)
        )
    falling = [row.quantity.split(":")[0] for row in whole if not row.agrees]
    text = f"and falls again at the largest ones for {', '.join(falling)}" if falling else "and beyond"
    evidence = f"the deviation rises with the learning rate up to 1e-3 {text}"
    return judge(evidence, rows + whole, condition("for learning rates up to 1e-3", rows))


def judge_size(summary: Summary) -> Judgement:
    """Larger networks deviate more."""
    rates = sorted({row["lr"] for row in rows_of(summary)})
    rows = []
    for lr in rates:
        cells = sorted((row for row in rows_of(summary) if row["lr"] == lr), key=lambda row: row["size"])
        rows.append(rising(f"lr {lr:.1g}: deviation rises with size", [row["deviation"] for row in cells]))
    low = [row for lr, row in zip(rates, rows, strict=True) if lr <= 3e-3]
    held = [lr for lr, row in zip(rates, rows, strict=True) if row.agrees]
    where = f", from {number(min(held))} to {number(max(held))}" if held else ""
    evidence = f"the deviation rises with the size at {len(held)} of {several(len(rates), 'learning rate')}{where}"
    return judge(evidence, rows, condition("for learning rates up to 3e-3", low))


_ALL = (crossed("deviation", "size", "lr"), spans("deviation", "size", 5, 25), spans("deviation", "lr", 1e-4, 1e-2))
"""The sizes and learning rates of the figure, from end to end: what is true of small networks is not of large ones."""

EXPERIMENT = sweep(
    "3.4",
    "Exact loss against descent over the learning rate",
    scales={
        "smoke": Settings(lrs=(1e-4, 1e-3, 1e-2), balances=(3.0,), **(SMALL | {"sizes": (5, 25)})),
        "laptop": Settings(lrs=logspace(1e-4, 1e-2, 20), balances=(3.0,), n_trials=20),
        "paper": Settings(lrs=logspace(1e-4, 1e-2, 20), balances=(3.0,), stride=1),
    },
    run=run,
    claims=(
        Claim(
            id="anguita2024-fig3.4-small",
            statement="the deviation stays below 0.05 for learning rates up to 0.01",
            measures=MEASURES,
            test="0.05",
            needs=_ALL,
            judge=judge_small,
            counterfeit=with_column("deviation", "deviation", 0.2),
        ),
        Claim(
            id="anguita2024-fig3.4-growth",
            statement="the deviation grows with the learning rate",
            measures=MEASURES,
            test="monotone within 2 percent, and by more from end to end",
            needs=_ALL,
            judge=judge_growth,
            counterfeit=with_column("deviation", "deviation", lambda row: 1e-5 / row["lr"]),
        ),
        Claim(
            id="anguita2024-fig3.4-size",
            statement="the deviation grows with the size of the network",
            measures=MEASURES,
            test="monotone within 2 percent, and by more from end to end",
            needs=_ALL,
            judge=judge_size,
            counterfeit=with_column("deviation", "deviation", lambda row: 1 / row["size"]),
        ),
    ),
    axis="lr",
    axis_label="learning rate",
)
