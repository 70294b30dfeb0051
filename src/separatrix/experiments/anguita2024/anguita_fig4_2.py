"""anguita2024, Figures 4.2 and 4.3: the semantic task from five kinds of initial weights."""

from __future__ import annotations

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
    judge,
    misprint,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Standard deviations, learning rate and steps of the figure's public settings.

    The curves labelled 10 and -10 are run there with balance 100 and -100; both are run here.
    """

    small: float = 0.001
    large: float = 0.42
    balances: tuple[float, ...] = (0.0, 10.0, -10.0, 100.0, -100.0)
    lr: float = 0.01
    steps: int = 20000
    n_times: int = 120


class Measured(Summary):
    """Heat maps and curves of the first seed, by start."""

    maps: dict[str, list[list[float]]]
    series: dict[str, dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per kind of start and seed."""
    horizon = settings.lr * settings.steps
    starts = [("gaussian", settings.small), ("gaussian", settings.large)] + [("balanced", b) for b in settings.balances]
    for seed in settings.seeds:
        for kind, value in starts:
            yield {
                "kind": kind,
                "value": value,
                "scale": settings.large,
                "horizon": horizon,
                "n_times": settings.n_times,
                "seed": seed,
            }


def run(cell: Cell) -> Payload:
    """Loss over time and the Gram matrix at the end: exact for balanced starts, integrated for Gaussian ones."""
    import torch

    from separatrix import dynamics, matrices, tasks

    args = cell.args
    task = tasks.semantic_task()
    generator = spawn(cell.seed, "anguita-fig4-2", args["kind"], str(args["value"]))
    times = torch.cat(
        [
            torch.zeros(1, dtype=torch.float64),
            torch.logspace(-2, math.log10(args["horizon"]), args["n_times"] - 1, dtype=torch.float64),
        ]
    )
    if args["kind"] == "gaussian":
        w1, w2 = (args["value"] * torch.randn(8, 8, dtype=torch.float64, generator=generator) for _ in range(2))
        path = dynamics.integrate_layers(
            dynamics.LinearNetworkFlow(task.corr_yx, task.corr_xx), (w1, w2), times, rtol=1e-8, atol=1e-12
        )
        stacked = torch.cat([path.layers[0][-1].mT, path.layers[1][-1]])
        gram, loss = stacked @ stacked.mT, path.loss
    else:
        left, right = (args["scale"] * torch.randn(8, 8, dtype=torch.float64, generator=generator) for _ in range(2))
        product = left @ right
        if args["value"] == 0 and torch.det(product) * torch.det(task.corr_yx) < 0:
            product[0] *= -1  # at balance zero the flow keeps the sign of the determinant: it never learns the rest
        w1, w2 = matrices.balanced_pair(args["value"], 8, 8, 8, product=product, generator=generator)
        flow = theory.BalancedFlow(w1, w2, task.corr_yx, input_var=task.input_var)
        gram, loss = flow.gram(args["horizon"]), flow.loss(times)
    score = theory.task_specific_score(gram[:8, :8], gram[8:, 8:], task.corr_yx)
    return {"times": times, "loss": loss, "gram": gram, "score_in": float(score[0]), "score_out": float(score[1])}


def _label(args: Mapping[str, Any]) -> str:
    return f"Gaussian {args['value']:g}" if args["kind"] == "gaussian" else f"balance {args['value']:g}"


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Scores, final error, exponential rate of the loss; heat maps and curves of the first seed."""
    import numpy

    table, maps, series = [], {}, {}
    for cell, payload in results:
        times, loss = payload["times"], payload["loss"]
        label = _label(cell.args)
        table.append(
            {"start": label, "seed": cell.seed, "score_in": payload["score_in"], "score_out": payload["score_out"],
             "final_loss": float(loss[-1]), "rate": _rate(times, loss),
             "heavy_error": _heavy_error(cell.args, payload["gram"])}
        )  # fmt: skip
        if label not in maps:
            maps[label] = (payload["gram"] / 8).tolist()
            shown = (loss > 1e-12) & (times > 0)
            series[label] = {"x": times[shown].tolist(), "y": numpy.asarray(loss)[shown].tolist()}
    return Measured(
        tables={"semantic task": table},
        maps=maps,
        series=series,
    )


def _rate(times: Any, loss: Any) -> float:
    """Slope of the logarithm of the loss between 1e-2 and 1e-6 of its start, in units of the inputs' variance 1/8."""
    import numpy

    inside = (loss < 1e-2 * loss[0]) & (loss > 1e-6 * loss[0])
    if inside.sum() < 2:
        return -1.0
    return float(-numpy.polyfit(times[inside], numpy.log(loss[inside]), 1)[0] * 8)


def _heavy_error(args: Mapping[str, Any], gram: Any) -> float:
    """Distance of the heavy representation from ``|balance| I``, relative; -1 where there is none."""
    import numpy

    if args["kind"] != "balanced" or args["value"] == 0:
        return -1.0
    heavy = gram[8:, 8:] if args["value"] > 0 else gram[:8, :8]
    size = abs(args["value"])
    return float(numpy.linalg.norm(heavy - size * numpy.eye(8)) / (size * math.sqrt(8)))


def _table(summary: Measured) -> list[dict[str, Any]]:
    return summary.table("semantic task")


def judge_specific(summary: Measured) -> Judgement:
    """Small Gaussian and zero-balanced starts end with representations that mirror the task; a large one does not."""
    rows = []
    for row in _table(summary):
        score = min(row["score_in"], row["score_out"])
        if row["start"] in ("Gaussian 0.001", "balance 0"):
            rows.append(Row(f"lower score, {row['start']}", score, 1.0, 1e-3))
        elif row["start"].startswith("Gaussian"):
            rows.append(Row(f"lower score, {row['start']}", score, "below 0.99", agrees=score < 0.99))
        rows.append(Row(f"final loss, {row['start']}", row["final_loss"], 0.0, 1e-3))
    scores = {row["start"]: min(row["score_in"], row["score_out"]) for row in _table(summary)}
    return judge(f"lower scores: {', '.join(f'{start} {score:.4f}' for start, score in scores.items())}", rows)


def judge_heavy(summary: Measured) -> Judgement:
    """At large balance the heavy representation is nearly a multiple of the identity."""
    rows = [
        Row(f"distance from |balance| I, {row['start']}", row["heavy_error"], 0.0, 0.1)
        for row in _table(summary)
        if row["heavy_error"] >= 0
    ]
    shown = ", ".join(f"{row['start']} {row['heavy_error']:.3f}" for row in _table(summary) if row["heavy_error"] >= 0)
    return judge(f"distance from |balance| I: {shown}", rows)


def judge_rate(summary: Measured) -> Judgement:
    """Figure 4.3: the loss falls at a rate of twice |balance|, where the printed rate of learning gives |balance|."""
    rows, printed = [], []
    for row in _table(summary):
        if row["start"] in ("balance 100", "balance -100"):
            rows.append(Row(f"rate of the loss, {row['start']}", row["rate"], 200.0, 10.0))
            printed.append(Row(f"rate of the loss as printed, {row['start']}", row["rate"], 100.0, 10.0))
    shown = ", ".join(f"{float(row.measured):.1f}" for row in rows)
    right = misprint("the loss falls at the rate 2 |balance|", rows)
    return judge(f"slopes of the log loss at |balance| = 100: {shown}", printed, right)


def judge_faster(summary: Measured) -> Judgement:
    """Higher |balance| converges faster in this square network."""
    rates = {row["start"]: row["rate"] for row in _table(summary)}
    order = [rates[name] for name in ("balance 0", "balance 10", "balance 100")]
    rows = [
        Row(
            "rates at balance 0, 10, 100",
            str([round(rate, 1) for rate in order]),
            "rising",
            agrees=order[0] < order[1] < order[2],
        )
    ]
    return judge(f"rates of the loss at balance 0, 10, 100: {[round(rate, 1) for rate in order]}", rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Figure 4.2 (Gram matrices over 8, colour range 0.5) and Figure 4.3 (loss)."""
    from separatrix.report.figures import linear

    curves = linear.curves(summary.series, x_label="time", y_label="loss", x_log=True, y_log=True)
    return {"fig4-2": linear.heat_maps(summary.maps, limit=0.5, label="Q Q' / 8", split=8), "fig4-3": curves}


EXPERIMENT = Experiment(
    name="anguita-fig4-2",
    title="Semantic task: representations and loss from five kinds of start",
    document="anguita2024",
    place="Figures 4.2 and 4.3",
    version=1,
    scales={
        "smoke": Settings(n_times=60),
        "laptop": Settings(seeds=(0, 1, 2)),
        "paper": Settings(seeds=tuple(range(10))),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-fig4.2-specific",
            place="Figure 4.2",
            statement="small or zero-balanced starts give task-specific representations, large Gaussian ones do not",
            measures="task-specific score at convergence",
            test="1e-3",
            judge=judge_specific,
            counterfeit=with_column("semantic task", "score_in", 0.5),
        ),
        Claim(
            id="anguita2024-fig4.2-heavy",
            place="Figure 4.2",
            statement="at balance 10 the heavy representation resembles |balance| I",
            measures="relative distance",
            test="10 percent",
            judge=judge_heavy,
            counterfeit=with_column("semantic task", "heavy_error", 0.5),
        ),
        Claim(
            id="anguita2024-fig4.3-rate",
            place="Figure 4.3",
            statement="for large |balance| the loss falls exponentially at a rate set by |balance|",
            measures="slope of the log loss in units of the input variance",
            test="5 percent",
            judge=judge_rate,
            counterfeit=with_column("semantic task", "rate", 50.0),
            erratum="anguita2024-fig4.3-rate",
        ),
        Claim(
            id="anguita2024-fig4.3-faster",
            place="Figure 4.3",
            statement="higher |balance| converges faster (square network)",
            measures="slope of the log loss",
            test="ordering",
            judge=judge_faster,
            counterfeit=with_column("semantic task", "rate", 1.0),
        ),
    ),
    draw=draw,
)
