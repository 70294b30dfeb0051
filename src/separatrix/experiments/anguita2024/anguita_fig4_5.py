"""anguita2024, Figure 4.5: how task-specific the converged representations are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix import theory
from separatrix.core import spawn
from separatrix.core.wording import number
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge, with_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Balances of Figure 4.5 in units of the target map (inputs scaled to be white)."""

    balances: tuple[float, ...] = tuple(
        sign * 100 ** (index / 40) * 0.1 ** (1 - index / 40) for sign in (-1, 1) for index in range(41)
    )
    printed: tuple[float, ...] = (0.0, 1.0, 2.0, 2.169, 5.0, 10.0, 20.0, 100.0)


class Measured(Summary):
    """Largest difference of the closed form from the exact flow at infinite time."""

    gap: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell: everything is closed form."""
    yield {"balances": sorted({*settings.balances, *settings.printed, *(-b for b in settings.printed)})}


def run(cell: Cell) -> Payload:
    """Scores of the converged representations, in closed form and from the exact flow at infinite time."""
    import torch

    from separatrix import matrices, tasks

    target = 8 * tasks.semantic_task().corr_yx
    balances = torch.tensor(cell.args["balances"], dtype=torch.float64)
    many = target.expand(len(balances), 8, 8)
    score_in, score_out = theory.task_specific_score(*theory.square_representations(many, balances), many)
    w1, w2 = matrices.balanced_pair(balances, 8, 8, 8, product=0.5 * target, generator=spawn(0, "anguita-fig4-5"))
    gram = theory.BalancedFlow(w1, w2, target).gram_limit()
    flow_in, flow_out = theory.task_specific_score(gram[:, :8, :8], gram[:, 8:, 8:], many)
    gap = torch.maximum((score_in - flow_in).abs(), (score_out - flow_out).abs()).max()
    return {"score_in": score_in, "score_out": score_out, "gap": float(gap)}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """The two scores over the balance."""
    cell, payload = results[0]
    table = [
        {"balance": b, "score_in": float(i), "score_out": float(o)}
        for b, i, o in zip(cell.args["balances"], payload["score_in"], payload["score_out"], strict=True)
    ]
    return Measured(tables={"task-specific score": table}, gap=payload["gap"])


def judge_scores(summary: Measured) -> Judgement:
    """Peak at zero; then one side returns to 1 and the other falls to the score of the identity."""
    table = {row["balance"]: row for row in summary.table("task-specific score")}
    rows = [
        Row("input score at 0", table[0.0]["score_in"], 1.0, 1e-9),
        Row("output score at 0", table[0.0]["score_out"], 1.0, 1e-9),
        Row("input score at 100", table[100.0]["score_in"], 1.0, 1e-6),
        Row("output score at 100", table[100.0]["score_out"], 0.957107, 1e-3),
        Row("input score at -100", table[-100.0]["score_in"], table[100.0]["score_out"], 1e-9),
        Row("closed form against the exact flow at infinite time", summary.gap, 0.0, 1e-9),
    ]
    low = min((row for b, row in table.items() if b > 0), key=lambda row: row["score_in"])
    rows.append(Row("the input score dips near the task's singular values", low["score_in"], 0.991635, 2e-5))
    peak, large = (
        " and ".join(number(table[balance][f"score_{end}"], 6) for end in ("in", "out")) for balance in (0.0, 100.0)
    )
    return judge(
        f"the scores are {peak} at balance 0 and {large} at 100; that of the input dips to {low['score_in']:.4f} at "
        f"{low['balance']:.2f}",
        rows,
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Figure 4.5."""
    from separatrix.report.figures.learning import linear

    table = summary.table("task-specific score")
    x = [math.asinh(row["balance"]) for row in table]
    series = {
        "input representation": {"x": x, "y": [row["score_in"] for row in table]},
        "output representation": {"x": x, "y": [row["score_out"] for row in table]},
    }
    drawn = linear.curves(
        series,
        x_label="asinh(balance)",
        y_label="task-specific score",
        caption="""How specific to the task each representation is after training, against the initial balance (1 is
        most specific). A large balance of either sign leaves one of the two as it was.""",
    )
    return {"fig4-5": drawn}


EXPERIMENT = Experiment(
    name="anguita-fig4-5",
    title="Task-specific score of the representations over the balance",
    document="anguita2024",
    place="Figure 4.5",
    version=1,
    scales={"smoke": Settings(), "laptop": Settings(), "paper": Settings()},
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-fig4.5",
            statement=(
                "both scores peak at balance zero; at large balance one returns to 1 and the other falls to its floor"
            ),
            measures="task-specific score at convergence",
            test="1e-3 and tighter",
            judge=judge_scores,
            counterfeit=with_column("task-specific score", "score_out", 1.0),
            erratum="anguita2024-4.34",
        ),
    ),
    draw=draw,
)
