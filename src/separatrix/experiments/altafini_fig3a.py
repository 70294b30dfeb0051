"""altafini2025, Figure 3(a): stable consensus and bipartite consensus points, counted exactly; and which ensemble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab.cell import Cell
from separatrix.lab.claim import Claim, Judgement, Row, judge
from separatrix.lab.experiment import Experiment, Params, Payload, Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Example 3, first part."""

    dim: int = 4  # Example 3
    n_tokens: int = 10  # Example 3
    n_instances: int = 100  # Example 3
    n_enumerated: int = 100  # instances whose 4096 points are enumerated one by one
    n_per_ensemble: int = 1000
    ensembles: tuple[tuple[str, int, int], ...] = (
        ("gaussian", 3, 10),
        ("gaussian", 4, 10),
        ("gaussian", 10, 100),
        ("gaussian", 20, 100),
        ("scaled", 10, 100),
        ("scaled", 20, 100),
        ("quarter", 4, 10),
        ("quarter", 20, 100),
        ("uniform", 4, 10),
        ("uniform", 20, 100),
        ("positive", 4, 10),
    )


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell of counted instances per seed, and one per ensemble."""
    for seed in settings.seeds:
        yield {
            "part": "count",
            "seed": seed,
            "dim": settings.dim,
            "n_tokens": settings.n_tokens,
            "n_instances": settings.n_instances,
            "n_enumerated": settings.n_enumerated,
        }
        for ensemble, dim, n_tokens in settings.ensembles:
            yield {
                "part": "ensemble",
                "seed": seed,
                "ensemble": ensemble,
                "dim": dim,
                "n_tokens": n_tokens,
                "n_instances": settings.n_per_ensemble,
            }


def run(cell: Cell) -> Payload:
    """Counts of every instance, or the shares of one ensemble."""
    return _counts(cell) if cell.args["part"] == "count" else _shares(cell)


def _counts(cell: Cell) -> Payload:
    from separatrix import matrices, theory

    dim, n_tokens = cell.args["dim"], cell.args["n_tokens"]
    drawn = matrices.attention_instance(
        dim, generator=spawn(cell.seed, "altafini-fig3a", "instances"), batch=(cell.args["n_instances"],)
    )
    counts, mismatches = [], 0
    for index, (coupling, value) in enumerate(zip(drawn.coupling, drawn.value, strict=True)):
        found = theory.count_stable(coupling, value, n_tokens).per_eigenvector
        counts.append(found)
        if index < cell.args["n_enumerated"]:
            enumerated = theory.count_stable(coupling, value, n_tokens, exhaustive=True)
            mismatches += enumerated.per_eigenvector != found
    import torch

    eigenvalues = torch.linalg.eigvalsh(drawn.value).flip(-1)
    return {
        "counts": counts,
        "eigenvalues": eigenvalues,
        "mismatches": mismatches,
        "enumerated": min(cell.args["n_enumerated"], len(counts)),
    }


def _shares(cell: Cell) -> Payload:
    from separatrix import matrices, theory

    given = cell.args
    drawn = matrices.attention_instance(
        given["dim"],
        generator=spawn(cell.seed, "altafini-fig3a", given["ensemble"], given["dim"]),
        ensemble=given["ensemble"],
        batch=(given["n_instances"],),
    )
    stable = theory.stable_windows(drawn.coupling, drawn.value, given["n_tokens"]).any_bipartite.double()
    return {
        "some": float(stable.amax(-1).mean()),
        "on v_1": float(stable[:, 0].mean()),
        "on v_d": float(stable[:, 1].mean()),
        "both": float(stable.amin(-1).mean()),
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Counts of all instances and a table of ensembles."""
    counted = [(cell, payload) for cell, payload in results if cell.args["part"] == "count"]
    counts = [row for _, payload in counted for row in payload["counts"]]
    spectra = [row for _, payload in counted for row in payload["eigenvalues"].tolist()]
    first = counted[0][0].args
    ensembles = [
        {"ensemble": cell.args["ensemble"], "d": cell.args["dim"], "n": cell.args["n_tokens"], **payload}
        for cell, payload in results
        if cell.args["part"] == "ensemble"
    ]
    return {
        "dim": first["dim"],
        "n_tokens": first["n_tokens"],
        "counts": counts,
        "eigenvalues": spectra,
        "mismatches": sum(payload["mismatches"] for _, payload in counted),
        "enumerated": sum(payload["enumerated"] for _, payload in counted),
        "tables": {
            "Share of instances with a stable bipartite consensus, by ensemble": ensembles,
            "Stable points per instance": [
                {"instance": index, **{f"v_{k + 1}": count for k, count in enumerate(row)}, "total": sum(row)}
                for index, row in enumerate(counts)
            ],
        },
    }


def draw(summary: Summary) -> Mapping[str, Figure]:
    """Figure 3(a) with exact counts."""
    from separatrix.report.attention import stable_counts

    points = summary["dim"] * 2 ** summary["n_tokens"]
    shares = {f"on $v_{{{k + 1}}}$": [row[k] / points for row in summary["counts"]] for k in (0, summary["dim"] - 1)}
    title = f"Stable among {points} consensus and bipartite points, d = {summary['dim']}, n = {summary['n_tokens']}"
    return {"counts": stable_counts(shares, ylabel="stable share", title=title)}


def _judge_half(summary: Summary) -> Judgement:
    points = summary["dim"] * 2 ** summary["n_tokens"]
    totals = [sum(row) for row in summary["counts"]]
    rows = [
        Row("largest stable share", max(totals) / points, 0.5, 0.1),
        Row("fewest stable points", min(totals), 2, 0),
    ]
    return judge(f"between {min(totals)} and {max(totals)} of {points} points are stable", rows)


def _judge_ends(summary: Summary) -> Judgement:
    middle = sum(sum(row[1:-1]) for row in summary["counts"])
    last = [lam for row, lam in zip(summary["counts"], summary["eigenvalues"], strict=True) if row[-1] > 0]
    exceptions = sum(abs(lam[-1]) <= lam[0] for lam in last)
    both = sum(row[0] > 2 and row[-1] > 0 for row in summary["counts"])
    rows = [
        Row("stable points on eigenvectors between the first and the last", middle, 0),
        Row("instances stable on the last with |lambda_d| <= lambda_1", exceptions, 0),
        Row("instances stable on the last eigenvector", len(last), "some", agrees=len(last) > 0),
        Row("instances with bipartite points on both", both, "some", agrees=both > 0),
    ]
    return judge(f"{len(last)} instances are stable on v_d, {both} on both ends, none elsewhere", rows)


def _judge_exact(summary: Summary) -> Judgement:
    rows = [Row("instances where enumeration and closed form differ", summary["mismatches"], 0)]
    return judge(f"{summary['enumerated']} instances enumerated point by point", rows)


def _judge_scale(summary: Summary) -> Judgement:
    table = summary["tables"]["Share of instances with a stable bipartite consensus, by ensemble"]
    shares = {(row["ensemble"], row["d"]): row["some"] for row in table}
    if ("gaussian", 20) not in shares or ("scaled", 20) not in shares:
        return judge("the two ensembles were not drawn", [])
    rows = [
        Row("share with unit-variance entries, d = 20", shares["gaussian", 20], 0.5, 0.1),
        Row("share with entries of variance 1/d, d = 20", shares["scaled", 20], 0.0, 0.03),
    ]
    return judge(f"{shares['gaussian', 20]:.3f} against {shares['scaled', 20]:.3f} of the instances", rows)


EXPERIMENT = Experiment(
    name="altafini-fig3a",
    title="Exact number of stable consensus and bipartite points, four dimensions, ten tokens",
    document="altafini2025",
    place="Figure 3(a), Example 3",
    version=1,
    scales={
        "smoke": Settings(n_enumerated=2, n_per_ensemble=200),
        "laptop": Settings(),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="altafini2025-fig3a-half",
            document="altafini2025",
            place="Example 3, Figure 3(a)",
            statement="In some instances nearly half of the consensus and bipartite points are stable, in others two.",
            measures="stable points among d 2^n, per instance",
            test="largest share within 0.1 of one half; fewest equal to two",
            judge=_judge_half,
        ),
        Claim(
            id="altafini2025-fig3a-ends",
            document="altafini2025",
            place="Example 3",
            statement="Stable bipartite points lie on the first or the last eigenvector, on the last only if its "
            "eigenvalue is larger in modulus, and both can coexist.",
            measures="stable points per eigenvector",
            test="no exception; both kinds seen",
            judge=_judge_ends,
        ),
        Claim(
            id="separatrix-exact-count",
            document="separatrix",
            place="explanation/attention-equilibria",
            statement="The closed-form window counts exactly the points that enumeration of all patterns finds stable.",
            measures="instances with different integers",
            test="zero",
            judge=_judge_exact,
        ),
        Claim(
            id="separatrix-attention-ensemble",
            document="separatrix",
            place="explanation/attention-equilibria",
            statement="Stable bipartite states are common for weights of unit variance and vanish for variance 1/d.",
            measures="share of instances with a stable bipartite consensus",
            test="0.5 +- 0.1 against at most 0.03 at d = 20",
            judge=_judge_scale,
        ),
    ),
    draw=draw,
)
