"""Ours: with a complex principal pair all tokens merge and rotate; period and Floquet exponents in closed form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge, with_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """V with the pair 1 +- 2i and the eigenvalue -0.5."""

    value: tuple[tuple[float, ...], ...] = ((1.0, 2.0, 0.3), (-2.0, 1.0, 0.1), (0.0, 0.0, -0.5))
    n_tokens: int = 4
    n_starts: int = 3
    t_max: float = 40.0
    n_frames: int = 200


class Measured(Summary):
    """A row per start; states and exponents of the first cycle."""

    rows: list[dict[str, Any]]
    states: list[list[list[float]]]
    exponents: list[float]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per start."""
    for seed in settings.seeds:
        for start in range(settings.n_starts):
            yield {**settings.model_dump(exclude={"seeds", "n_starts"}), "start": start, "seed": seed}


def run(cell: Cell) -> Payload:
    """Follow one start to its cycle, close the orbit by shooting, and compare with the closed form."""
    import torch

    from separatrix import dynamics, theory

    args = cell.args
    value = torch.tensor(args["value"], dtype=torch.float64)
    flow = dynamics.AttentionFlow.from_coupling(torch.eye(len(value), dtype=torch.float64), value)
    generator = spawn(cell.seed, "attention-cycles", args["start"])
    start = dynamics.random_tokens(args["n_tokens"], len(value), generator=generator)
    times = torch.linspace(0, 8.0, args["n_frames"], dtype=torch.float64)
    path = dynamics.integrate(flow, start, "reference", times=times, t_max=8.0, finishing=False)
    rest = dynamics.integrate(flow, start, t_max=args["t_max"], finishing=False)
    cycle = dynamics.limit_cycle(flow, rest.final)
    predicted = theory.consensus_cycle(value, args["n_tokens"])
    return {
        "kind": dynamics.classify(flow, rest.final)[0].kind,
        "period": cycle.period,
        "exponents": cycle.exponents,
        "predicted period": float(predicted.period),
        "predicted exponents": predicted.exponents,
        "states": path.states,
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Period and exponents beside the closed form."""
    rows = [
        {
            "start": cell.args["start"],
            "kind": payload["kind"],
            "period": payload["period"],
            "closed form": payload["predicted period"],
            "largest error of an exponent": float(abs(payload["exponents"] - payload["predicted exponents"]).max()),
        }
        for cell, payload in results
    ]
    first = results[0][1]
    return Measured(
        rows=rows,
        states=first["states"].tolist(),
        exponents=first["exponents"].tolist(),
        tables={"Cycles": rows},
    )


_CAPTION = """Tokens under a value matrix with a complex principal pair: they merge and go on rotating on a great
circle. Solid dots: where each token is at the end of the drawing."""


def draw(summary: Measured) -> Mapping[str, Figure]:
    """The first start on the sphere."""
    from separatrix.report.figures.attention import sphere_trajectories

    return {"cycle": sphere_trajectories([("all tokens merge and rotate", summary.states)], caption=_CAPTION)}


def judge_cycle(summary: Measured) -> Judgement:
    """Decide ``separatrix-consensus-cycle``."""
    rows = [
        Row(f"end, start {row['start']}", row["kind"], "cycle", agrees=row["kind"] == "cycle") for row in summary.rows
    ]
    rows += [Row(f"period, start {row['start']}", row["period"], row["closed form"], 1e-6) for row in summary.rows]
    rows += [
        Row(f"Floquet exponents, start {row['start']}", row["largest error of an exponent"], 0.0, 1e-4)
        for row in summary.rows
    ]
    return judge(f"exponents {[round(value, 4) for value in summary.exponents]}", rows)


EXPERIMENT = Experiment(
    name="attention-cycles",
    title="Consensus limit cycles of value matrices with a complex principal pair",
    document="separatrix",
    place="altafini2025, section 7",
    version=1,
    scales={"smoke": Settings(n_starts=1, n_tokens=3), "laptop": Settings(), "paper": Settings(n_starts=20)},
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-consensus-cycle",
            statement="A principal pair a +- ib gives a consensus cycle of period 2 pi/|b| whose exponents are 0, "
            "Re lambda_j - a and -a.",
            measures="period and Floquet exponents of the orbit closed by shooting",
            test="period to 1e-6, exponents to 1e-4",
            judge=judge_cycle,
            counterfeit=with_column("rows", "period", lambda row: 2 * row["period"]),
        ),
    ),
    draw=draw,
)
