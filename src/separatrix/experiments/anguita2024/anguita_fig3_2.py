"""anguita2024, Figure 3.2 and Theorems 3.2.1, 3.2.2: aligned networks, mode by mode."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix import theory
from separatrix.core import spawn
from separatrix.core.wording import small
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
    """Balance of the figure; sizes and learning rate are ours (the document gives none)."""

    balances: tuple[float, ...] = (0.5, -0.5, 0.0, 20.0)  # 0.5 in the caption
    size: int = 5
    scale: float = 0.1
    lr: float = 0.002
    horizon: float = 8.0
    n_shown: int = 60


class Measured(Summary):
    """Curves of the first seed, by balance."""

    panels: dict[str, dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per balance and seed."""
    common = settings.model_dump(include={"size", "scale", "lr", "horizon", "n_shown"})
    for seed in settings.seeds:
        for balance in settings.balances:
            yield {"balance": balance, **common, "seed": seed}


def run(cell: Cell) -> Payload:
    """Gradient descent from an aligned start; strength of every mode beside the closed form, corrected and printed."""
    import torch

    from separatrix import dynamics, matrices, tasks

    args = cell.args
    generator = spawn(cell.seed, "anguita-fig3-2", "init")
    task = tasks.white_regression(args["size"], args["size"], generator=generator)
    w1, w2 = matrices.aligned_balanced_pair(
        args["balance"], task.corr_yx, args["size"], scale=args["scale"], generator=generator
    )
    u, s, vh = torch.linalg.svd(task.corr_yx)
    steps = int(args["horizon"] / args["lr"])
    flow = dynamics.LinearNetworkFlow(task.corr_yx)
    path = flow.descend((w1, w2), dynamics.Descent(args["lr"]), steps, record_every=max(1, steps // args["n_shown"]))
    turned = u.mT @ path.product @ vh.mT
    strengths = turned.diagonal(dim1=-2, dim2=-1)
    exact = theory.aligned_strength(path.times[:, None], strengths[0], s, args["balance"])
    leak = (turned - torch.diag_embed(strengths)).abs().max()
    printed = [
        [_printed(float(t), float(a0), float(sk), args["balance"]) for a0, sk in zip(strengths[0], s, strict=True)]
        for t in path.times[1:6]
    ]
    ode = dynamics.integrate_layers(flow, (w1, w2), path.times[1:6], rtol=1e-11)
    reference = (u.mT @ ode.product @ vh.mT).diagonal(dim1=-2, dim2=-1)
    return {
        "times": path.times, "task_s": s, "descent": strengths, "exact": exact, "leak": float(leak),
        "exact_error": float((exact[1:6] - reference).abs().max()),
        "printed_error": _worst(printed, reference) if args["balance"] else None,
        "descent_error": float((exact - strengths).abs().max() / s.max()),
    }  # fmt: skip


def _worst(values: list[list[float]], reference: Any) -> float:
    return float((reference.new_tensor(values) - reference).abs().max())


def _printed(t: float, start: float, s: float, lam: float) -> float:
    """Eq. (3.2) with C of Eq. (3.19) as printed (the root closed before the balance, which the print leaves open)."""
    if lam == 0:
        return math.nan  # the printed form divides by the balance
    size = math.hypot(lam, 2 * s)
    term = 4 * start * s * math.copysign(1, lam) / (math.sqrt(lam**2 + 4 * start**2) + lam)
    grown = (size + lam + term) / (size - lam - term) * math.exp(size * t)
    half = (size * (grown - 1) - lam * (grown + 1)) / (2 * s * (grown + 1))
    return lam * half / (1 - half**2)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Worst errors per balance, and the curves of the first seed."""
    table, panels = [], {}
    for cell, payload in results:
        balance = cell.args["balance"]
        names = ("exact_error", "printed_error", "descent_error", "leak")
        table.append({"balance": balance, "seed": cell.seed, **{name: payload[name] for name in names}})
        if f"balance {balance:g}" not in panels:
            panels[f"balance {balance:g}"] = _panel(payload)
    return Measured(
        tables={"errors": table},
        panels=panels,
    )


def _panel(payload: Mapping[str, Any]) -> dict[str, Any]:
    times = payload["times"].tolist()
    return {
        f"mode {k + 1}": {
            "x": times, "y": payload["exact"][:, k].tolist(),
            "dots_x": times[::4], "dots_y": payload["descent"][::4, k].tolist(),
        }
        for k in range(payload["exact"].shape[1])
    }  # fmt: skip


def judge_formula(summary: Measured) -> Judgement:
    """Theorem 3.2.1: corrected formula for both signs, printed one for positive balance only."""
    table = summary.table("errors")
    rows = [Row(f"error at balance {row['balance']:g}", row["exact_error"], 0.0, 1e-8) for row in table]
    printed = [
        Row(f"error as printed, balance {row['balance']:g}", row["printed_error"], 0.0, 1e-8)
        for row in table
        if row["balance"] != 0  # there the print divides by zero
    ]
    worst = max((row["printed_error"] for row in table if row["balance"] < 0), default=math.nan)
    best = max(row["exact_error"] for row in table)
    return judge(
        f"closed form off by {small(best)}; the printed exponent is off by {small(worst)} for negative balance",
        printed,
        misprint("the closed form with the exponent of erratum anguita2024-3.2, for both signs", rows),
    )


def judge_figure(summary: Measured) -> Judgement:
    """Figure 3.2: every mode of descent follows its own closed form, and modes do not mix."""
    table = summary.table("errors")
    rows = [Row(f"descent off the curve, balance {row['balance']:g}", row["descent_error"], 0.0, 0.03) for row in table]
    rows += [Row(f"leak between modes, balance {row['balance']:g}", row["leak"], 0.0, 1e-9) for row in table]
    return judge(f"largest deviation {small(max(row['descent_error'] for row in table))} of the largest mode", rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Figure 3.2 for several balances."""
    from separatrix.report.figures.learning import linear

    return {
        "fig3-2": linear.curve_panels(
            summary.panels,
            x_label="time",
            y_label="strength of a mode",
            dots_label="gradient descent",
            caption="""Strength of each mode of the task in the product of the layers along training, a panel per
            initial balance. Lines: exact flow; circles: gradient descent.""",
        )
    }


EXPERIMENT = Experiment(
    name="anguita-fig3-2",
    title="Aligned balanced networks: every mode by itself",
    document="anguita2024",
    place="Figure 3.2, Theorems 3.2.1 and 3.2.2",
    version=1,
    scales={
        "smoke": Settings(balances=(0.5, -0.5, 20.0), lr=0.005, horizon=5.0),
        "laptop": Settings(seeds=(0, 1, 2)),
        "paper": Settings(seeds=tuple(range(10)), lr=0.001),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-thm3.2.1",
            place="Theorem 3.2.1",
            statement="aligned modes follow a closed form for any balance",
            measures="largest error against integration at rtol 1e-11",
            test="1e-8",
            judge=judge_formula,
            counterfeit=with_column("errors", "exact_error", 0.1),
            erratum="anguita2024-3.2",
        ),
        Claim(
            id="anguita2024-fig3.2",
            place="Figure 3.2",
            statement="gradient descent from an aligned start follows the closed form mode by mode",
            measures="largest deviation relative to the largest mode",
            test="3 percent; no leak between modes",
            needs=(crossed("errors", "balance", "seed"), groups("errors", "balance", 0.5, -0.5, 20.0)),
            judge=judge_figure,
            counterfeit=with_column("errors", "leak", 0.1),
        ),
    ),
    draw=draw,
)
