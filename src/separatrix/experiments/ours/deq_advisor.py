"""Does the advisor's forecast of iterations hold? Counted steps of plain iteration, tanh networks, three families."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    condition,
    judge,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = {"gaussian": (0.5, 1.0, 1.5, 2.0), "haar": (0.5, 1.0, 1.5, 2.0), "goe": (0.2, 0.4, 0.6, 0.8, 1.0)}


class Settings(Params):
    """Settings."""

    width: int = 512
    n_matrices: int = 8
    n_inputs: int = 32
    tol: float = 1e-8
    max_steps: int = 3000


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per family, scale and seed."""
    for seed in settings.seeds:
        for family, scales in SCALES.items():
            for scale in scales:
                yield {"family": family, "scale": scale, "seed": seed} | {
                    name: getattr(settings, name) for name in ("width", "n_matrices", "n_inputs", "tol", "max_steps")
                }


def run(cell: Cell) -> Payload:
    """Iterations that plain iteration needs, per matrix."""
    import torch

    from separatrix.dynamics.solve.random_networks import network_equilibria
    from separatrix.matrices.ensembles import find_ensemble

    args = cell.args
    width, ensemble = int(args["width"]), find_ensemble(args["family"])
    means, largest = [], []
    for index in range(int(args["n_matrices"])):
        generator = spawn(cell.seed, "deq-advisor", args["family"], index)
        matrix = ensemble.sample(width, args["scale"] ** 2, generator=generator)
        x = torch.randn(int(args["n_inputs"]), width, generator=generator, dtype=torch.float64)
        solution = network_equilibria(matrix, torch.tanh, x, tol=args["tol"], max_steps=int(args["max_steps"]))
        means.append(float(solution.steps.double().mean()))
        largest.append(int(solution.steps.max()))
    return {"mean": means, "largest": largest}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Counted iterations beside the forecast."""
    import torch

    from separatrix.advise.deq_forecast import iterations
    from separatrix.matrices.ensembles import find_ensemble
    from separatrix.theory import mean_field

    rows = []
    for cell, payload in results:
        theory = mean_field(
            find_ensemble(cell.args["family"]), "tanh", weight_var=cell.args["scale"] ** 2, input_var=1.0
        )
        steps = iterations(torch.tensor(float(theory.radius), dtype=torch.float64), cell.args["tol"])
        rows.append(
            {
                "family": cell.args["family"],
                "scale": cell.args["scale"],
                "radius": float(theory.radius),
                "forecast": float(steps),
                "mean": sum(payload["mean"]) / len(payload["mean"]),
                "largest": max(payload["largest"]),
            }
        )
    return Summary(tables={"iterations": rows})


def judge_iterations(limit: float) -> Callable[[Summary], Judgement]:
    """Decide ``separatrix-advisor-iterations``."""

    def judge_up_to(summary: Summary) -> Judgement:
        table = summary.table("iterations")
        rows = [
            Row(f"{r['family']} at {r['scale']:g}", r["mean"], r["forecast"], 0.25 * r["forecast"])
            for r in table
            if r["radius"] <= limit
        ]
        beyond = [
            Row(f"{r['family']} at {r['scale']:g}", r["mean"], r["forecast"], 0.25 * r["forecast"])
            for r in table
            if r["radius"] > limit
        ]
        worst = max((abs(float(row.measured) / float(row.expected) - 1) for row in rows), default=0.0)
        evidence = f"largest error of the mean {worst:.0%} for a radius up to {limit}"
        return judge(evidence, rows + beyond, condition(f"for a radius up to {limit}", rows) if rows else None)

    return judge_up_to


def draw(summary: Summary) -> Mapping[str, Figure]:
    """Counted iterations against the forecast."""
    from separatrix.report.figures import deq

    return {"forecast": deq.forecast(summary.table("iterations"))}


EXPERIMENT = Experiment(
    name="deq-advisor",
    title="Forecast of iterations against counted iterations",
    document="separatrix",
    place="advisor",
    version=1,
    scales={
        "smoke": Settings(width=200, n_matrices=2, n_inputs=8, max_steps=400),
        "laptop": Settings(),
        "paper": Settings(n_matrices=32),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-advisor-iterations",
            statement="ln(tol) / ln(radius) is the mean number of plain iterations",
            measures="steps until the root mean square of f(z) - z is below tol, mean over inputs and matrices",
            test="within 25% for a radius up to 0.85; above that the claim is not made",
            judge=judge_iterations(0.85),
            counterfeit=with_column("iterations", "mean", lambda row: 2 * row["forecast"]),
            scale="laptop",
        ),
    ),
    draw=draw,
)
