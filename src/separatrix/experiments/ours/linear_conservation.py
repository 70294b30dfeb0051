"""Conservation laws of real layers, one backward pass each, and what optimisers make of them."""

from __future__ import annotations

import itertools
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
    judge,
    spans,
    with_column,
)

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

OPTIMISERS = ("gd", "momentum", "adam", "weight_decay")
_EXACT = 1e-12
_BROKEN = 1e-2


class Settings(Params):
    """Random blocks for the laws; one ReLU network trained with each optimiser for the drift."""

    rates: tuple[float, ...] = (4e-3, 2e-3, 1e-3, 5e-4)
    time: float = 4.0  # learning rate times steps (momentum: divided by 1 - beta)
    beta: float = 0.9
    decay: float = 0.1
    n_in: int = 5
    n_hidden: int = 8
    n_out: int = 3
    n_samples: int = 40


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell for all laws, and one per optimiser, rate and seed."""
    kept = settings.model_dump(exclude={"seeds", "rates"})
    for seed in settings.seeds:
        yield {"part": "laws", "seed": seed}
        for optimiser in OPTIMISERS:
            for rate in settings.rates:
                yield {**kept, "part": "drift", "optimiser": optimiser, "rate": rate, "seed": seed}


def run(cell: Cell) -> Payload:
    """Residuals of conservation laws, or the drift under an optimiser."""
    return _laws(cell) if cell.args["part"] == "laws" else _drift(cell)


def _laws(cell: Cell) -> Payload:
    """Residual of the law of each pair of each block, of a larger law that must fail, and of one step's drift."""
    import dataclasses

    import torch

    from separatrix.core.random import spawn
    from separatrix.diagnose import conservation_check, find_pairs

    from .conservation_blocks import BLOCKS, reference_block

    rows = []
    for name in BLOCKS:
        generator = spawn(cell.seed, "linear-conservation", name)
        block = reference_block(name, generator=generator)
        shape = block.model(block.inputs).shape
        batch = (block.inputs, torch.randn(shape, generator=generator, dtype=torch.float64))
        pairs = find_pairs(block.model).pairs
        found = conservation_check(block.model, "half_mse", batch, lr=1e-2)
        larger = [dataclasses.replace(pair, law=block.broken[pair.name]) for pair in pairs if pair.name in block.broken]
        broken = conservation_check(block.model, "half_mse", batch, larger) if larger else None
        for pair, law in block.laws.items():
            has_larger = broken is not None and pair in block.broken
            rows.append(
                {
                    "block": name,
                    "pair": pair,
                    "law": law.label,
                    "residual": found[pair].residual,
                    "drift error": found[pair].drift_error,
                    "larger law": block.broken[pair].label if has_larger else "",
                    "its residual": broken[pair].residual if broken is not None and has_larger else float("nan"),
                }
            )
    return {"rows": rows}


def _drift(cell: Cell) -> Payload:
    """Train a ReLU network for a fixed effective time; how far the diagonal of D moved, relative to its size."""
    import torch

    from separatrix.core.random import spawn

    args = cell.args
    generator = spawn(cell.seed, "linear-conservation", "drift")
    draw = {"generator": generator, "dtype": torch.float64}
    x = torch.randn(args["n_samples"], args["n_in"], **draw)  # type: ignore[call-overload]
    y = torch.randn(args["n_samples"], args["n_out"], **draw)  # type: ignore[call-overload]
    w1 = (torch.randn(args["n_hidden"], args["n_in"], **draw) / args["n_in"] ** 0.5).requires_grad_()  # type: ignore[call-overload]
    w2 = (torch.randn(args["n_out"], args["n_hidden"], **draw) / args["n_hidden"] ** 0.5).requires_grad_()  # type: ignore[call-overload]
    before = _balance(w1, w2)
    momentum = args["optimiser"] == "momentum"
    steps = round(args["time"] / args["rate"] * (1 - args["beta"] if momentum else 1))
    optimiser = _optimiser(args, [w1, w2])
    for _ in range(steps):
        loss = ((x @ w1.mT).relu() @ w2.mT - y).square().sum() / (2 * len(x))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    after = _balance(w1, w2)
    return {
        "drift": float((after - before).norm() / before.norm()),
        "ratio": float((after * before).sum() / before.square().sum()),
        "steps": steps,
    }


def _balance(w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
    return (w2.square().sum(0) - w1.square().sum(1)).detach()


def _optimiser(args: Mapping[str, Any], parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
    import torch

    if args["optimiser"] == "adam":
        return torch.optim.Adam(parameters, lr=args["rate"])
    momentum = args["beta"] if args["optimiser"] == "momentum" else 0.0
    decay = args["decay"] if args["optimiser"] == "weight_decay" else 0.0
    return torch.optim.SGD(parameters, lr=args["rate"], momentum=momentum, weight_decay=decay)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Residuals by block and pair, and the drift by optimiser and rate."""
    laws = [row for cell, payload in results if cell.args["part"] == "laws" for row in payload["rows"]]
    drift: dict[tuple[str, float], list[Payload]] = {}
    decay: dict[float, float] = {}
    for cell, payload in results:
        if cell.args["part"] == "drift":
            drift.setdefault((cell.args["optimiser"], cell.args["rate"]), []).append(payload)
            decay[cell.args["rate"]] = cell.args["decay"] * cell.args["time"]
    rows = [
        {
            "optimiser": optimiser,
            "rate": rate,
            "drift": sum(p["drift"] for p in payloads) / len(payloads),
            "D after / before": sum(p["ratio"] for p in payloads) / len(payloads),
            "decay times time": decay[rate],
        }
        for (optimiser, rate), payloads in drift.items()
    ]
    return Summary(tables={"laws": laws, "drift": rows})


def judge_laws(summary: Summary) -> Judgement:
    """Decide ``separatrix-conservation-table``."""
    rows = []
    for row in summary.table("laws"):
        label = f"{row['block']}, {row['pair']}"
        if row["law"] != "nothing":
            rows.append(Row(f"{label}: rate of the {row['law']}", row["residual"], 0.0, _EXACT))
        if row["larger law"]:
            size = row["its residual"]
            rows.append(
                Row(f"{label}: rate of the {row['larger law']}", size, f"above {_BROKEN}", _BROKEN, size > _BROKEN)
            )
    kept = max(row["residual"] for row in summary.table("laws") if row["law"] != "nothing")
    lost = min(row["its residual"] for row in summary.table("laws") if row["larger law"])
    return judge(
        f"conserved parts change at a relative rate of at most {small(kept)}, others of at least {small(lost)}", rows
    )


def judge_step(summary: Summary) -> Judgement:
    """Decide ``separatrix-conservation-step``."""
    rows = [
        Row(f"{row['block']}, {row['pair']}: error of the predicted step", row["drift error"], 0.0, _EXACT)
        for row in summary.table("laws")
        if row["law"] != "nothing"
    ]
    worst = max(float(row.measured) for row in rows)
    return judge(f"one step changes D by lr^2 (G2'G2 - G1G1') up to {small(worst)} relative to D", rows)


def _drifts(summary: Summary, optimiser: str) -> dict[float, float]:
    rows = [row for row in summary.table("drift") if row["optimiser"] == optimiser]
    return {row["rate"]: row["drift"] for row in sorted(rows, key=lambda row: -row["rate"])}


def _halvings(name: str, drifts: Mapping[float, float]) -> list[Row]:
    rates = list(drifts)
    return [
        Row(
            f"{name}: drift at {a:g} over drift at {b:g}, per halving of the rate",
            (drifts[a] / drifts[b]) * 2 * b / a,
            2.0,
            0.5,
        )
        for a, b in itertools.pairwise(rates)
    ]


def judge_optimisers(summary: Summary) -> Judgement:
    """Decide ``separatrix-conservation-optimisers``."""
    plain, momentum, adam = (_drifts(summary, name) for name in ("gd", "momentum", "adam"))
    rows = _halvings("gradient descent", plain) + _halvings("momentum", momentum)
    last = list(plain)[-1]
    factor = momentum[last] / plain[last]
    rows.append(Row("momentum over gradient descent at the smallest rate", factor, "above 5", "5", factor > 5))
    kept = adam[last] / adam[next(iter(adam))]
    rows.append(Row("Adam: drift at the smallest rate over the largest", kept, "above 0.6", "0.6", kept > 0.6))
    evidence = (
        f"drift at the smallest rate: {small(plain[last])} (gradient descent), {small(momentum[last])} (momentum), "
        f"{small(adam[last])} (Adam, {kept:.2f} of that at the largest)"
    )
    return judge(evidence, rows)


def judge_decay(summary: Summary) -> Judgement:
    """Decide ``separatrix-conservation-decay``."""
    import math

    rows = [
        Row(
            f"weight decay at rate {row['rate']:g}: D after over before",
            row["D after / before"],
            math.exp(-2 * row["decay times time"]),
            5 * row["rate"],
        )
        for row in summary.table("drift")
        if row["optimiser"] == "weight_decay"
    ]
    shown = ", ".join(f"{float(row.measured):.4f} ({float(row.expected):.4f})" for row in rows)
    return judge(f"D after over before, and exp(-2 g t): {shown}", rows)


def draw(summary: Summary) -> Mapping[str, Figure]:
    """Residuals of the laws, and drift against the rate."""
    from separatrix.report.figures.learning.regime import draw_conservation

    return {"conservation": draw_conservation(summary.table("laws"), summary.table("drift"))}


KINDS = (
    "linear", "ReLU", "LeakyReLU", "tanh", "GELU", "SiLU", "ReLU squared", "SwiGLU", "convolution, linear",
    "convolution, average pool", "convolution, ReLU, max pool", "convolution, ReLU, flatten, linear", "attention",
    "attention, shared key-value heads", "attention, rotary", "attention, query-key norm", "residual branch",
    "batch norm", "layer norm",
)  # fmt: skip
"""The kinds of block by name: to read them where they are built is to import torch."""

_LAWS = (crossed("laws", ("block", "pair")), groups("laws", "block", *KINDS))

EXPERIMENT = Experiment(
    name="linear-conservation",
    title="what gradient flow conserves in real layers, and what optimisers keep",
    document="separatrix",
    place="conservation laws of layer pairs",
    version=1,
    scales={
        "smoke": Settings(rates=(2e-3, 1e-3), time=1.0),
        "laptop": Settings(seeds=(0, 1, 2)),
        "paper": Settings(seeds=tuple(range(10))),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-conservation-table",
            place="conservation laws",
            statement="Each kind of layer pair keeps exactly the part of D that its symmetry protects, and no more.",
            measures="relative rate of D along the gradient, by one backward pass",
            test="conserved parts below 1e-12, larger parts above 0.01",
            needs=_LAWS,
            judge=judge_laws,
            counterfeit=with_column("laws", "its residual", 0.0, lambda row: bool(row["larger law"])),
        ),
        Claim(
            id="separatrix-conservation-step",
            place="conservation laws",
            statement=(
                "A step of gradient descent changes the conserved quantity by lr^2 times the same form of "
                "the gradients."
            ),
            measures="predicted against measured change of D in one step",
            test="difference below 1e-12 of D",
            needs=_LAWS,
            judge=judge_step,
            counterfeit=with_column("laws", "drift error", 1e-3),
        ),
        Claim(
            id="separatrix-conservation-optimisers",
            place="conservation laws",
            statement=(
                "Gradient descent and momentum keep the balance to first order in lr over a fixed time; "
                "Adam never does."
            ),
            measures="relative drift of the diagonal of D",
            test="drift halves with lr (2 within 0.5), momentum drifts over 5 times more, Adam's drift does not fall",
            needs=(crossed("drift", "optimiser", "rate"), spans("drift", "rate", 0.001, 0.002)),
            judge=judge_optimisers,
            counterfeit=with_column("drift", "drift", 1e-3, lambda row: row["optimiser"] in ("gd", "momentum")),
        ),
        Claim(
            id="separatrix-conservation-decay",
            place="conservation laws",
            statement="Weight decay g shrinks the balance like exp(-2 g t).",
            measures="D after over D before",
            test="within 5 lr",
            needs=(crossed("drift", "optimiser", "rate"), spans("drift", "rate", 0.001, 0.002)),
            judge=judge_decay,
            counterfeit=with_column("drift", "D after / before", 1.0),
        ),
    ),
    draw=draw,
)
