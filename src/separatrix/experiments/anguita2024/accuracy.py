"""What Figures 3.4 to 3.6 of anguita2024 share: how far gradient descent strays from the exact flow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix import theory
from separatrix.core import spawn
from separatrix.lab import Cell, Claim, Experiment, Params, Payload, Row, Summary, Table

from ..worst_case import lowest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLE = "deviation"
MEASURES = "mean absolute relative deviation of the exact loss from that of descent"
SMALL: dict[str, Any] = {"sizes": (5, 10), "n_trials": 8, "stride": 10}
"""Changes that make a sweep finish in seconds."""


class Settings(Params):
    """A sweep: learning rates and balances are paired when ``paired``, else every combination is run."""

    sizes: tuple[int, ...] = (5, 10, 15, 25)  # text; the public code has 20 in place of 25
    lrs: tuple[float, ...]
    balances: tuple[float, ...]
    paired: bool = False
    n_trials: int = 40  # text; the public code has 20
    steps: int = 200
    stride: int = 5
    scale: float = 1.0


def sweep(
    figure: str,
    title: str,
    *,
    scales: Mapping[Any, Settings],
    run: Callable[[Cell], Payload],
    claims: tuple[Claim, ...],
    axis: str,
    axis_label: str,
    draw: Callable[[Any], Mapping[str, Figure]] | None = None,
) -> Experiment:
    """The experiment of one figure, ``"3.4"``, which draws the deviation over the setting ``axis`` unless said."""
    name = f"fig{figure.replace('.', '-')}"
    return Experiment(
        name=f"anguita-{name}",
        title=title,
        document="anguita2024",
        place=f"Figure {figure}",
        version=1,
        scales=scales,
        expand=expand,
        run=run,
        summarise=summarise,
        claims=claims,
        draw=draw or (lambda summary: {name: draw_against(summary, axis, axis_label)}),
    )


def logspace(low: float, high: float, count: int) -> tuple[float, ...]:
    """Numbers evenly spaced in the logarithm."""
    return tuple(low * (high / low) ** (index / (count - 1)) for index in range(count))


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per size, learning rate, balance and seed; the trials of a cell run as one batch."""
    pairs = (
        zip(settings.lrs, settings.balances, strict=True)
        if settings.paired
        else ((lr, balance) for lr in settings.lrs for balance in settings.balances)
    )
    common = settings.model_dump(include={"n_trials", "steps", "stride", "scale"})
    combinations = list(pairs)
    for seed in settings.seeds:
        for size in settings.sizes:
            for lr, balance in combinations:
                yield {"size": size, "lr": lr, "balance": balance, **common, "seed": seed}


def measure(cell: Cell) -> Payload:
    """Relative deviation of the exact loss from that of descent, averaged over steps; one number per trial."""
    import torch

    from separatrix import dynamics, matrices, tasks

    args = cell.args
    generator = spawn(cell.seed, "anguita-accuracy", args["size"])
    drawn = [tasks.white_regression(args["size"], args["size"], generator=generator) for _ in range(args["n_trials"])]
    corr = torch.stack([task.corr_yx for task in drawn])
    power = torch.stack([task.targets.square().mean(0).sum() for task in drawn])
    floor = (power - corr.square().sum((-2, -1))) / 2
    balance = torch.full((args["n_trials"],), args["balance"], dtype=torch.float64)
    w1, w2 = matrices.balanced_pair(balance, *[args["size"]] * 3, scale=args["scale"], generator=generator)
    path = dynamics.LinearNetworkFlow(corr).descend(
        (w1, w2), dynamics.Descent(args["lr"]), args["steps"], record_every=args["stride"]
    )
    exact = theory.BalancedFlow(w1, w2, corr).loss(path.times)
    deviation = ((exact - path.loss) / (path.loss + floor))[1:]
    return {"signed": deviation.mean(0), "absolute": deviation.abs().mean(0)}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Mean deviation and its standard error over trials."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for cell, payload in results:
        key = (cell.args["size"], cell.args["lr"], cell.args["balance"])
        groups.setdefault(key, []).extend(payload["absolute"].tolist())
    table = []
    for (size, lr, balance), values in groups.items():
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
        table.append(
            {
                "size": size,
                "lr": lr,
                "balance": balance,
                "deviation": mean,
                "sd": variance**0.5,
                "n_trials": len(values),
            }
        )
    return Summary(tables={TABLE: table})


def rows_of(summary: Summary, size: int | None = None) -> Table:
    """Rows of the table, of one size or of all."""
    return [row for row in summary.table(TABLE) if size is None or row["size"] == size]


def sizes_of(summary: Summary) -> list[int]:
    """Sizes of the networks, ascending."""
    return sorted({row["size"] for row in summary.table(TABLE)})


def rising(quantity: str, values: Sequence[float]) -> Row:
    """Whether values rise, allowing two percent at a step for the noise of trials, and from end to end by more than
    that: what stays as it is does not rise. Fewer than two cannot tell."""
    falls = [later / earlier for earlier, later in itertools.pairwise(values)]
    least = lowest(*falls) if falls else math.nan
    agrees = least > 0.98 and values[-1] > 1.02 * values[0]
    return Row(quantity, least, "each at least 0.98 of the one before, the last above 1.02 of the first", agrees=agrees)


def draw_against(summary: Summary, axis: str, label: str) -> Figure:
    """The deviation against one setting, a curve per size with a band of one standard deviation."""
    from separatrix.report.figures.learning import linear

    series = {}
    for size in sizes_of(summary):
        rows = sorted(rows_of(summary, size), key=lambda row: row[axis])
        series[f"{size} units"] = {
            "x": [row[axis] for row in rows],
            "y": [row["deviation"] for row in rows],
            "low": [max(row["deviation"] - row["sd"], 0.0) for row in rows],
            "high": [row["deviation"] + row["sd"] for row in rows],
        }
    return linear.curves(
        series,
        x_label=label,
        y_label="mean deviation of the loss",
        x_log=True,
        y_log=True,
        caption=f"""Mean deviation of the exact loss from gradient descent against the {label}, a curve per number
        of units; band: one standard deviation over starts, open below where it reaches zero. What the flow leaves
        out is of first order in the learning rate.""",
    )
