"""altafini2025, Figure 3(b): a larger system, sampled sign vectors beside the exact count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    with_column,
    with_fields,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Example 3, second part."""

    dim: int = 10  # Example 3
    n_tokens: int = 100  # Example 3
    n_instances: int = 100
    n_samples: int = 100  # sign vectors per eigenvector, Example 3
    n_tuned: int = 30  # smaller instances whose coupling is scaled so that part of the splits is stable
    tuned_dim: int = 4
    tuned_tokens: int = 24
    tuned_samples: int = 4000


class Measured(Summary):
    """Sampled counts and exact shares by instance and eigenvector, and rows of the tuned instances."""

    dim: int
    n_tokens: int
    n_samples: int
    sampled: list[list[int]]
    exact: list[list[float]]
    fewest: int
    tuned: list[dict[str, float]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per seed."""
    for seed in settings.seeds:
        yield {"seed": seed, **settings.model_dump(exclude={"seeds"})}


def run(cell: Cell) -> Payload:
    """Sampled and exact stable shares of every instance, per eigenvector."""
    import torch

    from separatrix import matrices, theory

    dim, n, samples = cell.args["dim"], cell.args["n_tokens"], cell.args["n_samples"]
    drawn = matrices.attention_instance(
        dim, generator=spawn(cell.seed, "altafini-fig3b", "instances"), batch=(cell.args["n_instances"],)
    )
    draws = spawn(cell.seed, "altafini-fig3b", "signs")
    n_plus = torch.stack([(torch.rand(dim, samples, n, generator=draws) < 0.5).sum(-1) for _ in drawn.value])
    eigenvalues, vectors = torch.linalg.eigh(drawn.value)
    eigenvalues, vectors = eigenvalues.flip(-1), vectors.flip(-1)
    strength = torch.einsum("iak,iab,ibk->ik", vectors, drawn.coupling, vectors)
    sampled = torch.stack(
        [
            theory.is_stable(eigenvalues[:, None, :], k, strength[:, k, None], n_plus[:, k], n - n_plus[:, k]).sum(-1)
            for k in range(dim)
        ],
        dim=-1,
    )
    pairs = zip(drawn.coupling, drawn.value, strict=True)
    exact = [theory.count_stable(coupling, value, n).per_eigenvector or [] for coupling, value in pairs]
    return {
        "sampled": sampled,
        "exact": [[count / 2**n for count in row] for row in exact],
        "fewest": min(sum(row) for row in exact),
        "tuned": [_tuned(cell, index) for index in range(cell.args["n_tuned"])],
    }


def _tuned(cell: Cell, index: int) -> dict[str, float]:
    """The stable share on v_1 of an instance near its window's edge: exact, by dense Jacobians, and sampled."""
    import torch

    from separatrix import dynamics, matrices, theory

    n, generator = cell.args["tuned_tokens"], spawn(cell.seed, "altafini-fig3b", "tuned", index)
    drawn = matrices.attention_instance(cell.args["tuned_dim"], generator=generator)
    vector = torch.linalg.eigh(drawn.value)[1][:, -1]
    coupling = drawn.coupling * torch.sign(vector @ drawn.coupling @ vector)  # a split on v_1 needs v' M v > 0
    goal = 0.1 + 0.8 * float(torch.rand(1, generator=generator))
    shares = []
    for factor in torch.logspace(-2, 1, 60, dtype=torch.float64):
        counts = theory.count_stable(factor * coupling, drawn.value, n).per_eigenvector or [0]
        shares.append((abs(counts[0] / 2**n - goal), float(factor), counts[0] / 2**n))
    _, factor, exact = min(shares)
    flow = dynamics.AttentionFlow.from_coupling(factor * coupling, drawn.value)
    signs = torch.ones(n + 1, n, dtype=torch.float64).tril(-1) * 2 - 1  # n_1 = 0 ... n tokens at +v_1
    stable = torch.linalg.eigvals(flow.jacobian(signs[..., None] * vector)).real.amax(-1) < 0
    dense = sum(math.comb(n, n1) for n1 in range(n + 1) if bool(stable[n1])) / 2**n
    n_plus = (torch.rand(cell.args["tuned_samples"], n, generator=generator) < 0.5).sum(-1)
    return {"exact": exact, "dense": dense, "sampled": float(stable[n_plus].double().mean())}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Sampled counts and exact shares of all instances, and how far they are apart in standard errors."""
    args = results[0][0].args
    sampled = [row for _, payload in results for row in payload["sampled"].tolist()]
    exact = [row for _, payload in results for row in payload["exact"]]
    tuned = []
    for row in (row for _, payload in results for row in payload["tuned"]):
        error = math.sqrt(max(row["exact"] * (1 - row["exact"]), 1e-3) / args["tuned_samples"])
        tuned.append({**row, "standard errors": abs(row["sampled"] - row["exact"]) / error})
    return Measured(
        dim=args["dim"],
        n_tokens=args["n_tokens"],
        n_samples=args["n_samples"],
        sampled=sampled,
        exact=exact,
        fewest=min(payload["fewest"] for _, payload in results),
        tuned=tuned,
        tables={
            "Shares near the edge of the window": tuned,
            "Stable points per instance": [
                {
                    "instance": index,
                    "sampled on v_1": counts[0],
                    "sampled on v_d": counts[-1],
                    "sampled elsewhere": sum(counts[1:-1]),
                    "exact share of v_1": shares[0],
                    "exact share of v_d": shares[-1],
                }
                for index, (counts, shares) in enumerate(zip(sampled, exact, strict=True))
            ],
        },
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Figure 3(b): exact shares as bars, the sampled total as circles."""
    from separatrix.report.figures.attention import stable_counts

    last = summary.dim - 1
    exact = {f"on $v_{{{k + 1}}}$": [row[k] / summary.dim for row in summary.exact] for k in (0, last)}
    points = summary.dim * summary.n_samples
    sampled = {"all": [sum(row) / points for row in summary.sampled]}
    title = f"Stable share, d = {summary.dim}, n = {summary.n_tokens}: exact and {points} sampled points"
    return {"counts": stable_counts(exact, ylabel="stable share", title=title, sampled=sampled)}


def judge_range(summary: Measured) -> Judgement:
    """Decide ``altafini2025-fig3b-range``."""
    totals = [sum(row) for row in summary.sampled]
    points = summary.dim * summary.n_samples
    on_first = sum(row[0] for row in summary.sampled)
    on_last = sum(row[-1] for row in summary.sampled)
    elsewhere = sum(sum(row[1:-1]) for row in summary.sampled)
    rows = [
        Row("largest number of stable points sampled", max(totals), 0.2 * points, 0.02 * points),
        Row("stable points sampled on other eigenvectors", elsewhere, 0),
        Row("v_1 dominates v_d", f"{on_first} against {on_last}", "more on v_1", agrees=on_first > on_last > 0),
    ]
    found = f"up to {max(totals)} of {points} sampled points are stable; {elsewhere} lie off v_1 and v_{summary.dim}"
    return judge(found, rows)


def judge_lower(summary: Measured) -> Judgement:
    """Decide ``altafini2025-fig3b-lower``."""
    totals = [sum(row) for row in summary.sampled]
    none = sum(total == 0 for total in totals)
    rows = [Row("smallest number of stable points sampled", min(totals), "at least 1", agrees=min(totals) >= 1)]
    truth = instead(
        "every instance has at least two stable points, consensus on v_1 and its antipode, which random signs miss",
        [Row("fewest stable points of an instance, exact", summary.fewest, "at least 2", agrees=summary.fewest >= 2)],
    )
    return judge(f"{none} of {len(totals)} instances have no stable point among those sampled", rows, truth)


def judge_sampling(summary: Measured) -> Judgement:
    """Decide ``separatrix-fig3b-exact``."""
    open_ones = [row for row in summary.tuned if 0.05 < row["exact"] < 0.95]
    worst = max((row["standard errors"] for row in open_ones), default=math.nan)
    gap = max((abs(row["dense"] - row["exact"]) for row in open_ones), default=math.nan)
    rows = [
        Row("largest distance of a sampled from an exact share, in standard errors", worst, 0.0, 4.5),
        Row("largest distance of an exact share from that of dense Jacobians", gap, 0.0, 1e-12),
    ]
    return judge(
        f"in {len(open_ones)} instances with shares between 0.05 and 0.95 sampled and exact shares differ by at most "
        f"{worst:.1f} standard errors, exact and dense ones by {small(gap)}",
        rows,
    )


EXPERIMENT = Experiment(
    name="altafini-fig3b",
    title="Stable bipartite points of a larger system: sampled, and exact",
    document="altafini2025",
    place="Figure 3(b), Example 3",
    version=2,
    scales={"smoke": Settings(n_tuned=4, tuned_tokens=10), "laptop": Settings(seeds=(0, 1, 2)), "paper": Settings()},
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="altafini2025-fig3b-range",
            place="Example 3, Figure 3(b)",
            statement="Up to 200 of 1000 sampled points are stable, on v_1 most often, then on v_10, never elsewhere.",
            measures="stable points among the sampled ones, per instance",
            test="largest within 20 of 200, none elsewhere, more on v_1 than on v_10",
            judge=judge_range,
            counterfeit=with_fields(sampled=lambda counts: [row[::-1] for row in counts]),
        ),
        Claim(
            id="altafini2025-fig3b-lower",
            place="Example 3, Figure 3(b)",
            statement="Every instance has at least one stable point among 1000 sampled ones.",
            measures="smallest number of stable sampled points of an instance",
            test="at least one",
            judge=judge_lower,
            counterfeit=with_fields(sampled=lambda counts: [[0 for _ in row] for row in counts]),
            genuine=with_fields(sampled=lambda counts: [[1, *row[1:]] for row in counts]),
            erratum="altafini2025-E17",
        ),
        Claim(
            id="separatrix-fig3b-exact",
            document="separatrix",
            place="explanation/attention-equilibria",
            statement="The exact share of stable points is that of dense Jacobians, and what sampling estimates.",
            measures="shares on v_1 of instances near the edge of their window, 24 tokens",
            test="sampled within 4.5 standard errors, dense to 1e-12, wherever the share lies between 0.05 and 0.95",
            judge=judge_sampling,
            counterfeit=with_column("tuned", "standard errors", 20.0),
        ),
    ),
    draw=draw,
)
