"""Ours: equilibria followed through the inverse temperature; events against the closed form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.wording import small
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge, with_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Balanced and unbalanced pairs on the first and the last eigenvector of V = diag(3, 1, -4)."""

    value: tuple[float, ...] = (3.0, 1.0, -4.0)
    coupling: tuple[float, ...] = (0.9, 0.2, -1.1)
    n_tokens: int = 100
    betas: tuple[float, float] = (0.2, 2.0)
    n_betas: int = 61
    n_fractions: int = 41


class Measured(Summary):
    """Abscissa along beta, by eigenvector."""

    branches: dict[str, dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """A branch in beta and one in the share of tokens, per eigenvector."""
    for k in (0, len(settings.value) - 1):
        yield {**settings.model_dump(exclude={"seeds"}), "k": k}


def run(cell: Cell) -> Payload:
    """Continue the pair on one eigenvector, and compare its events with the closed form."""
    import math

    import torch

    from separatrix import dynamics, theory

    args, k = cell.args, cell.args["k"]
    value, coupling = (torch.diag(torch.tensor(args[name], dtype=torch.float64)) for name in ("value", "coupling"))
    flow = dynamics.AttentionFlow.from_coupling(coupling, value)
    v = torch.eye(len(args["value"]), dtype=torch.float64)[k]
    pair, half = torch.stack([v, -v]), args["n_tokens"] // 2
    low, high = args["betas"]
    betas = torch.logspace(math.log10(low), math.log10(high), args["n_betas"], dtype=torch.float64)
    branch = dynamics.beta_branch(flow, pair, (half, half), betas)
    shares = dynamics.fraction_branch(flow, pair, torch.linspace(0.5, 0.95, args["n_fractions"]), 1e6)
    window = theory.stable_window(coupling, value, k, 10**6)
    return {
        "betas": branch.parameters,
        "abscissa": torch.maximum(branch.quotient_abscissa, branch.transversal_abscissa),
        "event": _first(branch),
        "critical beta": float(theory.critical_beta(coupling, value, k)),
        "edge": _first(shares),
        "predicted edge": 1 / (1 + math.exp(-float(window.half_width))),
    }


def _first(branch: Any) -> float:
    return next((event.parameter for event in branch.events if event.kind == "quotient"), float("nan"))


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Events beside the closed form."""
    rows, branches = [], {}
    for cell, payload in results:
        name = f"v{cell.args['k'] + 1}"
        rows.append(
            {
                "eigenvector": name,
                "stable from beta": payload["event"],
                "closed form": payload["critical beta"],
                "edge of the window": payload["edge"],
                "closed form of the edge": payload["predicted edge"],
            }
        )
        branches[name] = {"betas": payload["betas"].tolist(), "abscissa": payload["abscissa"].tolist()}
    return Measured(
        branches=branches,
        tables={"Events along branches of bipartite states": rows},
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Abscissas against beta with the closed-form thresholds."""
    from separatrix.report.figures.attention import branch_plot

    (rows,) = summary.tables.values()
    curves = {f"balanced pair on {name}": (item["betas"], item["abscissa"]) for name, item in summary.branches.items()}
    events = {f"balanced pair on {row['eigenvector']}": row["closed form"] for row in rows}
    return {"branches": branch_plot(curves, events, r"inverse temperature $\beta$", "Dotted: threshold in closed form")}


def judge_events(summary: Measured) -> Judgement:
    """Decide ``separatrix-beta-events``."""
    (table,) = summary.tables.values()
    rows = []
    for item in table:
        rows.append(Row(f"beta_c on {item['eigenvector']}", item["stable from beta"], item["closed form"], 1e-7))
        rows.append(
            Row(
                f"edge of the window on {item['eigenvector']}",
                item["edge of the window"],
                item["closed form of the edge"],
                1e-4,
            )
        )
    worst = max(abs(float(row.measured) - float(row.expected)) for row in rows)
    return judge(f"{len(rows)} events found by continuation, at most {small(worst)} from the closed form", rows)


EXPERIMENT = Experiment(
    name="attention-beta-sweep",
    title="Bipartite states followed through temperature and cluster sizes",
    document="separatrix",
    place="explanation/attention-equilibria",
    version=1,
    scales={
        "smoke": Settings(n_betas=21, n_fractions=21),
        "laptop": Settings(),
        "paper": Settings(n_betas=201, n_fractions=101),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-beta-events",
            statement="A balanced pair becomes stable at beta_c, and a pair loses stability at the edge of its window.",
            measures="events located by continuation",
            test="beta_c to 1e-7, edge to 1e-4",
            judge=judge_events,
            counterfeit=with_column(
                "Events along branches of bipartite states", "stable from beta", lambda row: 2 * row["closed form"]
            ),
        ),
    ),
    draw=draw,
)
