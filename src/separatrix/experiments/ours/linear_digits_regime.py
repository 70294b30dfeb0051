"""Balance and regime on handwritten digits: ReLU networks of different balance, trained to equal loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.wording import measured, number
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    groups,
    interval_row,
    judge,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor, nn


class Settings(Params):
    """A 64-128-10 ReLU network without biases; the first layer is divided by alpha, the second multiplied by it."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    alphas: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    scale: float = 0.3
    n_hidden: int = 128
    n_train: int = 600
    target_loss: float = 0.1  # the loss starts at 0.5
    max_steps: int = 20_000


class Measured(Summary):
    """The loss at which all networks are compared."""

    target_loss: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per ratio of the layers and seed."""
    kept = settings.model_dump(exclude={"seeds", "alphas"})
    for alpha in settings.alphas:
        for seed in settings.seeds:
            yield {**kept, "alpha": alpha, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train to the target loss and measure how far features and kernel moved."""
    import copy

    import torch

    from separatrix.core.random import spawn
    from separatrix.diagnose import balance_profile, rich_lazy, train_to_loss
    from separatrix.tasks import load_digits

    args = cell.args
    digits = load_digits(args["n_train"], generator=spawn(0, "linear-digits-regime", "order"))
    data = (digits.train_x, digits.train_y)
    weights = spawn(cell.seed, "linear-digits-regime", "weights")  # the same for every alpha: paired
    model = _network(args, weights)
    trained = copy.deepcopy(model)
    run = train_to_loss(trained, data, args["target_loss"], loss="half_mse", max_steps=args["max_steps"])
    found = rich_lazy(model, data, loss="half_mse", after=trained)
    with torch.no_grad():
        accuracy = float((trained(digits.test_x).argmax(-1) == digits.test_y).double().mean())
    return {
        "balance": balance_profile(model).pairs[0].balance,
        "balance_after": balance_profile(trained).pairs[0].balance,
        "reached": run.ok,
        "steps": run.steps,
        "lr": run.lr,
        "loss": run.loss,
        "kernel_distance": found.kernel_distance,
        "kernel_change": found.kernel_change,
        "feature_change": found.feature_change,
        "linearised_error": found.linearised_error,
        "verdict": found.verdict.label,
        "accuracy": accuracy,
    }


def _network(args: Mapping[str, Any], generator: Any) -> nn.Module:
    """Neurons in pairs with opposite outgoing weights, so that the function starts at zero."""
    import torch
    from torch import nn

    half, alpha, scale = args["n_hidden"] // 2, args["alpha"], args["scale"]
    w1: Tensor = torch.randn(half, 64, generator=generator) * scale / alpha * 2**0.5 / 8
    w2: Tensor = torch.randn(10, half, generator=generator) * scale * alpha / args["n_hidden"] ** 0.5
    model = nn.Sequential(
        nn.utils.skip_init(nn.Linear, 64, 2 * half, bias=False),
        nn.ReLU(),
        nn.utils.skip_init(nn.Linear, 2 * half, 10, bias=False),
    )
    with torch.no_grad():
        model[0].weight.copy_(torch.cat([w1, w1]))  # type: ignore[operator]
        model[2].weight.copy_(torch.cat([w2, -w2], dim=1))  # type: ignore[operator]
    return model


_SEEDS_NEEDED = 5
"""Seeds below which nothing is said about an effect on accuracy."""

_AVERAGED = (
    "balance", "steps", "loss", "kernel_distance", "kernel_change", "feature_change", "linearised_error", "accuracy",
)  # fmt: skip


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Means over seeds by ratio of the layers."""
    import statistics

    groups: dict[float, list[Payload]] = {}
    for cell, payload in results:
        groups.setdefault(cell.args["alpha"], []).append(payload)
    rows = []
    for alpha, payloads in groups.items():
        row: dict[str, Any] = {"alpha": alpha, "seeds": len(payloads), "reached": sum(p["reached"] for p in payloads)}
        for name in _AVERAGED:
            values = [float(payload[name]) for payload in payloads]
            row[name] = statistics.fmean(values)
            row[f"{name} sd"] = statistics.stdev(values) if len(values) > 1 else 0.0
        row["balance drift"] = max(abs(p["balance_after"] - p["balance"]) for p in payloads)
        verdicts = [payload["verdict"] for payload in payloads]
        row["verdict"] = max(sorted(set(verdicts)), key=verdicts.count)
        rows.append(row)
    return Measured(
        tables={"regime at equal loss": rows},
        target_loss=results[0][0].args["target_loss"],
    )


def _rows(summary: Measured) -> dict[float, dict[str, Any]]:
    return {row["alpha"]: row for row in summary.table("regime at equal loss")}


def judge_equal_loss(summary: Measured) -> Judgement:
    """Decide ``separatrix-digits-equal-loss``."""
    target = summary.target_loss
    rows = [
        Row(f"alpha {alpha:g}: loss", row["loss"], target, 0.02 * target, spread=row["loss sd"])
        for alpha, row in _rows(summary).items()
    ]
    losses = [float(row.measured) for row in rows]
    return judge(f"losses of {number(min(losses))} to {number(max(losses))} where {target:g} was the aim", rows)


def judge_lazy(summary: Measured) -> Judgement:
    """Decide ``separatrix-digits-lazy``."""
    table = _rows(summary)
    heavy, balanced = table[min(table)], table[min(table, key=lambda alpha: abs(table[alpha]["balance"]))]
    measures = ("kernel_distance", "feature_change", "steps")
    distance, features, steps = (heavy[name] / balanced[name] for name in measures)
    rows = [
        Row("kernel distance, heavy first layer over balanced", distance, "below 0.5", "0.5", distance < 0.5),
        Row("feature change, heavy first layer over balanced", features, "below 0.5", "0.5", features < 0.5),
        Row("steps, heavy first layer over balanced", steps, "above 3", "3", steps > 3),
    ]
    evidence = (
        f"heavy first layer (balance {heavy['balance']:.2f}): kernel distance {heavy['kernel_distance']:.4f} and "
        f"1 - CKA {heavy['feature_change']:.3f} in {heavy['steps']:.0f} steps, against "
        f"{balanced['kernel_distance']:.4f}, {balanced['feature_change']:.3f} and {balanced['steps']:.0f}"
    )
    return judge(evidence, rows)


def judge_asymmetry(summary: Measured) -> Judgement:
    """Decide ``separatrix-digits-asymmetry``."""
    table = _rows(summary)
    first, second = table[min(table)], table[max(table)]
    ratio = second["feature_change"] / first["feature_change"]
    rows = [Row("feature change, heavy second over heavy first layer", ratio, "above 3", "3", ratio > 3)]
    evidence = (
        f"1 - CKA is {second['feature_change']:.3f} with a heavy second layer (balance {second['balance']:.2f}) and "
        f"{first['feature_change']:.3f} with a heavy first layer"
    )
    return judge(evidence, rows)


def judge_accuracy(summary: Measured) -> Judgement:
    """Decide ``separatrix-digits-accuracy``."""
    table = _rows(summary)
    if min(row["seeds"] for row in table.values()) < _SEEDS_NEEDED:
        return judge("", [])
    from scipy import stats

    worst, best = (choose(table.values(), key=lambda row: row["accuracy"]) for choose in (min, max))
    gap = best["accuracy"] - worst["accuracy"]
    error = math.hypot(*(row["accuracy sd"] / math.sqrt(row["seeds"]) for row in (worst, best)))
    half = float(stats.t.ppf(0.975, min(worst["seeds"], best["seeds"]) - 1)) * error
    row = interval_row("largest difference of mean test accuracy", gap, (gap - half, gap + half), below=0.01)
    return judge(f"the largest difference of mean test accuracies is {measured(gap, half)}", [row])


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Movement of features and kernel against the ratio of the layers."""
    from separatrix.report.figures.learning.regime import draw_equal_loss

    return {"regime": draw_equal_loss(summary.table("regime at equal loss"), summary.target_loss)}


_SCALES = (groups("regime at equal loss", "alpha", 0.5, 2.0, 4.0),)
"""From a heavy first layer to a heavy second one."""

EXPERIMENT = Experiment(
    name="linear-digits-regime",
    title="rich or lazy by balance: digits at equal loss",
    document="separatrix",
    place="digits at equal loss",
    version=2,
    scales={
        "smoke": Settings(seeds=(0,), alphas=(0.5, 2.0, 4.0), target_loss=0.2, n_train=100, n_hidden=64),
        "laptop": Settings(),
        "paper": Settings(seeds=tuple(range(20))),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-digits-equal-loss",
            statement="All networks are compared at the same training loss.",
            measures="training loss",
            test="within 2 %",
            needs=_SCALES,
            judge=judge_equal_loss,
            counterfeit=with_column("regime at equal loss", "loss", lambda row: 2 * row["loss"]),
        ),
        Claim(
            id="separatrix-digits-lazy",
            statement="A heavy first layer makes a ReLU network lazy, and slow at matched stability.",
            measures="kernel distance, 1 - CKA and steps against the network nearest to balance 0",
            test="less than half the change, more than three times the steps",
            needs=_SCALES,
            as_a_whole=("regime at equal loss",),
            judge=judge_lazy,
            counterfeit=with_column("regime at equal loss", "kernel_distance", 0.1),
        ),
        Claim(
            id="separatrix-digits-asymmetry",
            statement="A heavy second layer does not make a ReLU network lazy.",
            measures="1 - CKA of the hidden layer at either end of the scale",
            test="more than three times larger with a heavy second layer",
            needs=_SCALES,
            as_a_whole=("regime at equal loss",),
            judge=judge_asymmetry,
            counterfeit=with_column("regime at equal loss", "feature_change", 0.1),
        ),
        Claim(
            id="separatrix-digits-accuracy",
            statement="At equal loss the regime does not change test accuracy on this task.",
            measures="test accuracy over seeds",
            test="95 % interval of the largest difference of means below 1 %; refuted if above, else undecided",
            judge=judge_accuracy,
            counterfeit=with_column("regime at equal loss", "accuracy", lambda row: 0.5 + 0.4 * (row["alpha"] > 1)),
            genuine=with_column("regime at equal loss", "accuracy sd", 1e-4),
            scale="laptop",
        ),
    ),
    draw=draw,
)  # fmt: skip
