"""altafini2025, Theorem 1: the multiagent Oja flow reaches consensus on v1 almost always, unless n = 2 (E5)."""

from __future__ import annotations

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
    condition,
    judge,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """V = diag(1, -1, -2), where lambda_2 < 0: the case in which two tokens can stay opposite."""

    eigenvalues: tuple[float, ...] = (1.0, -1.0, -2.0)
    token_counts: tuple[int, ...] = (2, 3, 4, 6)
    n_starts: int = 1000
    t_max: float = 300.0


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per number of tokens."""
    for seed in settings.seeds:
        for n_tokens in settings.token_counts:
            yield {
                "n_tokens": n_tokens,
                "eigenvalues": settings.eigenvalues,
                "n_starts": settings.n_starts,
                "t_max": settings.t_max,
                "seed": seed,
            }


def run(cell: Cell) -> Payload:
    """Follow uniform starts and count consensus on v1 and antipodal pairs.

    An antipodal pair is one point of a continuum of equilibria, so that trajectories stop at a small speed instead of
    being finished by Newton's method.
    """
    import torch

    from separatrix import dynamics

    args = cell.args
    flow = dynamics.OjaFlow(torch.diag(torch.tensor(args["eigenvalues"], dtype=torch.float64)))
    generator = spawn(cell.seed, "altafini-theorem1", args["n_tokens"])
    starts = dynamics.random_tokens(args["n_tokens"], flow.dim, args["n_starts"], generator=generator)
    ends = dynamics.integrate(flow, starts, "default", t_max=args["t_max"], tol=1e-9, finishing=False).final
    mean = torch.linalg.vector_norm(ends.mean(dim=-2), dim=-1)
    aligned = (ends[..., 0].abs() > 1 - 1e-6).all(dim=-1) & (mean > 1 - 1e-6)
    return {"consensus": int(aligned.sum()), "opposite": int((mean < 1e-4).sum())}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Shares by number of tokens, with intervals."""
    from separatrix import dynamics

    rows = []
    for n_tokens in sorted({cell.args["n_tokens"] for cell, _ in results}):
        of_size = [(cell, payload) for cell, payload in results if cell.args["n_tokens"] == n_tokens]
        starts = sum(cell.args["n_starts"] for cell, _ in of_size)
        row: dict[str, Any] = {"tokens": n_tokens, "starts": starts}
        for kind in ("consensus", "opposite"):
            count = sum(payload[kind] for _, payload in of_size)
            low, high = dynamics.wilson_interval(count, starts)
            row |= {kind: count / starts, f"{kind} low": low, f"{kind} high": high}
        rows.append(row)
    return Summary(tables={"Ends of the Oja flow, V = diag(1, -1, -2)": rows})


def draw(summary: Summary) -> Mapping[str, Figure]:
    """Share of antipodal ends against the number of tokens."""
    from separatrix.report.figures.attention import census_bars

    (rows,) = summary.tables.values()
    bars = [
        {
            "family": f"n = {row['tokens']}",
            "instances": row["consensus"],
            "instances low": row["consensus low"],
            "instances high": row["consensus high"],
            "share": row["opposite"],
            "standard error": (row["opposite high"] - row["opposite low"]) / 3.92,
        }
        for row in rows
    ]
    labels = ("consensus on v1", "antipodal pair")
    return {"ends": census_bars(bars, 1, "Ends of the Oja flow, V = diag(1, −1, −2)", labels, "number of tokens")}


def judge_consensus(summary: Summary) -> Judgement:
    """Decide ``altafini2025-theorem1``."""
    (rows,) = summary.tables.values()
    many = [
        Row(f"share in consensus, n = {row['tokens']}", row["consensus"], 1.0, 0.005)
        for row in rows
        if row["tokens"] > 2
    ]
    two = [Row("share in consensus, n = 2", row["consensus"], 1.0, 0.005) for row in rows if row["tokens"] == 2]
    share = next((row["opposite"] for row in rows if row["tokens"] == 2), 0.0)
    least = min((row["consensus"] for row in rows if row["tokens"] > 2), default=0.0)
    evidence = (
        f"with two tokens {share:.3f} of the starts end antipodal; with three or more at least {least:.4f} of them "
        "reach consensus"
    )
    return judge(evidence, many + two, condition("with three tokens or more", many))


def judge_fraction(summary: Summary) -> Judgement:
    """Decide ``separatrix-oja-pair``."""
    (rows,) = summary.tables.values()
    pair = [row for row in rows if row["tokens"] == 2]
    found = [Row("share of antipodal ends, n = 2", row["opposite"], 0.135, 0.035) for row in pair]
    shares = ", ".join(f"{row['opposite']:.3f} of {row['starts']}" for row in pair)
    return judge(f"{shares} uniform starts of two tokens end antipodal", found)


EXPERIMENT = Experiment(
    name="altafini-theorem1",
    title="Consensus of the multiagent Oja flow, and the pair that refuses it",
    document="altafini2025",
    place="Theorem 1",
    version=1,
    scales={
        "smoke": Settings(n_starts=300, token_counts=(2, 3)),
        "laptop": Settings(n_starts=2000),
        "paper": Settings(n_starts=3000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="altafini2025-theorem1",
            statement="Almost all starts of the multiagent Oja flow end in consensus on v1.",
            measures="share of uniform starts that end in consensus",
            test="at least 99.5% for n >= 3; n = 2 with lambda_2 < 0 is the exception",
            judge=judge_consensus,
            counterfeit=with_column("Ends of the Oja flow, V = diag(1, -1, -2)", "consensus", 0.9),
            erratum="altafini2025-E5",
        ),
        Claim(
            id="separatrix-oja-pair",
            document="separatrix",
            place="Theorem 1, two tokens",
            statement="For V = diag(1, -1, -2) about 13% of uniform pairs end antipodal.",
            measures="share of uniform starts of two tokens that end antipodal",
            test="between 0.10 and 0.17",
            judge=judge_fraction,
            counterfeit=with_column("Ends of the Oja flow, V = diag(1, -1, -2)", "opposite", 0.3),
        ),
    ),
    draw=draw,
)
