"""Exact solution for every size against integration: shapes, bottlenecks, balances; Theorem 3.4.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
    crossed,
    groups,
    instead,
    judge,
    with_column,
)


class Settings(Params):
    """Shapes (n_in, n_hidden, n_out) and balances; illegal pairs are left out. The first three break Theorem 3.4.1."""

    shapes: tuple[tuple[int, int, int], ...] = (
        (4, 2, 4),
        (2, 2, 3),
        (3, 2, 2),
        (3, 1, 4),
        (2, 6, 3),
        (5, 3, 2),
        (2, 3, 5),
        (4, 4, 4),
    )
    balances: tuple[float, ...] = (0.0, 1e-8, -1e-8, 1.0, -1.0, 3.0, -3.0)
    times: tuple[float, ...] = (0.1, 1.0, 5.0)
    scale: float = 0.4


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per shape and seed; the balances that exist for a shape run as one batch."""
    for seed in settings.seeds:
        for shape in settings.shapes:
            n_in, n_hidden, n_out = shape
            legal = [
                b for b in settings.balances if not (b > 0 and n_hidden > n_out) and not (b < 0 and n_hidden > n_in)
            ]
            yield {"shape": shape, "balances": legal, "times": settings.times, "scale": settings.scale, "seed": seed}


def run(cell: Cell) -> Payload:
    """Exact Gram matrix against integration at rtol 1e-12, the balance of the factor, and the limit; per balance."""
    import torch

    from separatrix import dynamics, matrices

    args = cell.args
    n_in, n_hidden, n_out = args["shape"]
    generator = spawn(cell.seed, "linear-unequal-sizes", *args["shape"])
    balances = torch.tensor(args["balances"], dtype=torch.float64)
    corr = torch.randn(len(balances), n_out, n_in, dtype=torch.float64, generator=generator)
    w1, w2 = matrices.balanced_pair(balances, n_in, n_hidden, n_out, scale=args["scale"], generator=generator)
    flow = theory.BalancedFlow(w1, w2, corr)
    path = dynamics.integrate_layers(dynamics.LinearNetworkFlow(corr), (w1, w2), args["times"], rtol=1e-12, atol=1e-14)
    stacked = torch.cat([path.layers[0].mT, path.layers[1]], dim=-2)
    gram = stacked @ stacked.mT
    u, s, vh = torch.linalg.svd(corr, full_matrices=False)
    best = (u[..., :n_hidden] * s[..., None, :n_hidden]) @ vh[..., :n_hidden, :]
    return {
        "error": (flow.gram(args["times"]) - gram).abs().amax((0, -2, -1)) / gram.abs().amax((0, -2, -1)),
        "kept": (matrices.fit_balance(*flow.factors(args["times"][-1])).balance - flow.balance).abs(),
        "limit_error": (flow.limit() - best).abs().amax((-2, -1)),
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """One row per case, and whether Theorem 3.4.1 as printed allows it."""
    table = []
    for cell, payload in results:
        n_in, n_hidden, n_out = cell.args["shape"]
        for k, balance in enumerate(cell.args["balances"]):
            sizes_fit = min(n_in, n_out) <= n_hidden <= max(n_in, n_out)
            sign_fits = n_in == n_out or balance * (n_out - n_in) > 0
            allowed = balance == 0 or (sizes_fit and sign_fits)
            row = {name: float(payload[name][k]) for name in ("error", "kept", "limit_error")}
            table.append({"sizes": f"{n_in}-{n_hidden}-{n_out}", "balance": balance, "printed_allows": allowed, **row})
    return Summary(tables={"all sizes": table})


def judge_exact(summary: Summary) -> Judgement:
    """The exact solution holds for all sizes."""
    table = summary.table("all sizes")
    rows = [Row(f"{row['sizes']}, balance {number(row['balance'])}", row["error"], 0.0, 1e-9) for row in table]
    rows += [Row(f"balance kept, {row['sizes']}, {number(row['balance'])}", row["kept"], 0.0, 1e-10) for row in table]
    return judge(
        f"{len(table)} cases, largest relative error {small(max(row['error'] for row in table))} (the integrator's)",
        rows,
    )


def judge_limit(summary: Summary) -> Judgement:
    """The network converges to the best approximation of its rank (at balance zero a saddle may be in the way)."""
    rows = [
        Row(f"limit, {row['sizes']}, balance {number(row['balance'])}", row["limit_error"], 0.0, 1e-9)
        for row in summary.table("all sizes")
        if abs(row["balance"]) >= 1
    ]
    worst = max((float(row.measured) for row in rows), default=0.0)
    return judge(f"{len(rows)} limits, at most {small(worst)} from the leading part of the task", rows)


def judge_sizes(summary: Summary) -> Judgement:
    """Theorem 3.4.1: balanced weights exist for sizes and signs it excludes."""
    table = summary.table("all sizes")
    rows = [
        Row(
            f"exists and follows the exact solution: {row['sizes']}, balance {number(row['balance'])}",
            row["error"],
            0.0,
            1e-9,
        )
        for row in table
    ]
    stated = [
        Row(
            f"allowed by the printed conditions: {row['sizes']}, balance {number(row['balance'])}",
            "exists",
            "exists" if row["printed_allows"] else "does not exist",
            agrees=row["printed_allows"],
        )
        for row in table
    ]
    excluded = sum(not row.agrees for row in stated)
    truth = "balanced weights exist and learn as the exact solution says in every one of these cases"
    evidence = f"{excluded} of {len(table)} existing cases are excluded by the printed conditions"
    return judge(evidence, stated, instead(truth, rows))


_ALL = (
    crossed("all sizes", ("sizes", "balance")),
    groups("all sizes", "sizes", "4-2-4", "2-2-3", "3-2-2", "3-1-4", "2-6-3", "5-3-2", "2-3-5", "4-4-4"),
    groups("all sizes", "balance", 0.0, 1.0, -1.0),
)
"""Bottlenecks, wide layers and square networks, and balances of both signs."""

EXPERIMENT = Experiment(
    name="linear-unequal-sizes",
    title="Exact learning dynamics for all sizes",
    document="separatrix",
    place="all sizes",
    version=1,
    scales={
        "smoke": Settings(balances=(0.0, 1.0, -1.0), times=(0.1, 2.0)),
        "laptop": Settings(seeds=(0, 1, 2)),
        "paper": Settings(seeds=tuple(range(20))),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-all-sizes",
            statement="the learning of every balanced network is known in closed form, whatever its sizes",
            measures="relative error of the Gram matrix against integration",
            test="1e-9",
            needs=_ALL,
            judge=judge_exact,
            counterfeit=with_column("all sizes", "error", 0.1),
        ),
        Claim(
            id="separatrix-limit",
            statement="training ends at the best approximation of rank n_hidden",
            measures="distance of the limit",
            test="1e-9",
            needs=_ALL,
            judge=judge_limit,
            counterfeit=with_column("all sizes", "limit_error", 0.1),
        ),
        Claim(
            id="anguita2024-thm3.4.1",
            document="anguita2024",
            place="Theorem 3.4.1",
            statement="balanced weights exist only for the sizes and signs that the theorem allows",
            measures="existence of balanced weights",
            test="each case is built and followed",
            judge=judge_sizes,
            counterfeit=with_column("all sizes", "error", 0.1),
            genuine=with_column("all sizes", "printed_allows", True),
            erratum="anguita2024-3.4.1",
        ),
    ),
)
