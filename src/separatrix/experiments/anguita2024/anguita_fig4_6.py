"""anguita2024, Figures 4.6 and 4.7, Theorem 4.4.1: continual learning, and the rate of loss and of forgetting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix import theory
from separatrix.core import spawn
from separatrix.core.wording import number, small
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    crossed,
    groups,
    judge,
    misprint,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Sizes, balances, learning rate, batch and steps of the figures."""

    size: int = 5
    balance: float = 1.0  # Figure 4.6
    rate_balance: float = 5.0  # Figure 4.7, text; the public code has 1
    n_samples: int = 25
    n_tasks: int = 4
    steps: int = 6000
    rate_steps: int = 1000
    lr: float = 0.01
    scale: float = 0.5


class Measured(Summary):
    """Curves of the first seed, by task."""

    losses: dict[str, dict[str, Any]]
    rate: dict[str, dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per figure and seed."""
    common = settings.model_dump(include={"size", "n_samples", "lr", "scale"})
    for seed in settings.seeds:
        yield {
            "figure": "4.6",
            "balance": settings.balance,
            "n_tasks": settings.n_tasks,
            "steps": settings.steps,
            **common,
            "seed": seed,
        }
        yield {
            "figure": "4.7",
            "balance": settings.rate_balance,
            "n_tasks": 2,
            "steps": settings.rate_steps,
            **common,
            "seed": seed,
        }


def run(cell: Cell) -> Payload:
    """Train on the tasks in turn by descent; losses on all tasks and their rates beside the exact chain."""
    import torch

    from separatrix import dynamics, matrices, tasks

    args = cell.args
    generator = spawn(cell.seed, "anguita-fig4-6", args["figure"])
    drawn = [
        tasks.white_regression(args["size"], args["size"], args["n_samples"], generator=generator)
        for _ in range(args["n_tasks"])
    ]
    corr = torch.stack([task.corr_yx for task in drawn])
    weights = matrices.balanced_pair(args["balance"], *[args["size"]] * 3, scale=args["scale"], generator=generator)
    stride = max(1, args["steps"] // 100)
    sequence = theory.TaskSequence(*weights, corr, args["lr"] * args["steps"])
    products, times, state = [], [], weights
    for index in range(args["n_tasks"]):
        path = dynamics.LinearNetworkFlow(corr[index]).descend(
            state, dynamics.Descent(args["lr"]), args["steps"], record_every=stride
        )
        state = (path.layers[0][-1], path.layers[1][-1])
        products.append(path.product[:-1])
        times.append(path.times[:-1] + index * args["lr"] * args["steps"])
    when, product = torch.cat(times), torch.cat(products)
    descent = theory.task_loss(product, corr[:, None])
    exact = sequence.losses(when)
    drift = matrices.fit_balance(*state)
    return {
        "times": when, "descent": descent, "exact": exact, "scale": float(exact.max()),
        "mean": float(drift.mean), "spread": float(drift.spread), **_rates(sequence, drawn[0], args),
    }  # fmt: skip


def _rates(sequence: theory.TaskSequence, first: Any, args: Mapping[str, Any]) -> dict[str, Any]:
    """Rate of the first task's loss during the second: closed form against differences; and the loss of the samples."""
    import torch

    flow = sequence.flows[1]
    times = torch.linspace(0.01, args["lr"] * args["steps"], 60, dtype=torch.float64)
    width = 1e-5
    task = sequence.tasks[0]
    rate = theory.loss_rate(flow.product(times), *flow.representations(times), sequence.tasks[1], task)
    ahead, behind = (theory.task_loss(flow.product(times + sign * width), task) for sign in (1, -1))
    product = flow.product(float(times[5]))
    sampled = float((first.inputs @ product.mT - first.targets).square().sum() / (2 * first.inputs.shape[0]))
    power = float(first.targets.square().sum() / first.inputs.shape[0])
    known = float(product.square().sum() / 2 - (product * task).sum())
    return {
        "rate_times": times, "rate": rate, "rate_difference": (ahead - behind) / (2 * width),
        "sampled_loss": sampled, "corrected_loss": known + power / 2, "printed_loss": known + power,
    }  # fmt: skip


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Errors per figure; curves of the first seed."""
    table: list[dict[str, Any]] = []
    losses: dict[str, Any] = {}
    rate: dict[str, Any] = {}
    for cell, payload in results:
        gap = abs(payload["exact"] - payload["descent"]).max() / payload["scale"]
        rates, differences = payload["rate"], payload["rate_difference"]
        table.append(
            {
                "figure": cell.args["figure"], "seed": cell.seed, "balance": cell.args["balance"],
                "deviation": float(gap),
                "mean": payload["mean"], "spread": payload["spread"],
                "rate_error": float(abs(rates - differences).max() / abs(rates).max()),
                **{key: payload[key] for key in ("sampled_loss", "corrected_loss", "printed_loss")},
            }
        )  # fmt: skip
        if cell.args["figure"] == "4.6" and not losses:
            losses = {
                f"task {k + 1}": {
                    "x": payload["times"].tolist(), "y": payload["exact"][k].tolist(),
                    "dots_x": payload["times"][::8].tolist(), "dots_y": payload["descent"][k, ::8].tolist(),
                }
                for k in range(payload["exact"].shape[0])
            }  # fmt: skip
        elif cell.args["figure"] == "4.7" and not rate:
            x = payload["rate_times"].tolist()
            rate = {
                "rate of the old task's loss": {
                    "x": x,
                    "y": rates.tolist(),
                    "dots_x": x[::3],
                    "dots_y": differences[::3].tolist(),
                }
            }
    return Measured(
        tables={"continual learning": table},
        losses=losses,
        rate=rate,
    )


def judge_chain(summary: Measured) -> Judgement:
    """Figure 4.6: exact solutions chain over tasks."""
    table = [row for row in summary.table("continual learning") if row["figure"] == "4.6"]
    rows = [Row(f"deviation of the losses, seed {row['seed']}", row["deviation"], 0.0, 0.05) for row in table]
    rows += [
        Row(f"balance after the last task, seed {row['seed']}", row["mean"], row["balance"], 0.05) for row in table
    ]
    worst = small(max(row["deviation"] for row in table))
    return judge(f"largest deviation {worst} of the largest loss over the whole sequence", rows)


def judge_rate(summary: Measured) -> Judgement:
    """Theorem 4.4.1 and Figure 4.7: the rate of loss and of forgetting in closed form."""
    table = summary.table("continual learning")
    rows = [Row(f"rate, balance {row['balance']:g}", row["rate_error"], 0.0, 1e-6) for row in table]
    return judge(f"closed form off by {small(max(row['rate_error'] for row in table))} of the largest rate", rows)


def judge_loss(summary: Measured) -> Judgement:
    """Eq. (4.40): the loss of the samples, corrected and printed."""
    table = summary.table("continual learning")
    rows = [Row("loss", row["sampled_loss"], row["corrected_loss"], 1e-9) for row in table]
    printed = [Row("loss as printed", row["sampled_loss"], row["printed_loss"], 1e-9) for row in table]
    first = table[0]
    measured, right, wrong = (first[f"{name}_loss"] for name in ("sampled", "corrected", "printed"))
    text = f"samples {number(measured)}, corrected {number(right)}, printed {number(wrong)}"
    return judge(text, printed, misprint("the loss of erratum anguita2024-4.40", rows))


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Figures 4.6 and 4.7."""
    from separatrix.report.figures.learning import linear

    return {
        "fig4-6": linear.curves(
            summary.losses,
            x_label="time",
            y_label="excess loss",
            dots_label="gradient descent",
            caption="""Loss of each task, above its least value, while the tasks are learned one after the other.
            Lines: exact flow; circles: gradient descent. The jump of a curve is what it forgets when the next task
            begins.""",
        ),
        "fig4-7": linear.curves(
            summary.rate,
            x_label="time",
            y_label="rate of loss",
            dots_label="differences",
            caption="""Rate at which the loss of the old task rises while the new one is learned: closed form (line)
            and differences of the exact loss (circles).""",
        ),
    }


_TASKS = "continual learning"
_ALL = (crossed(_TASKS, ("figure", "balance"), "seed"), groups(_TASKS, "figure", "4.6", "4.7"))
"""Both figures, every seed."""

EXPERIMENT = Experiment(
    name="anguita-fig4-6",
    title="Continual learning: exact losses, rates of loss and of forgetting",
    document="anguita2024",
    place="Figures 4.6 and 4.7, Theorem 4.4.1",
    version=1,
    scales={
        "smoke": Settings(n_tasks=3, steps=800, rate_steps=400),
        "laptop": Settings(seeds=(0, 1, 2)),
        "paper": Settings(seeds=tuple(range(10))),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-fig4.6",
            place="Figure 4.6",
            statement="the network stays balanced over tasks, so the exact solution chains",
            measures="losses on all tasks against descent; fitted balance",
            test="5 percent",
            needs=_ALL,
            judge=judge_chain,
            counterfeit=with_column("continual learning", "deviation", 0.5),
        ),
        Claim(
            id="anguita2024-thm4.4.1",
            place="Theorem 4.4.1, Figure 4.7",
            statement="rate of loss and of forgetting in closed form",
            measures="closed form against central differences",
            test="1e-6",
            needs=_ALL,
            judge=judge_rate,
            counterfeit=with_column("continual learning", "rate_error", 0.1),
            erratum="anguita2024-4.34",
        ),
        Claim(
            id="anguita2024-eq4.40",
            place="Eq. (4.40)",
            statement="loss on a task from correlations",
            measures="against the loss of the samples",
            test="1e-9",
            judge=judge_loss,
            counterfeit=with_column("continual learning", "corrected_loss", 0.0),
            erratum="anguita2024-4.40",
        ),
    ),
    draw=draw,
)
