"""Ours, after altafini2025 Example 1(b): long transients, plateaus and the saddles behind them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    at_least,
    crossed,
    judge,
    spans,
    with_column,
)

from ..worst_case import highest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from separatrix.dynamics.attractors import Metastability


LIVES, LINES = "Life of a plateau", "Life against the logarithm of the distance, in e-foldings"
SLOPES = (0.99, 1.001)
"""Of the line, times the rate: higher orders of the distance shorten a plateau more than they lengthen it."""
NAMES = ("times", "speed", "counts")
SHOWN = 200
"""Points of a curve, of the many frames in which a life is measured."""
OFF = 0.04
"""Distance of a life from its line, in e-foldings of the unstable mode."""


class Settings(Params):
    """Starts at chosen distances from saddles, whose unstable rates are known; a seed is a start."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    distances: tuple[float, ...] = (1e-5, 1e-6, 1e-7, 1e-8)
    gaps: tuple[float, ...] = (0.1, 0.2, 0.4)  # lambda_1 - lambda_2, with lambda_1 = 1
    n_tokens: int = 6
    n_frames: int = 400


class Measured(Summary):
    """Curves by distance, of one saddle and one start."""

    curves: dict[str, dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per saddle, start and distance."""
    for gap, seed, distance in itertools.product(settings.gaps, settings.seeds, settings.distances):
        yield {
            "distance": distance,
            "gap": gap,
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
        "duration": _departure(record),
        "rate": first.unstable_rate,
        "predicted": first.predicted_life,
    }


def _departure(record: Metastability) -> float:
    """When the trajectory leaves its first slow stretch, however tokens gather in it, between two frames.

    Speed grows by e-foldings from frame to frame there, which is too much for a slope to a thousandth.
    """
    from separatrix.dynamics.attractors.metastability import SLOW_SHARE

    level = SLOW_SHARE * float(record.speed[0])
    slow = (record.speed < level).tolist()
    first = slow.index(True)
    frame = slow.index(False, first) - 1
    before, after = (math.log(float(record.speed[place])) for place in (frame, frame + 1))
    start, end = (float(record.times[place]) for place in (frame, frame + 1))
    return start + (end - start) * (math.log(level) - before) / (after - before)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Life of the first plateau against the distance from the saddle, and its line for each saddle and start."""
    rows, curves = [], {}
    shown = results[0][0]
    for cell, payload in results:
        distance = cell.args["distance"]
        rows.append(
            {
                "gap": cell.args["gap"],
                "start": cell.seed,
                "distance": distance,
                "left the plateau at": payload["duration"],
                "unstable rate": payload["rate"],
                "predicted life": payload["predicted"],
            }
        )
        if (cell.args["gap"], cell.seed) != (shown.args["gap"], shown.seed):
            continue
        curves[f"{distance:g}"] = {
            **{name: payload[name][..., :: max(1, len(payload["times"]) // SHOWN)].tolist() for name in NAMES},
            "plateaus": payload["plateaus"],
        }
    lines = [
        {"gap": gap, "start": start, **_line(gap, [row for row in rows if (row["gap"], row["start"]) == (gap, start)])}
        for gap, start in dict.fromkeys((row["gap"], row["start"]) for row in rows)
    ]
    return Measured(curves=curves, tables={LIVES: rows, LINES: lines})


def _line(rate: float, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The line through lives against the logarithm of the distance: its slope times the rate, and how far lives lie
    off it, in e-foldings."""
    logs = [math.log(1 / row["distance"]) for row in rows]
    lives = [rate * row["left the plateau at"] for row in rows]
    mean_log, mean_life = sum(logs) / len(logs), sum(lives) / len(lives)
    covered = sum((a - mean_log) ** 2 for a in logs)
    slope = sum((a - mean_log) * (b - mean_life) for a, b in zip(logs, lives, strict=True)) / covered
    off = max(abs(b - mean_life - slope * (a - mean_log)) for a, b in zip(logs, lives, strict=True))
    return {
        "slope": slope,
        "off": off,
        "constant": mean_life - slope * mean_log,
        "nearest": min(row["distance"] for row in rows),
        "distances": len(rows),
    }


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
    rows = []
    for line in summary.table(LINES):
        name = f"gap {line['gap']:g}, start {line['start']}"
        slope = line["slope"]
        within = SLOPES[0] <= slope <= SLOPES[1]
        rows.append(Row(f"slope times rate, {name}", slope, f"{SLOPES[0]:g} to {SLOPES[1]:g}", agrees=within))
        rows.append(Row(f"largest distance from the line, in e-foldings, {name}", line["off"], 0.0, OFF))
    slopes, constants = ([line[name] for line in summary.table(LINES)] for name in ("slope", "constant"))
    off = highest(*(line["off"] for line in summary.table(LINES)))
    return judge(
        f"slope times rate {min(slopes):.4f} to {max(slopes):.4f}, off the line by at most {off:.3f} e-foldings; the "
        f"constant is {min(constants):.2f} to {max(constants):.2f} e-foldings",
        rows,
    )


EXPERIMENT = Experiment(
    name="attention-metastability",
    title="How long a trajectory lingers beside a saddle",
    document="separatrix",
    place="altafini2025, Example 1(b)",
    version=2,
    scales={
        "smoke": Settings(seeds=(0,), gaps=(0.2,), distances=(1e-3, 1e-5), n_frames=200),
        "laptop": Settings(),
        "paper": Settings(seeds=tuple(range(20)), gaps=(0.05, 0.1, 0.2, 0.4), n_frames=800),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-plateau-life",
            statement="A plateau beside a saddle lasts, up to a constant, ln(1/distance) over the unstable rate.",
            measures="line of the time of departure against the logarithm of the distance, each saddle and start",
            test="slope times rate from .99 to 1.001; no time off the line by more than .04 over the rate",
            needs=(
                crossed(LIVES, "gap", "start", "distance"),
                spans(LIVES, "distance", 1e-8, 1e-5),
                crossed(LINES, "gap", "start"),
                at_least(LINES, 3, "gap"),
                at_least(LINES, 5, "start"),
            ),
            judge=judge_life,
            counterfeit=with_column(LINES, "slope", lambda row: 2 * row["slope"]),
            scale="laptop",
        ),
    ),
    draw=draw,
)
