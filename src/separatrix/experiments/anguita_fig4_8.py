"""anguita2024, Figure 4.8: the balance of ReLU and tanh networks over two tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core import spawn
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Row, judge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "anguita-fig4-8"
ACTIVATIONS = ("linear", "relu", "tanh")


class Settings(Params):
    """Balances, sizes, trials and iterations of the text; the public code has 40 trials of 10000 steps."""

    balances: tuple[float, ...] = (-10.0, 0.1, 10.0)
    size_low: int = 3
    size_high: int = 19
    n_trials: int = 50
    steps: int = 2000
    lr: float = 1e-3


def expand(params: Settings) -> Iterator[dict[str, Any]]:
    """One cell per activation, trial and seed; the balances of a cell share size and tasks and run as one batch."""
    common = params.model_dump(include={"balances", "size_low", "size_high", "steps", "lr"})
    for seed in params.seeds:
        for activation in ACTIVATIONS:
            for trial in range(params.n_trials):
                yield {"activation": activation, "trial": trial, **common, "seed": seed}


def run(cell: Cell) -> dict[str, Any]:
    """Fitted balance and the distance from it at the start and after each of two tasks, per balance."""
    import torch

    from separatrix import dynamics, matrices, tasks

    args = cell.args
    generator = spawn(cell.seed, NAME, args["trial"])  # the same size and tasks for every activation
    size = int(torch.randint(args["size_low"], args["size_high"] + 1, (1,), generator=generator))
    balances = torch.tensor(args["balances"], dtype=torch.float64)
    state = matrices.balanced_pair(balances, size, size, size, generator=generator)
    means, distances = [], []
    for stage in range(3):
        if stage:
            task = tasks.white_regression(size, size, generator=generator)
            flow = dynamics.LinearNetworkFlow(inputs=task.inputs, targets=task.targets, activation=args["activation"])
            path = flow.descend(state, dynamics.Descent(args["lr"]), args["steps"], record_every=args["steps"])
            state = (path.layers[0][-1], path.layers[1][-1])
        fit = matrices.fit_balance(*state)
        means.append(fit.mean)
        distances.append(fit.spread * size**0.5)
    return {"size": size, "mean": torch.stack(means), "distance": torch.stack(distances)}


def summarise(results: Sequence[tuple[Cell, dict[str, Any]]]) -> dict[str, Any]:
    """Mean and standard deviation over trials for every activation and balance."""
    import numpy

    table: list[dict[str, Any]] = []
    groups: dict[str, dict[str, Any]] = {}
    for activation in ACTIVATIONS:
        members = [(cell, payload) for cell, payload in results if cell.args["activation"] == activation]
        for k, balance in enumerate(members[0][0].args["balances"]):
            row: dict[str, Any] = {"activation": activation, "balance": balance, "n_trials": len(members)}
            group: dict[str, list[float]] = {}
            for place, name in enumerate(("mean", "distance")):
                values = numpy.stack([numpy.asarray(payload[name])[:, k] for _, payload in members])
                group[str(place)], group[f"{place}_sd"] = values.mean(0).tolist(), values.std(0).tolist()
                for stage, label in enumerate(("start", "task1", "task2")):
                    row[f"{name}_{label}"] = float(values[:, stage].mean())
            table.append(row)
            groups.setdefault(f"{balance:g}", {})[activation] = group
    return {"tables": {"balance over two tasks": table}, "groups": groups}


def _table(summary: Mapping[str, Any], activation: str) -> list[dict[str, Any]]:
    return [row for row in summary["tables"]["balance over two tasks"] if row["activation"] == activation]


def judge_kept(summary: Mapping[str, Any]) -> Judgement:
    """Linear and ReLU networks keep the fitted balance; the linear one keeps the whole matrix."""
    rows = [
        Row(f"{name}: fitted balance after two tasks, start {row['balance']:g}", row["mean_task2"], row["balance"], 0.3)
        for name in ("linear", "relu")
        for row in _table(summary, name)
    ]
    rows += [
        Row(f"linear: distance, start {row['balance']:g}", row["distance_task2"], 0.0, 1.0)
        for row in _table(summary, "linear")
    ]
    return judge("fitted balance kept by linear and ReLU networks up to the step size", rows)


def judge_tanh(summary: Mapping[str, Any]) -> Judgement:
    """Tanh networks lose balance: the fitted coefficient falls."""
    rows = [
        Row(
            f"tanh: change of the fitted balance, start {row['balance']:g}",
            row["mean_task2"] - row["balance"],
            "below -0.5",
            agrees=row["mean_task2"] - row["balance"] < -0.5,
        )
        for row in _table(summary, "tanh")
    ]
    changes = ", ".join(f"{row['balance']:g} to {row['mean_task2']:.2f}" for row in _table(summary, "tanh"))
    return judge(f"tanh: {changes}", rows)


def judge_distance(summary: Mapping[str, Any]) -> Judgement:
    """The distance from balance grows for ReLU and tanh."""
    rows = []
    for name in ("relu", "tanh"):
        for row in _table(summary, name):
            grows = row["distance_start"] < row["distance_task1"]
            rows.append(
                Row(
                    f"{name}: distance after task 1, start {row['balance']:g}",
                    row["distance_task1"],
                    "above the start",
                    agrees=grows,
                )
            )
    for relu, tanh in zip(_table(summary, "relu"), _table(summary, "tanh"), strict=True):
        less = relu["distance_task1"] < tanh["distance_task1"]
        rows.append(
            Row(
                f"ReLU below tanh after task 1, start {relu['balance']:g}",
                relu["distance_task1"],
                f"below {tanh['distance_task1']:.3g}",
                agrees=less,
            )
        )
    return judge("the distance grows in both, more slowly for ReLU", rows)


def draw(summary: Mapping[str, Any]) -> dict[str, Figure]:
    """Figure 4.8, one figure per initial balance."""
    from separatrix.report import linear

    labels = ("fitted balance", "distance from it")
    return {
        f"fig4-8-balance-{balance}": linear.bars_by_group(groups, stages=("start", "task 1", "task 2"), y_labels=labels)
        for balance, groups in summary["groups"].items()
    }


EXPERIMENT = Experiment(
    name=NAME,
    title="Balance of linear, ReLU and tanh networks over two tasks",
    document="anguita2024",
    place="Figure 4.8",
    version=1,
    scales={
        "smoke": Settings(n_trials=2, steps=800, size_high=10, lr=2e-3),
        "laptop": Settings(n_trials=20),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            "anguita2024-fig4.8-kept",
            "anguita2024",
            "Figure 4.8",
            "linear and ReLU networks keep the fitted balance",
            "trace of the balance over the width",
            "0.3",
            judge_kept,
        ),
        Claim(
            "anguita2024-fig4.8-tanh",
            "anguita2024",
            "Figure 4.8",
            "in tanh networks the fitted balance falls",
            "change over two tasks",
            "below -0.5",
            judge_tanh,
        ),
        Claim(
            "anguita2024-fig4.8-distance",
            "anguita2024",
            "Figure 4.8",
            "the distance from balance grows, more slowly for ReLU than for tanh",
            "Frobenius distance",
            "ordering",
            judge_distance,
        ),
    ),
    draw=draw,
)
