"""What balance really does: lazy or delayed rich, by the sizes of the network; and the sign of the determinant.

At balance zero the flow keeps that sign for ever; gradient descent does not. Each step changes the balance by the
square of the rate, which over a training leaves a balance of the order of the rate. Beside the saddle the last mode
grows by ``1 + lr s`` a step: descent leaves after ``(ln(1 / lr) + const) / ln(1 + lr s)`` steps, for small rates a time
of ``(ln(1 / lr) + const) / s``. Only a start aligned with the task keeps balance zero under descent too.
"""

from __future__ import annotations

import math
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
    condition,
    crossed,
    groups,
    judge,
    spans,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Sizes on both sides of the condition, and balances over three decades."""

    n_in: int = 2
    n_out: int = 5
    hidden: tuple[int, ...] = (3, 5)
    balances: tuple[float, ...] = (1.0, 10.0, 100.0, 1000.0)
    goal: float = 1e-3
    scale: float = 0.3
    n_starts: int = 40
    n_times: int = 320
    rates: tuple[float, ...] = (0.1, 0.03, 0.01, 0.003, 0.001)
    horizon: float = 40.0


class Measured(Summary):
    """Regime maps by sizes of the network."""

    panels: dict[str, dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per hidden size and balance, for determinants, and per learning rate of descent."""
    common = settings.model_dump(include={"n_in", "n_out", "goal", "scale", "n_times"})
    for seed in settings.seeds:
        for n_hidden in settings.hidden:
            for balance in settings.balances:
                yield {"kind": "map", "n_hidden": n_hidden, "balance": balance, **common, "seed": seed}
        for balance in (0.0, 0.1):
            yield {"kind": "determinant", "balance": balance, "n_starts": settings.n_starts, "seed": seed}
        for lr in settings.rates:
            yield {
                "kind": "escape", "lr": lr, "n_starts": settings.n_starts, "horizon": settings.horizon, "seed": seed,
            }  # fmt: skip


def run(cell: Cell) -> Payload:
    """Loss over time, time to the goal, plateau and kernel distance; or how many starts learn the task, and when."""
    return {"determinant": _determinant, "escape": _escape, "map": _map}[cell.args["kind"]](cell)


def _map(cell: Cell) -> dict[str, Any]:
    import torch

    from separatrix import matrices

    args = cell.args
    n_in, n_hidden, n_out, balance = args["n_in"], args["n_hidden"], args["n_out"], args["balance"]
    generator = spawn(cell.seed, "linear-regime-map", "task")  # the same task and product for every cell
    corr = torch.randn(n_out, n_in, dtype=torch.float64, generator=generator)
    product = args["scale"] * torch.randn(n_out, n_in, dtype=torch.float64, generator=generator)
    w1, w2 = matrices.balanced_pair(balance, n_in, n_hidden, n_out, product=product, generator=generator)
    flow = theory.BalancedFlow(w1, w2, corr)
    times = torch.logspace(-4, 8, args["n_times"], dtype=torch.float64)
    loss = flow.loss(times)
    reached = (loss <= args["goal"] * flow.loss(0.0)).nonzero()
    white = torch.eye(n_in, dtype=torch.float64)
    distance = theory.ntk_distance(*flow.representations(0.0), *flow.representations(1e9), white)
    middle = 30 / balance
    lazy = theory.lazy_product(1 / balance, product, corr, balance)
    predicted = theory.classify_regime(n_in, n_hidden, n_out, balance, torch.linalg.svdvals(corr))
    return {
        "times": times, "loss": loss, "regime": predicted.regime.label,
        "time": float(times[int(reached[0])]) if len(reached) else math.inf,
        "kernel_distance": float(distance), "plateau": float(flow.loss(middle)),
        "predicted_plateau": float(theory.plateau_loss(w1, w2, corr, balance)),
        "lazy_error": float((flow.product(1 / balance) - lazy).abs().max()),
    }  # fmt: skip


def _determinant(cell: Cell) -> dict[str, Any]:
    import torch

    from separatrix import matrices

    generator = spawn(cell.seed, "linear-regime-map", "determinant")
    n_starts = cell.args["n_starts"]
    corr = torch.randn(n_starts, 3, 3, dtype=torch.float64, generator=generator)
    product = 0.3 * torch.randn(n_starts, 3, 3, dtype=torch.float64, generator=generator)
    balance = torch.full((n_starts,), cell.args["balance"], dtype=torch.float64)
    w1, w2 = matrices.balanced_pair(balance, 3, 3, 3, product=product, generator=generator)
    flow = theory.BalancedFlow(w1, w2, corr, balance=balance, saddle_tol=1e-12)
    # a hundredth of what the last mode is worth: a share of the whole would call a faint mode learned that is not
    learned = flow.loss(1e9) < 0.01 * torch.linalg.svdvals(corr)[:, -1].square() / 2
    alike = torch.det(product) * torch.det(corr) > 0
    return {
        "learned": float(learned.double().mean()),
        "alike": float(alike.double().mean()),
        "agree": float((learned == alike).double().mean()),
    }


def _escape(cell: Cell) -> dict[str, Any]:
    """Gradient descent from starts of balance zero whose determinant has the wrong sign."""
    import torch

    from separatrix import matrices

    args = cell.args
    generator = spawn(cell.seed, "linear-regime-map", "escape")  # the same starts for every learning rate
    n_starts, lr = args["n_starts"], args["lr"]
    left, right = (
        torch.linalg.qr(torch.randn(n_starts, 3, 3, dtype=torch.float64, generator=generator))[0] for _ in range(2)
    )
    task_s = torch.tensor([2.0, 1.5, 1.0], dtype=torch.float64)  # the last mode has s = 1: times are in its units
    corr = left * task_s @ right.mT
    product = 0.3 * torch.randn(n_starts, 3, 3, dtype=torch.float64, generator=generator)
    product[:, 0] *= -(torch.det(product) * torch.det(corr)).sign().unsqueeze(-1)
    balance = torch.zeros(n_starts, dtype=torch.float64)
    w1, w2 = matrices.balanced_pair(balance, 3, 3, 3, product=product, generator=generator)
    flow = theory.BalancedFlow(w1, w2, corr, balance=balance, saddle_tol=1e-12)
    goal = 0.01 * task_s[-1].square() / 2  # a hundredth of what the last mode is worth
    times = torch.full((n_starts,), math.inf, dtype=torch.float64)
    for step in range(round(args["horizon"] / lr) + 1):
        error = w2 @ w1 - corr
        there = times.isinf() & (error.square().sum((-2, -1)) / 2 < goal)
        times[there] = step * lr
        w1, w2 = w1 - lr * w2.mT @ error, w2 - lr * error @ w1.mT
    middle = times.sort().values
    return {
        "flow_learned": float((flow.loss(1e9) < goal).double().mean()),
        "escaped": float(times.isfinite().double().mean()),
        "within_10000_steps": float((times <= 10_000 * lr).double().mean()),
        "time_low": float(middle[0]), "time": float(middle[n_starts // 2]), "time_high": float(middle[-1]),
    }  # fmt: skip


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """The map, the curves of the first seed, and the determinants."""
    table: list[dict[str, Any]] = []
    panels: dict[str, dict[str, Any]] = {}
    signs: list[dict[str, Any]] = []
    escapes: list[dict[str, Any]] = []
    for cell, payload in results:
        args = cell.args
        if args["kind"] == "determinant":
            signs.append({"balance": args["balance"], "seed": cell.seed, **payload})
            continue
        if args["kind"] == "escape":
            escapes.append({"lr": args["lr"], "seed": cell.seed, "steps": payload["time"] / args["lr"], **payload})
            continue
        sizes = f"{args['n_in']}-{args['n_hidden']}-{args['n_out']}"
        names = ("regime", "time", "kernel_distance", "plateau", "predicted_plateau", "lazy_error")
        table.append(
            {
                "sizes": sizes,
                "onto": args["n_hidden"] == args["n_out"],
                "balance": args["balance"],
                "seed": cell.seed,
                **{name: payload[name] for name in names},
            }
        )
        panel = panels.setdefault(sizes, {})
        shown = payload["loss"] > 1e-8
        panel.setdefault(
            f"balance {args['balance']:g}",
            {"x": payload["times"][shown].tolist(), "y": payload["loss"][shown].tolist()},
        )
    return Measured(
        tables={"regime map": table, "sign of the determinant": signs, "escape of descent": escapes},
        panels=panels,
    )


def _by_kind(summary: Measured, onto: bool) -> list[dict[str, Any]]:
    table = [
        row
        for row in summary.table("regime map")
        if row["onto"] is onto and row["seed"] == summary.table("regime map")[0]["seed"]
    ]
    return sorted(table, key=lambda row: row["balance"])


def judge_lazy(summary: Measured) -> Judgement:
    """Large balance is lazy and fast if the heavy layer is onto, and slow and rich if it is not."""
    rows, whole = [], []
    onto, thin = _by_kind(summary, True), _by_kind(summary, False)
    rows.append(Row("onto: kernel distance at the largest balance", onto[-1]["kernel_distance"], 0.0, 1e-3))
    rows.append(
        Row(
            "onto: time to learn, last over first",
            onto[-1]["time"] / onto[0]["time"],
            "below 0.1",
            agrees=onto[-1]["time"] < 0.1 * onto[0]["time"],
        )
    )
    rows.append(
        Row(
            "not onto: time to learn, last over first",
            thin[-1]["time"] / thin[0]["time"],
            "above 10",
            agrees=thin[-1]["time"] > 10 * thin[0]["time"],
        )
    )
    whole.append(Row("not onto: kernel distance at the largest balance", thin[-1]["kernel_distance"], 0.0, 1e-2))
    whole.append(
        Row(
            "not onto: learns faster at the largest balance",
            thin[-1]["time"] / thin[0]["time"],
            "below 1",
            agrees=thin[-1]["time"] < thin[0]["time"],
        )
    )
    text = (
        f"onto: time {number(onto[0]['time'])} to {number(onto[-1]['time'])}, "
        f"kernel {small(onto[-1]['kernel_distance'])}; not onto: time {number(thin[0]['time'])} to "
        f"{number(thin[-1]['time'])}, kernel {small(thin[-1]['kernel_distance'])}"
    )
    return judge(text, rows[:2] + whole, condition("where the heavy layer is onto", rows))


def judge_plateau(summary: Measured) -> Judgement:
    """The plateau and the growth of the delay."""
    thin = _by_kind(summary, False)[-1]
    rows = [
        Row(
            "plateau at the largest balance",
            thin["plateau"],
            thin["predicted_plateau"],
            0.01 * thin["predicted_plateau"],
        )
    ]
    ordered = _by_kind(summary, False)
    ratio = ordered[-1]["time"] / ordered[-2]["time"] / (ordered[-1]["balance"] / ordered[-2]["balance"])
    rows.append(Row("delay per balance, last over the one before", ratio, 1.0, 0.15))
    rows += [
        Row(
            f"predicted regime, {row['sizes']}, balance {row['balance']:g}",
            row["regime"],
            name,
            agrees=row["regime"] == name,
        )
        for row, name in ((thin, "delayed rich"), (_by_kind(summary, True)[-1], "lazy"))
    ]
    return judge(
        f"plateau {number(thin['plateau'], 4)}, predicted {number(thin['predicted_plateau'], 4)}; "
        "the delay grows with the balance",
        rows,
    )


def judge_shallow(summary: Measured) -> Judgement:
    """Exponential approach with an error of order 1 / balance squared where the heavy layer is onto."""
    onto = [row for row in _by_kind(summary, True) if row["balance"] >= 10]
    scaled = [row["lazy_error"] * row["balance"] ** 2 for row in onto]
    rows = [Row("error * balance^2, last over the one before", scaled[-1] / scaled[-2], 1.0, 0.3)]
    return judge(f"error times balance squared: {', '.join(f'{small(value)}' for value in scaled)}", rows)


def judge_determinant(summary: Measured) -> Judgement:
    """Under the flow a square network of balance zero learns exactly the tasks with the sign of its determinant."""
    rows = []
    for row in summary.table("sign of the determinant"):
        if row["balance"] == 0:
            rows.append(Row("learned exactly when the signs agree", row["agree"], 1.0, 0.0))
            rows.append(Row("fraction that learns at balance 0", row["learned"], 0.5, 0.3))
        else:
            rows.append(Row(f"fraction that learns at balance {row['balance']:g}", row["learned"], 1.0, 0.0))
    shown = ", ".join(f"{row['learned']:.2f} at {row['balance']:g}" for row in summary.table("sign of the determinant"))
    return judge(f"share of starts that learn, by balance: {shown}", rows)


def judge_escape(summary: Measured) -> Judgement:
    """Descent leaves the saddle that the flow stays on, after a time that grows with the logarithm of 1 / lr."""
    table = summary.table("escape of descent")
    rows = []
    for row in table:
        rows.append(Row(f"starts that learn by descent, lr {row['lr']:g}", row["escaped"], 1.0, 0.0))
        rows.append(Row(f"the same starts under the flow, lr {row['lr']:g}", row["flow_learned"], 0.0, 0.0))
    slopes = []
    for seed in sorted({row["seed"] for row in table}):
        own = [row for row in table if row["seed"] == seed]
        # one step multiplies the last mode, s = 1, by 1 + lr; at a rate of 0.1 exp(s t) would be 5 percent faster
        logs, times = [math.log(1 / row["lr"]) for row in own], [row["steps"] * math.log1p(row["lr"]) for row in own]
        mean_log, mean_time = sum(logs) / len(own), sum(times) / len(own)
        covered = sum((x - mean_log) ** 2 for x in logs)
        slopes.append(sum((x - mean_log) * (y - mean_time) for x, y in zip(logs, times, strict=True)) / covered)
        rows.append(Row(f"escape time in e-foldings over ln(1 / lr), seed {seed}", slopes[-1], 1.0, 0.1))
    fastest, slowest = max(table, key=lambda row: row["lr"]), min(table, key=lambda row: row["lr"])
    learned = min(row["escaped"] for row in table), max(row["flow_learned"] for row in table)
    text = (
        f"of the wrong-sign starts at least {learned[0]:.0%} learn by descent, at most {learned[1]:.0%} under the flow"
        f"; median {fastest['steps']:.0f} steps at lr {fastest['lr']:g}, {slowest['steps']:.0f} at {slowest['lr']:g}; "
        f"slope {min(slopes):.2f} to {max(slopes):.2f}"
    )
    return judge(text, rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Loss over time on both sides of the condition on the sizes."""
    from separatrix.report.figures.learning import linear

    return {
        "regime-map": linear.curve_panels(
            summary.panels,
            x_label="time",
            y_label="excess loss",
            x_log=True,
            y_log=True,
            share_y=True,
            caption="""Loss along training for four balances, on both sides of the condition on the sizes (inputs -
            hidden - outputs above each panel). Look at whether a larger balance learns later or earlier.""",
        )
    }


_MAP = (
    crossed("regime map", ("sizes", "onto"), "balance", "seed"),
    spans("regime map", "balance", 1.0, 1000.0),
    groups("regime map", "onto", True, False),
)
"""Both kinds of sizes at all balances: rules compare the ends."""

EXPERIMENT = Experiment(
    name="linear-regime-map",
    title="What balance really does: lazy, or rich after a delay",
    document="separatrix",
    place="regime map",
    version=3,
    scales={
        "smoke": Settings(rates=(0.1, 0.003)),
        "laptop": Settings(seeds=(0, 1, 2)),
        "paper": Settings(seeds=tuple(range(10)), n_starts=1000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-large-balance-lazy",
            document="anguita2024",
            place="Theorems 4.1.2, 4.1.3",
            statement="a large balance is lazy and fast",
            measures="time to learn and kernel distance over the balance",
            test="holds where the heavy layer is onto",
            needs=_MAP,
            as_a_whole=("regime map",),
            judge=judge_lazy,
            counterfeit=with_column("regime map", "kernel_distance", 0.5),
            erratum="anguita2024-large-balance-lazy",
        ),
        Claim(
            id="anguita2024-thm4.2.3",
            document="anguita2024",
            place="Theorem 4.2.3",
            statement="at large balance a deep network learns like a shallow one (heavy layer onto)",
            measures="distance from the exponential",
            test="error * balance^2 constant within 30 percent",
            needs=_MAP,
            judge=judge_shallow,
            counterfeit=with_column("regime map", "lazy_error", lambda row: 1 / row["balance"]),
            erratum="anguita2024-large-balance-lazy",
        ),
        Claim(
            id="separatrix-delayed-rich",
            statement=(
                "otherwise it waits on a plateau and then learns richly, after a delay in proportion to the balance"
            ),
            measures="plateau, delay, predicted regime",
            test="1 percent; 15 percent",
            needs=_MAP,
            as_a_whole=("regime map",),
            judge=judge_plateau,
            counterfeit=with_column("regime map", "plateau", 0.1),
        ),
        Claim(
            id="separatrix-zero-balance-determinant",
            statement=(
                "under gradient flow a square network of balance zero never learns a task whose determinant has the "
                "other sign"
            ),
            measures="fraction of random starts that learn along the exact flow",
            test="exact",
            needs=(
                crossed("sign of the determinant", "balance", "seed"),
                groups("sign of the determinant", "balance", 0.0, 0.1),
            ),
            judge=judge_determinant,
            counterfeit=with_column("sign of the determinant", "agree", 0.5),
        ),
        Claim(
            id="separatrix-zero-balance-descent",
            statement=(
                "gradient descent learns it from random starts of that kind: its finite steps leave the saddle after "
                "(ln(1 / lr) + const) / ln(1 + lr s) steps, s the last singular value of the task"
            ),
            measures="fraction of starts that learn by descent and by the flow, escape time against the rate",
            test="all and none; slope of the escape time, in e-foldings of the mode, within 10 percent",
            needs=(crossed("escape of descent", "lr", "seed"), spans("escape of descent", "lr", 0.003, 0.1)),
            as_a_whole=("escape of descent",),
            judge=judge_escape,
            counterfeit=with_column("escape of descent", "steps", 100.0),
        ),
    ),
    draw=draw,
)
