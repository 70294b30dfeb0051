"""anguita2024, Figure 3.3 and Theorem 3.3.1: exact dynamics of unaligned networks of equal sizes."""

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

QUANTITIES = ("product", "input representation", "output representation", "kernel")


class Settings(Params):
    """Sizes, balances, learning rate and steps of the figure's public settings."""

    balances: tuple[float, ...] = (-50.0, 0.01, 50.0)
    size: int = 5
    n_samples: int = 10
    lr: float = 1e-3
    steps: int = 200
    scale: float = 1.0


class Measured(Summary):
    """Curves of the first seed, by quantity and balance."""

    panels: dict[str, dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per balance and seed."""
    common = settings.model_dump(include={"size", "n_samples", "lr", "steps", "scale"})
    for seed in settings.seeds:
        for balance in settings.balances:
            yield {"balance": balance, **common, "seed": seed}


def run(cell: Cell) -> Payload:
    """Descent beside the exact solution: product, representations, kernel; and the document's formula both ways."""
    import torch

    from separatrix import dynamics, matrices, tasks

    args = cell.args
    generator = spawn(cell.seed, "anguita-fig3-3", "task")
    task = tasks.white_regression(args["size"], args["size"], args["n_samples"], generator=generator)
    w1, w2 = matrices.balanced_pair(args["balance"], *[args["size"]] * 3, scale=args["scale"], generator=generator)
    flow = theory.BalancedFlow(w1, w2, task.corr_yx)
    path = dynamics.LinearNetworkFlow(task.corr_yx).descend(
        (w1, w2), dynamics.Descent(args["lr"]), args["steps"], record_every=max(1, args["steps"] // 40)
    )
    first, second = path.layers[0].mT @ path.layers[0], path.layers[1] @ path.layers[1].mT
    exact_first, exact_second = flow.representations(path.times)
    pairs = {
        "product": (flow.product(path.times), path.product),
        "input representation": (exact_first, first),
        "output representation": (exact_second, second),
        "kernel": (flow.ntk(path.times, task.inputs), theory.two_layer_ntk(first, second, task.inputs)),
    }
    payload: dict[str, Any] = {"times": path.times}
    for name, (exact, descent) in pairs.items():
        payload[f"{name} error"] = float((exact - descent).abs().max() / descent.abs().max())
        payload[f"{name} exact"] = exact.reshape(exact.shape[0], -1)[:, :8]
        payload[f"{name} descent"] = descent.reshape(exact.shape[0], -1)[:, :8]
        payload[f"{name} size"] = float(exact[-1].abs().max())
        payload[f"{name} change"] = float(
            torch.linalg.matrix_norm(exact[-1] - exact[0]) / torch.linalg.matrix_norm(exact[0])
        )
    ode = dynamics.integrate_layers(dynamics.LinearNetworkFlow(task.corr_yx), (w1, w2), [0.05], rtol=1e-12, atol=1e-14)
    stacked = torch.cat([ode.layers[0][0].mT, ode.layers[1][0]])
    reference = stacked @ stacked.mT
    left, bracket = theory.equal_size_parts(w1, w2, task.corr_yx, 0.05, args["balance"])
    size = reference.abs().max()
    payload["exact_error"] = float((flow.gram(0.05) - reference).abs().max() / size)
    payload["corrected_error"] = float((left @ torch.linalg.solve(bracket, left.mT) - reference).abs().max() / size)
    payload["printed_error"] = float((left @ bracket @ left.mT - reference).abs().max() / size)
    return payload


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Errors and changes per balance; the curves of the first seed."""
    table: list[dict[str, Any]] = []
    panels: dict[str, dict[str, Any]] = {}
    for cell, payload in results:
        row: dict[str, Any] = {"balance": cell.args["balance"], "seed": cell.seed}
        row |= {key: value for key, value in payload.items() if isinstance(value, float)}
        table.append(row)
        for name in QUANTITIES:
            panel = panels.setdefault(name, {})
            label = f"balance {cell.args['balance']:g}"
            if label not in panel:
                panel[label] = _curve(payload, name)
    return Measured(
        tables={"exact against descent": table},
        panels=panels,
    )


def _curve(payload: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The second entry of a matrix: on the diagonal of none, so it starts near zero and learns."""
    times = payload["times"].tolist()
    return {
        "x": times, "y": payload[f"{name} exact"][:, 1].tolist(),
        "dots_x": times[::3], "dots_y": payload[f"{name} descent"][::3, 1].tolist(),
    }  # fmt: skip


def judge_figure(summary: Measured) -> Judgement:
    """Exact solution against descent for every quantity of the figure."""
    table = summary.table("exact against descent")
    rows = [
        Row(f"{name}, balance {row['balance']:g}", row[f"{name} error"], 0.0, 0.05)
        for row in table
        for name in QUANTITIES
    ]
    return judge(f"largest relative deviation {small(max(float(row.measured) for row in rows))}", rows)


def judge_lazy(summary: Measured) -> Judgement:
    """Large balance: the heavy representation and the kernel barely move, the light one is small."""
    rows = []
    for row in summary.table("exact against descent"):
        if abs(row["balance"]) >= 10:
            heavy, light = QUANTITIES[2:0:-1] if row["balance"] > 0 else QUANTITIES[1:3]
            rows.append(Row(f"change of the {heavy}, balance {row['balance']:g}", row[f"{heavy} change"], 0.0, 0.05))
            rows.append(Row(f"change of the kernel, balance {row['balance']:g}", row["kernel change"], 0.0, 0.05))
            ratio = row[f"{light} size"] / row[f"{heavy} size"]
            rows.append(Row(f"size of the {light} over the other", ratio, 0.0, 0.05))
    worst = max((float(row.measured) for row in rows), default=math.nan)
    return judge(f"largest change of kernel or heavy representation {worst:.3f}", rows)


def judge_theorem(summary: Measured) -> Judgement:
    """Theorem 3.3.1, item 3, with and without the inverse, against integration."""
    table = summary.table("exact against descent")
    rows = [Row(f"ours, balance {row['balance']:g}", row["exact_error"], 0.0, 1e-10) for row in table]
    rows += [Row(f"corrected, balance {row['balance']:g}", row["corrected_error"], 0.0, 1e-6) for row in table]
    printed = [Row(f"printed, balance {row['balance']:g}", row["printed_error"], 0.0, 1e-6) for row in table]
    worst = [max(row[key] for row in table) for key in ("exact_error", "corrected_error", "printed_error")]
    evidence = f"relative error: ours {small(worst[0])}, corrected {small(worst[1])}, printed {small(worst[2])}"
    return judge(evidence, printed, misprint("item 3 with the inverse of erratum anguita2024-3.3.1-item3", rows))


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Figure 3.3: one entry of each quantity."""
    from separatrix.report.figures.learning import linear

    return {
        "fig3-3": linear.curve_panels(
            summary.panels,
            x_label="time",
            y_label="entry (1, 2)",
            dots_label="gradient descent",
            caption="""One entry of the product, of the two representations and of the tangent kernel along
            training, for three initial balances. Lines: exact flow, dashed over one another where they coincide;
            circles: gradient descent.""",
        )
    }


_COMPARED = "exact against descent"
_ALL = (crossed(_COMPARED, "balance", "seed"), groups(_COMPARED, "balance", -50.0, 0.01, 50.0))
"""The three columns of the figure."""

EXPERIMENT = Experiment(
    name="anguita-fig3-3",
    title="Unaligned networks: exact dynamics of product, representations and kernel",
    document="anguita2024",
    place="Figure 3.3, Theorem 3.3.1",
    version=1,
    scales={"smoke": Settings(), "laptop": Settings(seeds=(0, 1, 2)), "paper": Settings(seeds=tuple(range(10)))},
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-fig3.3",
            place="Figure 3.3",
            statement="the exact solution matches descent for product, representations and kernel",
            measures="largest relative deviation",
            test="5 percent",
            needs=_ALL,
            judge=judge_figure,
            counterfeit=with_column("exact against descent", "kernel error", 0.2),
        ),
        Claim(
            id="anguita2024-fig3.3-lazy",
            place="Figure 3.3",
            statement="at large balance of either sign the kernel stays almost constant (equal sizes)",
            measures="relative change over training",
            test="5 percent",
            needs=_ALL,
            judge=judge_lazy,
            counterfeit=with_column("exact against descent", "kernel change", 0.5),
        ),
        Claim(
            id="anguita2024-thm3.3.1",
            place="Theorem 3.3.1",
            statement="closed form of the Gram matrix for equal sizes",
            measures="relative error against integration at rtol 1e-12",
            test="1e-10 ours, 1e-6 the document's",
            judge=judge_theorem,
            counterfeit=with_column("exact against descent", "corrected_error", 0.1),
            erratum="anguita2024-3.3.1-item3",
        ),
    ),
    draw=draw,
)
