"""anguita2024, Figure 3.6: how far descent strays from the exact flow when learning rate times balance is fixed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.wording import number
from separatrix.lab import (
    Cell,
    Claim,
    Judgement,
    Payload,
    Row,
    Summary,
    Table,
    crossed,
    groups,
    in_turn,
    instead,
    interval_row,
    judge,
    spans,
    with_column,
)

from .accuracy import MEASURES, SMALL, TABLE, Settings, draw_against, measure, rows_of, sizes_of, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRODUCT, CONTROL = 0.01, 0.04
"""Learning rate times balance of the figure, and four times as much."""
FIGURE = tuple(50.0 + 150.0 * index / 9 for index in range(10))
SMALLER = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Balances of the figure, and below it."""
LEAST = FIGURE[0]
ALIKE = 0.35
"""By how much the largest deviation may exceed the smallest and be "almost constant"."""


def pairs(balances: Sequence[float], controls: Sequence[float]) -> dict[str, Any]:
    """Learning rates and balances: at the figure's product, and some at the other."""
    rates = (*(PRODUCT / balance for balance in balances), *(CONTROL / balance for balance in controls))
    return {"lrs": rates, "balances": (*balances, *controls), "paired": True}


SWEEP: dict[str, Any] = {"sizes": (5, 10, 20), **pairs((*SMALLER, *FIGURE), (FIGURE[0], FIGURE[3], FIGURE[-1]))}


def run(cell: Cell) -> Payload:
    """Relative deviation of the exact loss from that of descent, one number per trial."""
    return measure(cell)


def _at(rows: Table, product: float, least: float = 0.0) -> Table:
    """Rows of one product of learning rate and balance, from a balance on, by rising balance."""
    chosen = [row for row in rows if math.isclose(row["lr"] * row["balance"], product) and row["balance"] >= least]
    return sorted(chosen, key=lambda row: row["balance"])


def _ratio(size: int, rows: Table, where: str) -> Row:
    """Largest over smallest deviation of one size."""
    values = [row["deviation"] for row in rows]
    return Row(f"size {size}: largest over smallest deviation, {where}", max(values) / min(values), 1.0, ALIKE)


def judge_figure(summary: Summary) -> Judgement:
    """Decide ``anguita2024-fig3.6``: alike along the figure's balances, where products are not alike."""
    alike, apart = [], []
    for size in sizes_of(summary):
        own, other = (_at(rows_of(summary, size), product, LEAST) for product in (PRODUCT, CONTROL))
        alike.append(_ratio(size, own, f"balances of {number(LEAST)} and more"))
        here = {row["balance"]: row["deviation"] for row in own}
        ratios = [row["deviation"] / here[row["balance"]] for row in other]
        # a deviation that is as good as constant across products, too, says nothing of this one
        name = f"size {size}: least deviation at four times the product over that at the figure's"
        apart.append(Row(name, min(ratios), f"above {1 + ALIKE:g}", agrees=min(ratios) > 1 + ALIKE or None))
    most, least = max(float(row.measured) for row in alike), min(float(row.measured) for row in apart)
    return judge(
        f"with lr * balance fixed the largest deviation is at most {most:.2f} times the smallest; at four times the "
        f"product it is at least {least:.3g} times as large",
        alike + apart,
    )


def judge_alone(summary: Summary) -> Judgement:
    """Decide ``anguita2024-fig3.6-alone``: the same at balances below the figure's."""
    every, figure = [], []
    for size in sizes_of(summary):
        own = rows_of(summary, size)
        every.append(_ratio(size, _at(own, PRODUCT), "all balances"))
        figure.append(_ratio(size, _at(own, PRODUCT, LEAST), f"balances of {number(LEAST)} and more"))
    most = max(float(row.measured) for row in every)
    least = min(row["balance"] for row in rows_of(summary))
    return judge(
        f"with lr * balance fixed the largest deviation is up to {most:.3g} times the smallest from balance "
        f"{number(least)} on",
        every,
        instead(f"it decides the deviation at balances of {number(LEAST)} and more", figure),
    )


def _interval(ratio: float, error: float) -> tuple[float, float]:
    """About a ratio, 95 %, from the standard error of its logarithm."""
    width = min(1.96 * error, 500.0)  # beyond, the exponential is no number
    return ratio * math.exp(-width), ratio * math.exp(width)


def judge_sizes(summary: Summary) -> Judgement:
    """Decide ``anguita2024-fig3.6-sizes``: means and spreads over trials, from size to size, over all balances.

    Trials are the same at every balance, so that balances add nothing to their number.
    """
    rows, words = [], []
    found = {size: _at(rows_of(summary, size), PRODUCT, LEAST) for size in sizes_of(summary)}
    for small, large in itertools.pairwise(found):
        mean, sd = ([sum(row[name] for row in found[size]) for size in (small, large)] for name in ("deviation", "sd"))
        trials = [min(row["n_trials"] for row in found[size]) for size in (small, large)]
        mean_error = math.hypot(*(s / (m * math.sqrt(n)) for s, m, n in zip(sd, mean, trials, strict=True)))
        spread_error = math.hypot(*(1 / math.sqrt(2 * max(n - 1, 1)) for n in trials))
        higher, wider = mean[1] / mean[0], sd[1] / sd[0]
        of = f"size {large} over size {small}"
        rows.append(interval_row(f"deviation, {of}", higher, _interval(higher, mean_error), above=1.0))
        rows.append(interval_row(f"spread over trials, {of}", wider, _interval(wider, spread_error), below=1.0))
        words.append(f"{of}: deviation {higher:.2f}, spread {wider:.2f}")
    return judge("; ".join(words), rows)


def draw(summary: Summary) -> Mapping[str, Figure]:
    """The figure: the deviation over the balance at its product alone."""
    kept = Summary(tables={TABLE: _at(summary.table(TABLE), PRODUCT)})
    return {"fig3-6": draw_against(kept, "balance", "balance (learning rate 0.01 / balance)")}


_FIGURE = (
    crossed(TABLE, "size", ("lr", "balance")),
    spans(TABLE, "balance", 50.0, 200.0),
    groups(
        TABLE, ("lr", "balance"), *((product / end, end) for product in (PRODUCT, CONTROL) for end in (50.0, 200.0))
    ),
)
"""All sizes at all pairs, from end to end of the figure, and the control."""


def _by_size(power: float, column: str) -> Any:
    return with_column(TABLE, column, lambda row: 0.01 * row["size"] ** power)


EXPERIMENT = sweep(
    "3.6",
    "Exact loss against descent at a fixed product of learning rate and balance",
    scales={
        "smoke": Settings(**pairs((1.0, 50.0, 100.0, 200.0), (50.0, 200.0)), **SMALL),
        "laptop": Settings(**SWEEP, n_trials=20),
        "paper": Settings(**SWEEP, stride=1),
    },
    run=run,
    claims=(
        Claim(
            id="anguita2024-fig3.6",
            statement="with learning rate times balance as in the figure, .01, the deviation is almost the same at its "
            "balances from 50 to 200",
            measures=MEASURES,
            test="largest over smallest within 35 percent of 1; nothing is told if that at four times the product is, "
            "too",
            needs=_FIGURE,
            as_a_whole=(TABLE,),
            judge=judge_figure,
            counterfeit=with_column(TABLE, "deviation", lambda row: row["deviation"] * row["balance"]),
        ),
        Claim(
            id="anguita2024-fig3.6-alone",
            statement="learning rate times balance alone decides the deviation",
            measures=f"{MEASURES}, balances from 1 to 200 at one product",
            test="largest over smallest within 35 percent of 1",
            needs=(*_FIGURE, spans(TABLE, "balance", 1.0, 200.0)),
            judge=judge_alone,
            counterfeit=with_column(TABLE, "deviation", lambda row: row["deviation"] * row["balance"]),
            genuine=with_column(TABLE, "deviation", lambda row: row["lr"] * row["balance"]),
        ),
        Claim(
            id="anguita2024-fig3.6-sizes",
            statement="larger networks stray further, and scatter less over trials",
            measures=f"{MEASURES}, and its standard deviation over trials, from size to size",
            test="95 % intervals of the ratios: above 1 for the mean, below 1 for the spread",
            needs=(*_FIGURE, spans(TABLE, "size", 5, 20)),
            as_a_whole=(TABLE,),
            judge=judge_sizes,
            counterfeit=in_turn(_by_size(-1.0, "deviation"), with_column(TABLE, "sd", 1e-4)),
            genuine=in_turn(_by_size(1.0, "deviation"), with_column(TABLE, "sd", lambda row: 1e-3 / row["size"])),
            scale="laptop",
        ),
    ),
    axis="balance",
    axis_label="balance",
    draw=draw,
)
