"""anguita2024, Figure 4.8 and Theorem 4.5.1: the balance of linear, ReLU and tanh networks under training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    interval_row,
    judge,
    misprint,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

ACTIVATIONS = ("linear", "relu", "tanh")
_STAGES = ("start", "task 1", "task 2")


class Settings(Params):
    """Two random regression tasks in sequence, square networks of random size."""

    balances: tuple[float, ...] = (-10.0, 0.1, 10.0)  # caption of Figure 4.8
    n_trials: int = 50  # text of section 4.5 (the published code has 40)
    smallest: int = 3  # sizes are drawn uniformly, as in the published code
    largest: int = 19
    n_steps: int = 10_000  # per task; the published code (the text says 2000 or until convergence)
    lr: float = 1e-3  # published code
    init_scale: float = 1.0


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per activation, balance and seed."""
    for seed in settings.seeds:
        for activation in ACTIVATIONS:
            for balance in settings.balances:
                kept = settings.model_dump(exclude={"seeds", "balances"})
                yield {**kept, "activation": activation, "balance": balance, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train all trials of one activation and balance at once, padded with zeros to the largest size.

    Padding is exact: units without incoming and outgoing weight get no gradient and stay at zero.
    """
    import torch

    from separatrix.core.random import spawn

    args = cell.args
    generator = spawn(cell.seed, "anguita-fig4-8")  # sizes, weights and tasks are paired over activation and balance
    sizes = torch.randint(args["smallest"], args["largest"] + 1, (args["n_trials"],), generator=generator)
    w1, w2 = _initial_weights(sizes, args, generator)
    stages = [_measure(w1, w2, sizes)]
    for _ in range(2):
        x, y = _task(sizes, args["largest"], generator)
        w1, w2 = _train(w1, w2, x, y, sizes, args)
        stages.append(_measure(w1, w2, sizes))
    balance = torch.stack([stage[0] for stage in stages])
    distance = torch.stack([stage[1] for stage in stages])
    return {"balance": balance, "distance": distance, "sizes": sizes, "best_multiple": _best_multiple(w1, w2, sizes)}


def _initial_weights(sizes: Tensor, args: Mapping[str, Any], generator: Any) -> tuple[Tensor, Tensor]:
    import torch

    from separatrix.diagnose.balance.exact_moves import rotate_pair

    width = args["largest"]
    w1 = torch.zeros(len(sizes), width, width, dtype=torch.float64)
    w2 = torch.zeros_like(w1)
    for trial, n in enumerate(sizes.tolist()):
        drawn = args["init_scale"] * torch.randn(2, n, n, generator=generator, dtype=torch.float64)
        first, second = rotate_pair(drawn[0], drawn[1], args["balance"])
        w1[trial, :n, :n], w2[trial, :n, :n] = first, second.mT
    return w1, w2


def _task(sizes: Tensor, width: int, generator: Any) -> tuple[Tensor, Tensor]:
    """Gaussian inputs whitened to XX'/P = I with P = 2n samples, Gaussian targets, padded with zeros."""
    import torch

    x = torch.zeros(len(sizes), width, 2 * width, dtype=torch.float64)
    y = torch.zeros_like(x)
    for trial, n in enumerate(sizes.tolist()):
        drawn = torch.randn(2, n, 2 * n, generator=generator, dtype=torch.float64)
        centred = drawn[0] - drawn[0].mean(1, keepdim=True)
        values, vectors = torch.linalg.eigh(centred @ centred.mT / (2 * n))
        x[trial, :n, : 2 * n] = (vectors / values.sqrt()) @ vectors.mT @ centred
        y[trial, :n, : 2 * n] = drawn[1]
    return x, y


def _train(
    w1: Tensor, w2: Tensor, x: Tensor, y: Tensor, sizes: Tensor, args: Mapping[str, Any]
) -> tuple[Tensor, Tensor]:
    """Full-batch gradient descent on |w2 phi(w1 x) - y|^2 / (2P)."""
    activation, lr = args["activation"], args["lr"]
    n_samples = (2.0 * sizes)[:, None, None].to(x.dtype)
    for _ in range(args["n_steps"]):
        hidden = w1 @ x
        if activation != "linear":
            hidden = hidden.relu() if activation == "relu" else hidden.tanh()
        error = (w2 @ hidden - y) / n_samples
        back = w2.mT @ error
        if activation != "linear":
            back = back * ((hidden > 0) if activation == "relu" else 1 - hidden.square())
        w1, w2 = w1 - lr * back @ x.mT, w2 - lr * error @ hidden.mT
    return w1, w2


def _measure(w1: Tensor, w2: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """lambda* = Tr D / n and |D - lambda* I| per trial."""
    import torch

    conserved = w2.mT @ w2 - w1 @ w1.mT
    balance = conserved.diagonal(dim1=-2, dim2=-1).sum(-1) / sizes
    real = (torch.arange(w1.shape[-1]) < sizes[:, None]).to(w1.dtype)
    distance = torch.linalg.matrix_norm(conserved - (balance[:, None] * real).diag_embed())
    return balance, distance


def _best_multiple(w1: Tensor, w2: Tensor, sizes: Tensor) -> float:
    """Theorem 4.5.1 by brute force: the multiple of I nearest to the first trial's D, over a fine grid."""
    import torch

    n = int(sizes[0])
    conserved = (w2.mT @ w2 - w1 @ w1.mT)[0, :n, :n]
    mean = float(torch.trace(conserved)) / n
    grid = torch.linspace(-1.0, 1.0, 2001, dtype=torch.float64) * (1 + abs(mean) * n) * 1.5
    gaps = torch.linalg.matrix_norm(conserved - grid[:, None, None] * torch.eye(n, dtype=torch.float64))
    return float(grid[int(gaps.argmin())])


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Balance and distance to the nearest balanced state at each stage, and the bound of the theorem."""
    rows, theorem = [], []
    for cell, payload in results:
        for index, stage in enumerate(_STAGES):
            balance, distance = payload["balance"][index], payload["distance"][index]
            rows.append(
                {
                    "activation": cell.args["activation"],
                    "balance": cell.args["balance"],
                    "stage": stage,
                    "seed": cell.seed,
                    "fitted": float(balance.mean()),
                    "fitted spread": float(balance.std()) if len(balance) > 1 else 0.0,
                    "distance": float(distance.mean()),
                    "distance spread": float(distance.std()) if len(distance) > 1 else 0.0,
                    **_growth(payload["distance"], index),
                }
            )
        size = int(payload["sizes"][0])
        mean = float(payload["balance"][-1][0])
        theorem.append({"grid minimum": payload["best_multiple"], "trace": mean * size, "trace over n": mean})
    return Summary(tables={"balance under training": rows, "nearest multiple of the identity": theorem})


def _growth(distances: Any, index: int) -> dict[str, float]:
    """Mean growth of the distance in this stage over trials, and its standard error."""
    if index == 0:
        return {"growth": 0.0, "growth error": 0.0}
    change = distances[index] - distances[index - 1]
    error = float(change.std()) / len(change) ** 0.5 if len(change) > 1 else 0.0
    return {"growth": float(change.mean()), "growth error": error}


def _at(summary: Summary, activation: str, stage: str, what: str) -> dict[float, float]:
    rows = summary.table("balance under training")
    found: dict[float, list[float]] = {}
    for row in rows:
        if row["activation"] == activation and row["stage"] == stage:
            found.setdefault(row["balance"], []).append(row[what])
    return {balance: sum(values) / len(values) for balance, values in found.items()}


def judge_kept(summary: Summary) -> Judgement:
    """Decide ``anguita2024-fig4.8-kept``."""
    rows = [
        Row(
            f"{activation}, balance {balance:g}: fitted balance after two tasks",
            fitted,
            balance,
            0.02 * (1 + abs(balance)),
        )
        for activation in ("linear", "relu")
        for balance, fitted in _at(summary, activation, "task 2", "fitted").items()
    ]
    worst = max(abs(float(row.measured) - float(row.expected)) for row in rows)
    return judge(f"the fitted balance of linear and ReLU networks moved by at most {small(worst)}", rows)


def judge_tanh(summary: Summary) -> Judgement:
    """Decide ``anguita2024-fig4.8-tanh``."""
    start, end = (_at(summary, "tanh", stage, "fitted") for stage in ("start", "task 2"))
    rows = [
        Row(
            f"tanh, balance {b:g}: change of the fitted balance",
            end[b] - start[b],
            "below zero",
            "sign",
            end[b] < start[b],
        )
        for b in start
    ]
    moved = ", ".join(f"{start[b]:.3g} to {end[b]:.3g}" for b in start)
    return judge(f"fitted balance of tanh networks: {moved}", rows)


def judge_distance(summary: Summary) -> Judgement:
    """Decide ``anguita2024-fig4.8-distance``."""
    linear = _at(summary, "linear", "task 2", "distance")
    rows = [Row(f"linear, balance {b:g}: distance from balanced", value, 0.0, 0.5) for b, value in linear.items()]
    for activation in ("relu", "tanh"):
        distance = _at(summary, activation, "task 1", "distance")
        rows += [
            Row(f"{activation}, balance {b:g}: distance after task 1", value, "above 1", "1", value > 1)
            for b, value in distance.items()
        ]
    for activation in ("relu", "tanh"):
        growth, error = (_at(summary, activation, "task 2", what) for what in ("growth", "growth error"))
        rows += [
            interval_row(
                f"{activation}, balance {b:g}: growth in task 2",
                growth[b],
                (growth[b] - 2 * error[b], growth[b] + 2 * error[b]),
                above=0.0,
            )
            for b in growth
        ]
    relu, tanh = (_at(summary, activation, "task 2", "distance") for activation in ("relu", "tanh"))
    rows += [
        Row(
            f"balance {b:g}: distance of ReLU over tanh after task 2",
            relu[b] / tanh[b],
            "below 1",
            "1",
            relu[b] < tanh[b],
        )
        for b in relu
    ]
    evidence = (
        f"linear networks stay within {small(max(linear.values()))}; ReLU and tanh leave the balanced set in task 1"
    )
    return judge(evidence, rows)


def judge_theorem(summary: Summary) -> Judgement:
    """Decide ``anguita2024-thm4.5.1-search``."""
    table = summary.table("nearest multiple of the identity")
    right = [
        Row("nearest multiple: trace over n", row["grid minimum"], row["trace over n"], _grid(row)) for row in table
    ]
    printed = [
        Row("nearest multiple: trace, as printed", row["grid minimum"], row["trace"], _grid(row)) for row in table
    ]
    worst = max(abs(float(row.measured) - float(row.expected)) for row in right)
    return judge(f"the grid minimum lies within {small(worst)} of Tr(D)/n", printed, misprint("it is Tr(D)/n", right))


def _grid(row: Mapping[str, float]) -> float:
    return 0.002 * (1 + abs(row["trace"]))


def draw(summary: Summary) -> Mapping[str, Figure]:
    """The figure: balance under training."""
    from separatrix.report.figures.learning.regime import draw_balance_under_training

    return {"balance": draw_balance_under_training(summary.table("balance under training"))}


EXPERIMENT = Experiment(
    name="anguita-fig4-8",
    title="balance of linear, ReLU and tanh networks through two tasks",
    document="anguita2024",
    place="Figure 4.8",
    version=1,
    scales={
        "smoke": Settings(n_trials=6, largest=9, n_steps=600, lr=4e-3),
        "laptop": Settings(n_trials=20, n_steps=6000),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="anguita2024-fig4.8-kept",
            statement="Training keeps the fitted balance of linear and of ReLU networks.",
            measures="lambda* = Tr(D)/n after two tasks",
            test="within 2 % of 1 + |balance| (the drift of finite steps)",
            needs=(
                crossed("balance under training", "activation", "balance", "stage", "seed"),
                groups("balance under training", "balance", -10.0, 0.1, 10.0),
                groups("balance under training", "activation", "linear", "relu"),
            ),
            judge=judge_kept,
            counterfeit=with_column("balance under training", "fitted", lambda row: row["fitted"] + 5),
        ),
        Claim(
            id="anguita2024-fig4.8-tanh",
            statement="In tanh networks the fitted balance falls during training.",
            measures="change of lambda* over two tasks",
            test="negative for every balance",
            needs=(
                crossed("balance under training", "activation", "balance", "stage", "seed"),
                groups("balance under training", "balance", -10.0, 0.1, 10.0),
            ),
            judge=judge_tanh,
            counterfeit=with_column("balance under training", "fitted", lambda row: row["balance"]),
        ),
        Claim(
            id="anguita2024-fig4.8-distance",
            statement="Linear networks stay balanced; ReLU and tanh networks leave it with each task, ReLU less far.",
            measures="|D - lambda* I| after each task",
            test="below 0.5 (linear), above 1 (others), growth in task 2 above zero by 2 standard errors",
            judge=judge_distance,
            counterfeit=with_column("balance under training", "distance", 0.1),
            genuine=with_column("balance under training", "growth error", 1e-3),
        ),
        Claim(
            id="anguita2024-thm4.5.1-search",
            place="Theorem 4.5.1",
            statement="The multiple of the identity nearest to D is its trace.",
            measures="grid search over multiples",
            test="within the grid's spacing",
            judge=judge_theorem,
            counterfeit=with_column("nearest multiple of the identity", "trace over n", 1e3),
        ),
    ),
    draw=draw,
)
