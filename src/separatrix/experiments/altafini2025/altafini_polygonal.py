"""altafini2025, Lemma 11: are all polygonal equilibria unstable? A stable pair, and what random searches find (E14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.core.random import spawn
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
    instead,
    judge,
    with_fields,
)


class Settings(Params):
    """Searches from random starts, for invertible and for rank-two value matrices, and the pair of E14."""

    dim: int = 3
    token_counts: tuple[int, ...] = (2, 3, 4)
    n_draws: int = 12
    n_starts: int = 8
    n_pairs: int = 200


class Measured(Summary):
    """Share of pairs that end antipodal, and the largest real part there."""

    opposite: float
    abscissa: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """A search per number of tokens and rank, and the attracting pair."""
    common = {"dim": settings.dim, "n_draws": settings.n_draws, "n_starts": settings.n_starts}
    for seed in settings.seeds:
        for n_tokens in settings.token_counts:
            for rank in (settings.dim, 2):
                yield {"part": "search", "n_tokens": n_tokens, "rank": rank, **common, "seed": seed}
        yield {"part": "pair", "n_pairs": settings.n_pairs, "seed": seed}


def run(cell: Cell) -> Payload:
    """Search for states without pull, or follow pairs under a skew coupling."""
    return _search(cell) if cell.args["part"] == "search" else _pair(cell)


def _search(cell: Cell) -> Payload:
    import torch

    from separatrix import dynamics

    args = cell.args
    generator = spawn(cell.seed, "altafini-polygonal", args["n_tokens"], args["rank"])
    found, antipodal, abscissas = 0, 0, []
    for _ in range(args["n_draws"]):
        coupling, g = (
            torch.randn(args["dim"], args["dim"], generator=generator, dtype=torch.float64) for _ in range(2)
        )
        values, vectors = torch.linalg.eigh((g + g.mT) / 2)
        values[1 : 1 + args["dim"] - args["rank"]] = 0  # the largest and the smallest eigenvalue stay
        flow = dynamics.AttentionFlow.from_coupling(coupling, vectors @ torch.diag(values) @ vectors.mT)
        starts = dynamics.random_tokens(args["n_tokens"], args["dim"], args["n_starts"], generator=generator)
        search = dynamics.find_polygonal(flow, starts, max_steps=150)
        found += bool(search.found.any())
        antipodal += bool(search.antipodal[search.found].all()) and bool(search.found.any())
        abscissas += (search.abscissa[search.found] / flow.rate).tolist()
    return {"draws": args["n_draws"], "found": found, "antipodal": antipodal, "abscissas": abscissas}


def _pair(cell: Cell) -> Payload:
    import torch

    from separatrix import dynamics

    skew = torch.tensor([[0.0, 1.0, -0.5], [-1.0, 0.0, 0.7], [0.5, -0.7, 0.0]], dtype=torch.float64)
    value = torch.diag(torch.tensor([1.0, -1.0, -2.0], dtype=torch.float64))
    flow = dynamics.AttentionFlow.from_coupling(skew, value)
    starts = dynamics.random_tokens(
        2, 3, cell.args["n_pairs"], generator=spawn(cell.seed, "altafini-polygonal", "pair")
    )
    run = dynamics.integrate(flow, starts, t_max=300.0, tol=1e-9, finishing=False)
    opposite = torch.linalg.vector_norm(run.final.sum(dim=-2), dim=-1) < 1e-4
    real = torch.linalg.eigvals(flow.jacobian(run.final[opposite])).real.amax(dim=-1)
    return {
        "pairs": cell.args["n_pairs"],
        "opposite": int(opposite.sum()),
        "abscissa": float(real.max()) if len(real) else 0.0,
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """How often polygonal states are found, their structure and stability."""
    rows = []
    for key in sorted({(c.args["rank"], c.args["n_tokens"]) for c, _ in results if c.args["part"] == "search"}):
        parts = [p for c, p in results if c.args["part"] == "search" and (c.args["rank"], c.args["n_tokens"]) == key]
        abscissas = [a for part in parts for a in part["abscissas"]]
        rows.append(
            {
                "rank of V": key[0],
                "tokens": key[1],
                "draws": sum(part["draws"] for part in parts),
                "draws with a polygonal state": sum(part["found"] for part in parts),
                "all antipodal": sum(part["antipodal"] for part in parts),
                "least unstable": min(abscissas, default=0.0),
                "most unstable": max(abscissas, default=0.0),
            }
        )
    pairs = [payload for cell, payload in results if cell.args["part"] == "pair"]
    total, opposite = sum(p["pairs"] for p in pairs), sum(p["opposite"] for p in pairs)
    table = [
        {"starts": total, "antipodal ends": opposite, "largest real part there": max(p["abscissa"] for p in pairs)}
    ]
    return Measured(
        opposite=opposite / total,
        abscissa=max(p["abscissa"] for p in pairs),
        tables={"Searches": rows, "Pairs under a skew coupling, V = diag(1, -1, -2)": table},
    )


def judge_unstable(summary: Measured) -> Judgement:
    """Decide ``altafini2025-lemma11-polygonal``."""
    searched = [row for row in summary.table("Searches") if row["rank of V"] > 2 and row["tokens"] > 2]
    rows = [
        Row(
            f"draws with polygonal states that are not antipodal pairs, n = {row['tokens']}",
            float(row["draws with a polygonal state"] - row["all antipodal"]),
            0.0,
        )
        for row in searched
    ]
    exception = [Row("share of uniform pairs that end polygonal", summary.opposite, 0.0, 0.02)]
    evidence = (
        f"{summary.opposite:.3f} of uniform pairs under a skew coupling end in a polygonal pair "
        f"(largest real part {small(summary.abscissa)})"
    )
    truth = "with an invertible V and more than two tokens the polygonal states found are antipodal pairs"
    return judge(evidence, exception, instead(truth, rows))


EXPERIMENT = Experiment(
    name="altafini-polygonal",
    title="Polygonal equilibria: their structure and a pair that attracts",
    document="altafini2025",
    place="Lemma 11",
    version=1,
    scales={
        "smoke": Settings(n_draws=3, n_starts=4, n_pairs=100),
        "laptop": Settings(n_draws=12, n_pairs=400),
        "paper": Settings(n_draws=30, token_counts=(2, 3, 4, 5, 6), n_pairs=1000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="altafini2025-lemma11-polygonal",
            statement="All polygonal equilibria are unstable.",
            measures="polygonal states found by search, and the share of pairs that end in one",
            test="invertible V: only antipodal pairs; two tokens under a skew coupling: none attract",
            judge=judge_unstable,
            counterfeit=with_fields(opposite=0.3),
            genuine=with_fields(opposite=0.0),
            erratum="altafini2025-E14",
        ),
    ),
)
