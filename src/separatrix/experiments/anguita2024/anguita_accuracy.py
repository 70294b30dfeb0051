"""anguita2024, Figures 3.4-3.6: how far gradient descent strays from the exact flow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix import theory
from separatrix.core import spawn
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Row, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def logspace(low: float, high: float, count: int) -> tuple[float, ...]:
    """Numbers evenly spaced in the logarithm."""
    return tuple(low * (high / low) ** (index / (count - 1)) for index in range(count))


def expand(params: Settings) -> Iterator[dict[str, Any]]:
    """One cell per size, learning rate, balance and seed; the trials of a cell run as one batch."""
    pairs = (
        zip(params.lrs, params.balances, strict=True)
        if params.paired
        else ((lr, balance) for lr in params.lrs for balance in params.balances)
    )
    common = params.model_dump(include={"n_trials", "steps", "stride", "scale"})
    combinations = list(pairs)
    for seed in params.seeds:
        for size in params.sizes:
            for lr, balance in combinations:
                yield {"size": size, "lr": lr, "balance": balance, **common, "seed": seed}


def run(cell: Cell) -> dict[str, Any]:
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


def summarise(results: Sequence[tuple[Cell, dict[str, Any]]]) -> dict[str, Any]:
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
    return {"tables": {"deviation": table}}


def _cells(summary: Mapping[str, Any], size: int | None = None) -> list[dict[str, Any]]:
    return [row for row in summary["tables"]["deviation"] if size is None or row["size"] == size]


def _sizes(summary: Mapping[str, Any]) -> list[int]:
    return sorted({row["size"] for row in _cells(summary)})


def judge_small(summary: Mapping[str, Any]) -> Judgement:
    """Below 0.05 for every learning rate of the figure."""
    worst = max(_cells(summary), key=lambda row: row["deviation"])
    rows = [Row(f"size {row['size']}, lr {row['lr']:.1g}", row["deviation"], 0.0, 0.05) for row in _cells(summary)]
    return judge(f"largest mean deviation {worst['deviation']:.3f} (size {worst['size']}, lr {worst['lr']:.1g})", rows)


def judge_growth(summary: Mapping[str, Any]) -> Judgement:
    """Grows with the learning rate while the loss still falls; beyond that both have converged and it need not."""
    rows, whole = [], []
    for size in _sizes(summary):
        cells = sorted(_cells(summary, size), key=lambda row: row["lr"])
        early = [row["deviation"] for row in cells if row["lr"] <= 1.1e-3]
        rows.append(_rising(f"size {size}, learning rates up to 1e-3: deviation rises", early))
        largest = max(row["deviation"] for row in cells)
        last = cells[-1]["deviation"] / largest
        whole.append(
            Row(f"size {size}: deviation at the largest learning rate over the largest of all", last, 1.0, 0.02)
        )
    falling = [row.quantity.split(":")[0] for row in whole if not row.agrees]
    text = f"and falls again at the largest ones for {', '.join(falling)}" if falling else "and beyond"
    return judge(f"the deviation rises with the learning rate up to 1e-3 {text}", rows, counterexamples=whole)


def judge_size(summary: Mapping[str, Any]) -> Judgement:
    """Larger networks deviate more."""
    rows = []
    for lr in sorted({row["lr"] for row in _cells(summary)}):
        cells = sorted((row for row in _cells(summary) if row["lr"] == lr), key=lambda row: row["size"])
        if lr <= 3e-3:
            rows.append(_rising(f"lr {lr:.1g}: deviation rises with size", [row["deviation"] for row in cells]))
    return judge("at every learning rate up to 3e-3 the deviation rises with the size", rows)


def judge_balance(summary: Mapping[str, Any]) -> Judgement:
    """Figure 3.5: at a fixed learning rate the deviation rises once the balance exceeds the task."""
    rows = []
    for size in _sizes(summary):
        cells = sorted(_cells(summary, size), key=lambda row: row["balance"])
        growth = cells[-1]["deviation"] / cells[0]["deviation"]
        rows.append(
            Row(
                f"size {size}: deviation at the largest balance over the smallest", growth, "above 2", agrees=growth > 2
            )
        )
    return judge("the deviation at balance 100 exceeds that at 0.01 for every size", rows)


def judge_constant(summary: Mapping[str, Any]) -> Judgement:
    """Figure 3.6: constant when learning rate times balance is."""
    rows = []
    for size in _sizes(summary):
        values = [row["deviation"] for row in _cells(summary, size)]
        rows.append(Row(f"size {size}: largest over smallest deviation", max(values) / min(values), 1.0, 0.35))
    return judge("with lr * balance fixed the deviation varies by less than 35 percent", rows)


def _rising(quantity: str, values: Sequence[float]) -> Row:
    """Whether values rise, allowing two percent for the noise of trials."""
    falls = [later / earlier for earlier, later in itertools.pairwise(values)]
    least = min(falls, default=1.0)
    return Row(quantity, least, "each at least 0.98 of the one before", agrees=least > 0.98)


def draw_against(axis: str, label: str, name: str) -> Any:
    """The deviation against one setting, a curve per size with a band of one standard deviation."""

    def draw(summary: Mapping[str, Any]) -> dict[str, Figure]:
        from separatrix.report.figures import linear

        series = {}
        for size in _sizes(summary):
            cells = sorted(_cells(summary, size), key=lambda row: row[axis])
            series[f"{size} units"] = {
                "x": [row[axis] for row in cells],
                "y": [row["deviation"] for row in cells],
                "low": [max(row["deviation"] - row["sd"], 1e-6) for row in cells],
                "high": [row["deviation"] + row["sd"] for row in cells],
            }
        return {
            name: linear.curves(series, x_label=label, y_label="mean deviation of the loss", x_log=True, y_log=True)
        }

    return draw


def _experiment(
    number: str, title: str, scales: dict[str, Settings], claims: tuple[Claim, ...], draw: Any
) -> Experiment:
    return Experiment(
        name=f"anguita-fig3-{number}", title=title, document="anguita2024", place=f"Figure 3.{number}", version=1,
        scales=scales, expand=expand, run=run, summarise=summarise, claims=claims, draw=draw,  # type: ignore[arg-type]
    )  # fmt: skip


def _claim(key: str, figure: str, statement: str, test: str, rule: Any) -> Claim:
    measures = "mean absolute relative deviation of the exact loss from that of descent"
    return Claim(f"anguita2024-{key}", "anguita2024", f"Figure {figure}", statement, measures, test, rule)


_SMALL: dict[str, Any] = {"sizes": (5, 10), "n_trials": 8, "stride": 10}

FIG_3_4 = _experiment(
    "4",
    "Exact loss against descent over the learning rate",
    {
        "smoke": Settings(lrs=(1e-4, 1e-3, 1e-2), balances=(3.0,), **_SMALL),
        "laptop": Settings(lrs=logspace(1e-4, 1e-2, 20), balances=(3.0,), n_trials=20),
        "paper": Settings(lrs=logspace(1e-4, 1e-2, 20), balances=(3.0,), stride=1),
    },
    (
        _claim(
            "fig3.4-small", "3.4", "the deviation stays below 0.05 for learning rates up to 0.01", "0.05", judge_small
        ),
        _claim(
            "fig3.4-growth",
            "3.4",
            "the deviation grows with the learning rate",
            "monotone within 2 percent",
            judge_growth,
        ),
        _claim(
            "fig3.4-size",
            "3.4",
            "the deviation grows with the size of the network",
            "monotone within 2 percent",
            judge_size,
        ),
    ),
    draw_against("lr", "learning rate", "fig3-4"),
)
FIG_3_5 = _experiment(
    "5",
    "Exact loss against descent over the balance",
    {
        "smoke": Settings(lrs=(1e-4,), balances=(0.01, 1.0, 100.0), **_SMALL),
        "laptop": Settings(sizes=(3, 5, 10, 20), lrs=(1e-4,), balances=logspace(0.01, 100.0, 20), n_trials=20),
        "paper": Settings(sizes=(3, 5, 10, 20), lrs=(1e-4,), balances=logspace(0.01, 100.0, 20), stride=1),
    },
    (
        _claim(
            "fig3.5", "3.5", "at a fixed learning rate a larger balance strays further", "a factor of 2", judge_balance
        ),
    ),
    draw_against("balance", "balance", "fig3-5"),
)
_BALANCES = tuple(50.0 + 150.0 * index / 9 for index in range(10))
FIG_3_6 = _experiment(
    "6",
    "Exact loss against descent at a fixed product of learning rate and balance",
    {
        "smoke": Settings(lrs=(2e-4, 1e-4, 5e-5), balances=(50.0, 100.0, 200.0), paired=True, **_SMALL),
        "laptop": Settings(
            sizes=(5, 10, 20), lrs=tuple(0.01 / b for b in _BALANCES), balances=_BALANCES, paired=True, n_trials=20
        ),
        "paper": Settings(
            sizes=(5, 10, 20), lrs=tuple(0.01 / b for b in _BALANCES), balances=_BALANCES, paired=True, stride=1
        ),
    },
    (
        _claim(
            "fig3.6",
            "3.6",
            "learning rate times balance alone decides the deviation",
            "within 35 percent",
            judge_constant,
        ),
    ),
    draw_against("balance", "balance (learning rate 0.01 / balance)", "fig3-6"),
)
