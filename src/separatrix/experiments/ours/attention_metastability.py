"""Ours, after altafini2025 Example 1(b): long transients, plateaus and the saddles behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge, with_fields

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Starts at chosen distances from a saddle, whose unstable rate is known."""

    distances: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6)
    gap: float = 0.2  # lambda_1 - lambda_2, with lambda_1 = 1
    n_tokens: int = 6
    n_frames: int = 400


class Measured(Summary):
    """Growth of a plateau's life with the logarithm of the distance, and curves by distance."""

    slope: float
    expected_slope: float
    curves: dict[str, dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per distance."""
    for seed in settings.seeds:
        for distance in settings.distances:
            yield {
                "distance": distance,
                "gap": settings.gap,
                "n_tokens": settings.n_tokens,
                "n_frames": settings.n_frames,
                "seed": seed,
            }


def run(cell: Cell) -> Payload:
    """The record of one trajectory that starts beside consensus on v2."""
    import torch

    from separatrix import dynamics

    args = cell.args
    value = torch.diag(torch.tensor([1.0, 1 - args["gap"], -1.0], dtype=torch.float64))
    flow = dynamics.AttentionFlow.from_coupling(torch.eye(3, dtype=torch.float64), value)
    spread = torch.zeros(args["n_tokens"], 3, dtype=torch.float64)
    side = torch.rand(args["n_tokens"] // 2, generator=spawn(cell.seed, "attention-metastability"), dtype=torch.float64)
    spread[:, 2] = torch.cat([side, -side])  # symmetric about v2, so that only the distance leads away
    base = torch.tensor([args["distance"], 1.0, 0.0], dtype=torch.float64)
    t_max = 1.6 * math.log(1 / args["distance"]) / args["gap"] + 25
    record = dynamics.metastability_record(
        flow, dynamics.normalise(base + spread), t_max=t_max, n_frames=args["n_frames"]
    )
    first = next(plateau for plateau in record.plateaus if plateau.unstable_rate > 0)
    return {
        "times": record.times,
        "speed": record.speed,
        "counts": record.n_clusters,
        "plateaus": [[plateau.start, plateau.duration] for plateau in record.plateaus],
        "duration": first.start + first.duration,
        "rate": first.unstable_rate,
        "predicted": first.predicted_life,
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Life of the first plateau against the distance from the saddle."""
    rows, curves = [], {}
    for cell, payload in results:
        distance = cell.args["distance"]
        rows.append(
            {
                "distance": distance,
                "left the plateau at": payload["duration"],
                "unstable rate": payload["rate"],
                "predicted life": payload["predicted"],
            }
        )
        curves[f"{distance:g}"] = {
            "times": payload["times"].tolist(),
            "speed": payload["speed"].tolist(),
            "counts": payload["counts"].tolist(),
            "plateaus": payload["plateaus"],
        }
    logs = [math.log(1 / row["distance"]) for row in rows]
    lives = [row["left the plateau at"] for row in rows]
    mean_log, mean_life = sum(logs) / len(logs), sum(lives) / len(lives)
    slope = sum((a - mean_log) * (b - mean_life) for a, b in zip(logs, lives, strict=True)) / sum(
        (a - mean_log) ** 2 for a in logs
    )
    return Measured(
        slope=slope,
        expected_slope=1 / results[0][0].args["gap"],
        curves=curves,
        tables={"Life of a plateau": rows},
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Speed against time for every distance, and the record of the longest one."""
    from separatrix.report.figures.attention import convergence_curves, metastability_plot

    curves = {f"distance {name}": (item["times"], item["speed"]) for name, item in summary.curves.items()}
    name, last = list(summary.curves.items())[-1]
    counts = dict(zip(("0.1", "0.01", "0.001"), last["counts"], strict=True))
    plateaus = [(start, duration) for start, duration in last["plateaus"]]
    return {
        "speeds": convergence_curves(curves, "Starts beside consensus on v2"),
        "record": metastability_plot(
            last["times"], last["speed"], counts, plateaus, f"Start at distance {name} from consensus on v2"
        ),
    }


def judge_life(summary: Measured) -> Judgement:
    """Decide ``separatrix-plateau-life``."""
    rows = [
        Row(
            "life per factor e of distance, in 1/lambda_1",
            summary.slope,
            summary.expected_slope,
            0.15 * summary.expected_slope,
        )
    ]
    return judge(f"slope {summary.slope:.3f}, one over the unstable rate is {summary.expected_slope:.3f}", rows)


EXPERIMENT = Experiment(
    name="attention-metastability",
    title="How long a trajectory lingers beside a saddle",
    document="separatrix",
    place="altafini2025, Example 1(b)",
    version=1,
    scales={
        "smoke": Settings(distances=(1e-3, 1e-5), n_frames=200),
        "laptop": Settings(),
        "paper": Settings(distances=(1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8), n_frames=800),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-plateau-life",
            statement="A plateau beside a saddle lasts ln(1/distance) over the unstable rate.",
            measures="slope of the time of departure against the logarithm of the distance",
            test="within 15% of one over the rate",
            judge=judge_life,
            counterfeit=with_fields(slope=lambda slope: 2 * slope),
        ),
    ),
    draw=draw,
)
