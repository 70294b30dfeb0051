"""altafini2025, Figure 3(a): stable consensus and bipartite consensus points, counted exactly; and which ensemble."""

from __future__ import annotations

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
    judge,
    with_column,
    with_fields,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_COLUMNS = {"ensemble": "ensemble", "d": "dim", "n": "n_tokens", "beta": "beta"}
_TABLE = "Share of instances with a stable bipartite consensus, by ensemble"


class Settings(Params):
    """Example 3, first part."""

    dim: int = 4  # Example 3
    n_tokens: int = 10  # Example 3
    n_instances: int = 100  # Example 3
    n_enumerated: int = 100  # instances whose 4096 points are enumerated one by one
    n_per_ensemble: int = 1000
    ensembles: tuple[tuple[str, int, int, float], ...] = (  # ensemble, d, n, beta
        ("gaussian", 3, 10, 1.0),
        ("gaussian", 4, 10, 1.0),
        ("gaussian", 10, 100, 1.0),
        ("gaussian", 20, 100, 1.0),
        ("gaussian", 20, 100, 4.0),
        ("gaussian", 20, 100, 100.0),
        ("scaled", 10, 100, 1.0),
        ("scaled", 20, 100, 1.0),
        ("quarter", 4, 10, 1.0),
        ("quarter", 20, 100, 1.0),
        ("uniform", 4, 10, 1.0),
        ("uniform", 20, 100, 1.0),
        ("positive", 4, 10, 1.0),
    )


class Measured(Summary):
    """Counts and eigenvalues by instance; how many instances were enumerated, and how many of them differ."""

    dim: int
    n_tokens: int
    counts: list[list[int]]
    eigenvalues: list[list[float]]
    mismatches: int
    enumerated: int


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
        for ensemble, dim, n_tokens, beta in settings.ensembles:
            yield {
                "part": "ensemble",
                "seed": seed,
                "ensemble": ensemble,
                "dim": dim,
                "n_tokens": n_tokens,
                "beta": beta,
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
    window = theory.stable_windows(drawn.coupling, drawn.value, given["n_tokens"], given["beta"])
    stable = window.any_bipartite.double()
    return {
        "some": float(stable.amax(-1).mean()),
        "on v_1": float(stable[:, 0].mean()),
        "on v_d": float(stable[:, 1].mean()),
        "both": float(stable.amin(-1).mean()),
        "largest share of d 2^n": float(_shares_inside(window, given["n_tokens"]).sum(-1).max()) / given["dim"],
    }


def _shares_inside(window: Any, n_tokens: int) -> Any:
    """Share of the 2^n sign vectors in each window, consensus and single tokens included."""
    import torch

    weights = torch.tensor([math.comb(n_tokens, i) / 2**n_tokens for i in range(n_tokens + 1)], dtype=torch.float64)
    below = torch.cat([torch.zeros(1, dtype=torch.float64), weights.cumsum(0)])
    inside = (below[(window.highest + 1).clamp(0)] - below[window.lowest]).clamp_min(0)
    return inside + 2 * weights[1] * window.single + 2 * weights[0] * window.consensus


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Counts of all instances and a table of ensembles."""
    counted = [(cell, payload) for cell, payload in results if cell.args["part"] == "count"]
    counts = [row for _, payload in counted for row in payload["counts"]]
    spectra = [row for _, payload in counted for row in payload["eigenvalues"].tolist()]
    first = counted[0][0].args
    ensembles = [
        {name: cell.args[key] for name, key in _COLUMNS.items()} | payload
        for cell, payload in results
        if cell.args["part"] == "ensemble"
    ]
    return Measured(
        dim=first["dim"],
        n_tokens=first["n_tokens"],
        counts=counts,
        eigenvalues=spectra,
        mismatches=sum(payload["mismatches"] for _, payload in counted),
        enumerated=sum(payload["enumerated"] for _, payload in counted),
        tables={
            _TABLE: ensembles,
            "Stable points per instance": [
                {"instance": index, **{f"v_{k + 1}": count for k, count in enumerate(row)}, "total": sum(row)}
                for index, row in enumerate(counts)
            ],
        },
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Figure 3(a) with exact counts."""
    from separatrix.report.figures.attention import stable_counts

    points = summary.dim * 2**summary.n_tokens
    shares = {f"on $v_{{{k + 1}}}$": [row[k] / points for row in summary.counts] for k in (0, summary.dim - 1)}
    title = f"Stable among {points} consensus and bipartite points, d = {summary.dim}, n = {summary.n_tokens}"
    return {"counts": stable_counts(shares, ylabel="stable share", title=title)}


def judge_half(summary: Measured) -> Judgement:
    """Decide ``altafini2025-fig3a-half``."""
    points = summary.dim * 2**summary.n_tokens
    totals = [sum(row) for row in summary.counts]
    rows = [
        Row("largest stable share", max(totals) / points, 0.5, 0.1),
        Row("fewest stable points", min(totals), 2, 0),
    ]
    return judge(f"between {min(totals)} and {max(totals)} of {points} points are stable", rows)


def judge_ends(summary: Measured) -> Judgement:
    """Decide ``altafini2025-fig3a-ends``."""
    middle = sum(sum(row[1:-1]) for row in summary.counts)
    last = [lam for row, lam in zip(summary.counts, summary.eigenvalues, strict=True) if row[-1] > 0]
    known = all(math.isfinite(end) for lam in last for end in (lam[0], lam[-1]))
    exceptions = sum(abs(lam[-1]) <= lam[0] for lam in last) if known else math.nan
    both = sum(row[0] > 2 and row[-1] > 0 for row in summary.counts)
    rows = [
        Row("stable points on eigenvectors between the first and the last", middle, 0),
        Row("instances stable on the last with |lambda_d| <= lambda_1", exceptions, 0),
        Row("instances stable on the last eigenvector", len(last), "some", agrees=len(last) > 0),
        Row("instances with bipartite points on both", both, "some", agrees=both > 0),
    ]
    return judge(f"{len(last)} instances are stable on v_d, {both} on both ends, none elsewhere", rows)


def judge_exact(summary: Measured) -> Judgement:
    """Decide ``separatrix-exact-count``."""
    rows = [Row("instances where enumeration and closed form differ", summary.mismatches, 0)]
    return judge(f"{summary.enumerated} instances enumerated point by point", rows)


def _row(summary: Measured, ensemble: str, beta: float) -> Mapping[str, Any] | None:
    chosen = (row for row in summary.table(_TABLE) if (row["ensemble"], row["d"], row["beta"]) == (ensemble, 20, beta))
    return next(chosen, None)


def judge_scale(summary: Measured) -> Judgement:
    """Decide ``separatrix-attention-ensemble``."""
    unit, small = _row(summary, "gaussian", 1.0), _row(summary, "scaled", 1.0)
    if unit is None or small is None:
        return judge("the two ensembles were not drawn", [])
    rows = [
        Row("share with unit-variance entries, d = 20", unit["some"], 0.5, 0.1),
        Row("share with entries of variance 1/d, d = 20", small["some"], 0.0, 0.03),
    ]
    return judge(f"{unit['some']:.3f} against {small['some']:.3f} of the instances", rows)


def judge_limit(summary: Measured) -> Judgement:
    """Decide ``separatrix-attention-strong-logits``."""
    strong = _row(summary, "gaussian", 100.0)
    if strong is None:
        return judge("no ensemble with large logits was drawn", [])
    rows = [
        Row("share with a stable state on v_1", strong["on v_1"], 1 / 2, 0.06),
        Row("share with a stable state on v_d", strong["on v_d"], 1 / 4, 0.06),
        Row("share with either", strong["some"], 5 / 8, 0.06),
    ]
    return judge(f"{strong['on v_1']:.3f}, {strong['on v_d']:.3f} and {strong['some']:.3f} of the instances", rows)


_PLACE = "explanation/attention-equilibria"

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
            place="Example 3, Figure 3(a)",
            statement="In some instances nearly half of the consensus and bipartite points are stable, in others two.",
            measures="stable points among d 2^n, per instance",
            test="largest share within 0.1 of one half; fewest equal to two",
            judge=judge_half,
            counterfeit=with_fields(counts=lambda counts: [[2] + [0] * (len(row) - 1) for row in counts]),
        ),
        Claim(
            id="altafini2025-fig3a-ends",
            place="Example 3",
            statement="Stable bipartite points lie on the first or the last eigenvector, on the last only if its "
            "eigenvalue is larger in modulus, and both can coexist.",
            measures="stable points per eigenvector",
            test="no exception; both kinds seen",
            judge=judge_ends,
            counterfeit=with_fields(counts=lambda counts: [[row[0], row[-1], *row[2:-1], row[1]] for row in counts]),
        ),
        Claim(
            id="separatrix-exact-count",
            document="separatrix",
            place=_PLACE,
            statement="The closed-form window counts exactly the points that enumeration of all patterns finds stable.",
            measures="instances with different integers",
            test="zero",
            judge=judge_exact,
            counterfeit=with_fields(mismatches=1),
        ),
        Claim(
            id="separatrix-attention-ensemble",
            document="separatrix",
            place=_PLACE,
            statement="Stable bipartite states are common for weights of unit variance and vanish for variance 1/d.",
            measures="share of instances with a stable bipartite consensus",
            test="0.5 +- 0.1 against at most 0.03 at d = 20",
            judge=judge_scale,
            counterfeit=with_column(_TABLE, "some", 0.5),
        ),
        Claim(
            id="separatrix-attention-strong-logits",
            document="separatrix",
            place=_PLACE,
            statement="For ever larger logits the shares with stable states on v_1, on v_d and on either tend to "
            "1/2, 1/4 and 5/8, by symmetry of the ensemble.",
            measures="share of instances at beta = 100, d = 20, n = 100",
            test="within 0.06",
            judge=judge_limit,
            counterfeit=with_column(_TABLE, "on v_d", 0.5),
            scale="laptop",
        ),
    ),
    draw=draw,
)
