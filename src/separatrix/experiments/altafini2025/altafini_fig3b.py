"""altafini2025, Figure 3(b): a larger system, sampled sign vectors beside the exact count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge, with_fields

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Example 3, second part."""

    dim: int = 10  # Example 3
    n_tokens: int = 100  # Example 3
    n_instances: int = 100
    n_samples: int = 100  # sign vectors per eigenvector, Example 3


class Measured(Summary):
    """Sampled counts and exact shares by instance and eigenvector; ``worst`` is in standard errors."""

    dim: int
    n_tokens: int
    n_samples: int
    sampled: list[list[int]]
    exact: list[list[float]]
    fewest: int
    worst: float


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
    return {"sampled": sampled, "exact": [[count / 2**n for count in row] for row in exact], "fewest": _fewest(exact)}


def _fewest(exact: list[list[int]]) -> int:
    return min(sum(row) for row in exact)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Sampled counts and exact shares of all instances, and how far they are apart in standard errors."""
    import math

    args = results[0][0].args
    sampled = [row for _, payload in results for row in payload["sampled"].tolist()]
    exact = [row for _, payload in results for row in payload["exact"]]
    worst = 0.0
    for counts, shares in zip(sampled, exact, strict=True):
        for count, share in zip(counts, shares, strict=True):
            error = math.sqrt(max(share * (1 - share), 1e-3) / args["n_samples"])
            worst = max(worst, abs(count / args["n_samples"] - share) / error)
    return Measured(
        dim=args["dim"],
        n_tokens=args["n_tokens"],
        n_samples=args["n_samples"],
        sampled=sampled,
        exact=exact,
        fewest=min(payload["fewest"] for _, payload in results),
        worst=worst,
        tables={
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
            ]
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
    return judge(f"up to {max(totals)} of {points} sampled points are stable, all on v_1 or v_{summary.dim}", rows)


def judge_sampling(summary: Measured) -> Judgement:
    """Decide ``separatrix-fig3b-exact``."""
    rows = [
        Row("largest distance of a sampled from an exact share, in standard errors", summary.worst, 0.0, 5.5),
        Row("fewest stable points of an instance, exact", summary.fewest, 2, 0),
    ]
    return judge(f"sampled and exact shares differ by at most {summary.worst:.1f} standard errors", rows)


EXPERIMENT = Experiment(
    name="altafini-fig3b",
    title="Stable bipartite points of a larger system: sampled, and exact",
    document="altafini2025",
    place="Figure 3(b), Example 3",
    version=1,
    scales={"smoke": Settings(), "laptop": Settings(seeds=(0, 1, 2)), "paper": Settings()},
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
            id="separatrix-fig3b-exact",
            document="separatrix",
            place="explanation/attention-equilibria",
            statement="The exact share of stable points is what sampling estimates; at least two points are stable.",
            measures="distance of sampled and exact shares",
            test="at most 5.5 standard errors over 1000 comparisons",
            judge=judge_sampling,
            counterfeit=with_fields(worst=20.0),
        ),
    ),
    draw=draw,
)
