"""Balance and regime on handwritten digits: ReLU networks of different balance, trained to equal loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.lab.experiment.cell import Cell
from separatrix.lab.experiment.claim import Claim, Judgement, Row, judge
from separatrix.lab.experiment.definition import Experiment, Params, Payload, Summary

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


def _expand(params: Settings) -> Iterator[Mapping[str, Any]]:
    kept = params.model_dump(exclude={"seeds", "alphas"})
    for alpha in params.alphas:
        for seed in params.seeds:
            yield {**kept, "alpha": alpha, "seed": seed}


def _run(cell: Cell) -> Payload:
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
    run = train_to_loss(trained, data, args["target_loss"], max_steps=args["max_steps"])
    found = rich_lazy(model, data, after=trained)
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


def _summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
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
    return {"tables": {"regime at equal loss": rows}, "target_loss": results[0][0].args["target_loss"]}


def _rows(summary: Summary) -> dict[float, dict[str, Any]]:
    return {row["alpha"]: row for row in summary["tables"]["regime at equal loss"]}


def _judge_equal_loss(summary: Summary) -> Judgement:
    target = summary["target_loss"]
    rows = [
        Row(f"alpha {alpha:g}: loss", row["loss"], target, 0.02 * target, spread=row["loss sd"])
        for alpha, row in _rows(summary).items()
    ]
    return judge(f"every network was trained to loss {target:g}", rows)


def _judge_lazy(summary: Summary) -> Judgement:
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


def _judge_asymmetry(summary: Summary) -> Judgement:
    table = _rows(summary)
    first, second = table[min(table)], table[max(table)]
    ratio = second["feature_change"] / first["feature_change"]
    rows = [Row("feature change, heavy second over heavy first layer", ratio, "above 3", "3", ratio > 3)]
    evidence = (
        f"1 - CKA is {second['feature_change']:.3f} with a heavy second layer (balance {second['balance']:.2f}) and "
        f"{first['feature_change']:.3f} with a heavy first layer"
    )
    return judge(evidence, rows)


def _judge_accuracy(summary: Summary) -> Judgement:
    table = _rows(summary)
    if min(row["seeds"] for row in table.values()) < _SEEDS_NEEDED:
        return judge("", [])
    values = [row["accuracy"] for row in table.values()]
    spread = max(values) - min(values)
    noise = max(row["accuracy sd"] for row in table.values())
    rows = [Row("largest difference of mean test accuracy", spread, 0.0, max(0.01, 2 * noise), spread=noise)]
    return judge(f"mean test accuracies lie within {spread:.4f} (largest spread over seeds {noise:.4f})", rows)


def _draw(summary: Summary) -> dict[str, Figure]:
    from separatrix.report.figures.regime import draw_equal_loss

    return {"regime": draw_equal_loss(summary["tables"]["regime at equal loss"], summary["target_loss"])}


def _claim(name: str, statement: str, measures: str, test: str, judge_it: Any, scale: str = "smoke") -> Claim:
    identifier = f"separatrix-digits-{name}"
    return Claim(identifier, "separatrix", "digits at equal loss", statement, measures, test, judge_it, scale=scale)


experiment = Experiment(
    name="linear-digits-regime",
    title="rich or lazy by balance: digits at equal loss",
    document="separatrix",
    place="digits at equal loss",
    version=1,
    scales={
        "smoke": Settings(seeds=(0,), alphas=(0.5, 2.0, 4.0), target_loss=0.2, n_train=100, n_hidden=64),
        "laptop": Settings(),
        "paper": Settings(seeds=tuple(range(20))),
    },
    expand=_expand,
    run=_run,
    summarise=_summarise,
    claims=(
        _claim(
            "equal-loss", "All networks are compared at the same training loss.", "training loss", "within 2 %",
            _judge_equal_loss,
        ),
        _claim(
            "lazy",
            "A heavy first layer makes a ReLU network lazy, and slow at matched stability.",
            "kernel distance, 1 - CKA and steps against the network nearest to balance 0",
            "less than half the change, more than three times the steps",
            _judge_lazy,
        ),
        _claim(
            "asymmetry",
            "A heavy second layer does not make a ReLU network lazy.",
            "1 - CKA of the hidden layer at either end of the scale",
            "more than three times larger with a heavy second layer",
            _judge_asymmetry,
        ),
        _claim(
            "accuracy",
            "At equal loss the regime does not change test accuracy on this task.",
            "test accuracy over seeds",
            "means within 1 % or twice the largest standard deviation over seeds",
            _judge_accuracy,
            "laptop",
        ),
    ),
    draw=_draw,
)  # fmt: skip
