"""anguita2024, Figure 4.4: steps to convergence over the balance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix import theory
from separatrix.core import spawn
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
    instead,
    judge,
    with_column,
)
from separatrix.sources.anguita2024 import PRINTED_STEPS_LAW

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Balances, threshold and learning rate of Figure 4.4; balances beyond 20 are ours."""

    balances: tuple[float, ...] = tuple(20 ** (index / 29) for index in range(30))
    beyond: tuple[float, ...] = (50.0, 100.0, 200.0)
    threshold: float = 1e-3  # mean square error
    lr: float = 0.01
    scale: float = 1.0
    check: tuple[float, ...] = (5.0, 20.0)


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per seed: all balances run as one batch."""
    common = settings.model_dump(include={"threshold", "lr", "scale", "check"})
    positive = sorted({*settings.balances, *settings.beyond, *settings.check})
    for seed in settings.seeds:
        yield {"balances": [*(-b for b in reversed(positive)), *positive], **common, "seed": seed}


def run(cell: Cell) -> Payload:
    """Steps until the mean square error falls below the threshold: from the exact flow, and by descent for a few."""
    import torch

    from separatrix import dynamics, matrices, tasks

    args = cell.args
    task = tasks.semantic_task()
    generator = spawn(cell.seed, "anguita-fig4-4")
    balances = torch.tensor(args["balances"], dtype=torch.float64)
    product = matrices.balanced_pair(1.0, 8, 8, 8, scale=args["scale"], generator=generator)
    w1, w2 = matrices.balanced_pair(balances, 8, 8, 8, product=product[1] @ product[0], generator=generator)
    flow = theory.BalancedFlow(w1, w2, task.corr_yx, input_var=task.input_var)
    loss_goal = 4 * args["threshold"]  # loss = |.|^2 / 16, mean square error = |.|^2 / 64
    times = torch.logspace(-2, 3, 160, dtype=torch.float64)
    log_loss = flow.loss(times).clamp_min(1e-300).log()
    steps = [_crossing(times, log_loss[:, k], math.log(loss_goal)) / args["lr"] for k in range(len(balances))]
    index = [args["balances"].index(b) for b in args["check"]]
    path = dynamics.LinearNetworkFlow(task.corr_yx, task.corr_xx).descend(
        (w1[index], w2[index]), dynamics.Descent(args["lr"]), int(max(steps[k] for k in index) * 1.2) + 10
    )
    measured = (path.loss <= loss_goal).to(torch.int64).argmax(0)
    return {"steps": steps, "checked": [steps[k] for k in index], "descent": measured.tolist()}


def _crossing(times: Any, values: Any, goal: float) -> float:
    """First time at which values fall below the goal, by interpolation in the logarithm of time."""
    below = (values <= goal).nonzero()
    if not len(below) or int(below[0]) == 0:
        return math.inf
    k = int(below[0])
    part = (goal - float(values[k - 1])) / (float(values[k]) - float(values[k - 1]))
    return float(times[k - 1]) * (float(times[k]) / float(times[k - 1])) ** part


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Mean steps per balance over seeds; steps times |balance|; descent against the exact count."""
    balances = results[0][0].args["balances"]
    table = []
    for k, balance in enumerate(balances):
        values = [payload["steps"][k] for _, payload in results]
        mean = sum(values) / len(values)
        table.append({"balance": balance, "steps": mean, "steps_times_balance": mean * abs(balance)})
    checks = [
        {"balance": balance, "seed": cell.seed, "exact": exact, "descent": descent}
        for cell, payload in results
        for balance, exact, descent in zip(cell.args["check"], payload["checked"], payload["descent"], strict=True)
    ]
    return Summary(tables={"steps to convergence": table, "descent": checks})


def judge_law(summary: Summary) -> Judgement:
    """The printed exponential and 1 / |balance|, each at several balances of both signs."""
    table = {row["balance"]: row for row in summary.table("steps to convergence")}
    height, rate = PRINTED_STEPS_LAW
    printed = [
        Row(f"log of the steps, balance {b:g}", math.log(row["steps"]), math.log(height) - rate * abs(b), math.log(1.5))
        for b, row in sorted(table.items())
    ]
    inside = [row for row, b in zip(printed, sorted(table), strict=True) if abs(b) <= 20]
    far = sorted(b for b in table if abs(b) >= 50)
    mean = sum(table[b]["steps_times_balance"] for b in far) / len(far)
    rows = [
        Row(f"steps * |balance| at {b:g} over their mean", table[b]["steps_times_balance"] / mean, 1.0, 0.1)
        for b in far
    ]
    beyond = [row for row in printed if row not in inside]
    hits, far_hits = (sum(bool(row.agrees) for row in part) for part in (inside, beyond))
    text = (
        f"the printed law is within a factor 1.5 at {hits} of {len(inside)} balances up to 20 and at {far_hits} of "
        f"{len(beyond)} beyond; steps * |balance| is {mean:.0f} there"
    )
    return judge(text, printed, instead("for large |balance| the steps fall like 1 / |balance|", rows))


def judge_flow(summary: Summary) -> Judgement:
    """Steps from the exact flow agree with descent."""
    rows = [
        Row(
            f"steps, balance {row['balance']:g}, seed {row['seed']}",
            float(row["descent"]),
            row["exact"],
            0.03 * row["exact"] + 1,
        )
        for row in summary.table("descent")
    ]
    worst = max(abs(float(row.measured) / float(row.expected) - 1) for row in rows)
    return judge(f"steps of descent differ from those of the exact flow by at most {worst:.1%}", rows)


def judge_fewer(summary: Summary) -> Judgement:
    """More |balance|, fewer steps, on both sides alike."""
    table = summary.table("steps to convergence")
    both = {row["balance"]: row["steps"] for row in table}
    steps = [both[b] for b in sorted(both) if b > 0]
    rows = [
        Row(f"steps at {after:g} less those at {before:g}", both[after] - both[before], "negative",
            agrees=both[after] < both[before])
        for before, after in itertools.pairwise(sorted(b for b in both if b > 0))
    ]  # fmt: skip
    rows += [Row(f"steps at {-b:g} over those at {b:g}", both[-b] / both[b], 1.0, 1e-6) for b in both if b > 0]
    return judge(
        f"steps fall from {steps[0]:.0f} to {steps[-1]:.0f} and do not depend on the sign of the balance", rows
    )


def draw(summary: Summary) -> Mapping[str, Figure]:
    """Figure 4.4 with the printed law and ours."""
    from separatrix.report.figures.learning import linear

    table = [row for row in summary.table("steps to convergence") if row["balance"] > 0]
    x = [row["balance"] for row in table]
    height, rate = PRINTED_STEPS_LAW
    constant = table[-1]["steps_times_balance"]
    series = {
        "exact flow": {"x": x, "y": [row["steps"] for row in table]},
        "constant / balance": {"x": x, "y": [constant / b for b in x]},
        "printed exponential": {
            "x": [b for b in x if b <= 50],
            "y": [height * math.exp(-rate * b) for b in x if b <= 50],
        },
    }
    drawn = linear.curves(
        series,
        x_label="balance",
        y_label="steps to convergence",
        x_log=True,
        y_log=True,
        caption="""Steps to convergence against the balance of the initial weights: exact flow, the law constant /
        balance, and the exponential that is printed. Look at which of the two the flow follows at large balances.""",
    )
    return {"fig4-4": drawn}


EXPERIMENT = Experiment(
    name="anguita-fig4-4",
    title="Steps to convergence over the balance",
    document="anguita2024",
    place="Figure 4.4",
    version=1,
    scales={
        "smoke": Settings(balances=(1.0, 2.0, 5.0, 10.0, 20.0)),
        "laptop": Settings(seeds=(0, 1, 2, 3, 4)),
        "paper": Settings(seeds=tuple(range(20))),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-fig4.4-fewer",
            statement="a larger |balance| needs fewer steps (square network)",
            measures="steps to mean square error 1e-3",
            test="ordering; symmetric in the sign",
            needs=(groups("steps to convergence", "balance", -200.0, -1.0, 1.0, 200.0),),
            judge=judge_fewer,
            counterfeit=with_column("steps to convergence", "steps", 100.0),
        ),
        Claim(
            id="anguita2024-fig4.4-law",
            statement="the steps fall exponentially with |balance|, by the printed law",
            measures="steps at every balance of both signs; steps times |balance| from 50 on",
            test="within a factor 1.5 of the printed law everywhere; else constant within 10 percent from 50 on",
            judge=judge_law,
            counterfeit=with_column("steps to convergence", "steps_times_balance", lambda row: abs(row["balance"])),
            genuine=with_column(
                "steps to convergence",
                "steps",
                lambda row: PRINTED_STEPS_LAW[0] * math.exp(-PRINTED_STEPS_LAW[1] * abs(row["balance"])),
            ),
            erratum="anguita2024-fig4.3-rate",
        ),
        Claim(
            id="anguita2024-fig4.4-flow",
            document="separatrix",
            statement="the exact flow predicts the steps of gradient descent",
            measures="steps",
            test="3 percent",
            needs=(crossed("descent", "balance", "seed"), groups("descent", "balance", 5.0, 20.0)),
            interchangeable=("seed",),
            judge=judge_flow,
            counterfeit=with_column("descent", "descent", lambda row: 2 * row["descent"]),
        ),
    ),
    draw=draw,
)
