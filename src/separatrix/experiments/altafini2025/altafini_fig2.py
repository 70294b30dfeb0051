"""altafini2025, Example 2 and Figure 2: where uniform starts go, d = 20, n = 100, 50 instances of 100 starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.lab.experiment.cell import Cell
from separatrix.lab.experiment.claim import Claim, Judgement, Row, Verdict, judge
from separatrix.lab.experiment.definition import Experiment, Params, Payload, Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Settings(Params):
    """Sizes of Example 2. The ensemble is not stated there; unit-variance Gaussians reproduce its percentages."""

    dim: int = 20  # Example 2
    n_tokens: int = 100  # Example 2
    n_instances: int = 50  # Example 2
    n_starts: int = 100  # Example 2
    ensemble: str = "gaussian"
    preset: str = "default"


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per weight instance."""
    for seed in settings.seeds:
        for instance in range(settings.n_instances):
            yield {**settings.model_dump(exclude={"seeds", "n_instances"}), "instance": instance, "seed": seed}


def run(cell: Cell) -> Payload:
    """A census of one instance; every stable bipartite end point must lie in the closed-form window."""
    from separatrix import dynamics, matrices, theory

    args = cell.args
    weights: dict[int, Any] = {}

    def draw(generator: Any) -> Any:
        drawn = matrices.attention_instance(args["dim"], generator=generator, ensemble=args["ensemble"])
        weights[args["instance"]] = drawn
        return dynamics.AttentionFlow(query=drawn.query, key=drawn.key, value=drawn.value)

    def check(instance: int, k: int, n1: int, n2: int) -> bool:
        window = theory.stable_window(weights[instance].coupling, weights[instance].value, k, n1 + n2)
        return _inside(window, n1, n2)

    census = dynamics.census(
        draw,
        [args["instance"]],
        n_tokens=args["n_tokens"],
        n_starts=args["n_starts"],
        seed=cell.seed,
        preset=args["preset"],
        check=check,
    )
    found = census.instances[0]
    drawn = weights[args["instance"]]
    windows = theory.stable_windows(drawn.coupling, drawn.value, args["n_tokens"])
    return {
        "families": found.families,
        "coarse": found.coarse,
        "stable": found.n_stable,
        "not converged": found.n_not_converged,
        "saddles": found.saddles,
        "multistable": found.multistable,
        "multilabel": found.multilabel,
        "unseen": found.unseen,
        "predicted multistable": bool(windows.any_bipartite.any()),
        "starts": found.n_starts,
        "evaluations": found.evaluations,
    }


def _inside(window: Any, n1: int, n2: int) -> bool:
    single = bool(window.single) and min(n1, n2) == 1
    return single or int(window.lowest) <= n1 <= int(window.highest)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Families by instance and overall, with intervals."""
    from separatrix import dynamics

    payloads = [payload for _, payload in results]
    n = len(payloads)
    names = sorted({name for payload in payloads for name in payload["families"]})
    rows = []
    for name in names:
        shares = [payload["families"].get(name, 0) / payload["starts"] for payload in payloads]
        occurs = sum(share > 0 for share in shares)
        low, high = dynamics.wilson_interval(occurs, n)
        mean = sum(shares) / n
        error = (sum((share - mean) ** 2 for share in shares) / max(n - 1, 1) / n) ** 0.5
        runs = sum(payload["families"].get(name, 0) for payload in payloads)
        rows.append(
            {
                "family": name,
                "runs": runs,
                "share": mean,
                "standard error": error,
                "instances": occurs,
                "instances low": low,
                "instances high": high,
            }
        )
    rows.sort(key=lambda row: -row["instances"])
    multistable = sum(payload["multistable"] for payload in payloads)
    return {
        "dim": results[0][0].args["dim"],
        "n_instances": n,
        "n_runs": sum(payload["starts"] for payload in payloads),
        "stable": sum(payload["stable"] for payload in payloads),
        "not converged": sum(payload["not converged"] for payload in payloads),
        "multistable": multistable,
        "multistable interval": list(dynamics.wilson_interval(multistable, n)),
        "multilabel": sum(payload["multilabel"] for payload in payloads),
        "predicted multistable": sum(payload["predicted multistable"] for payload in payloads),
        "unseen": sum(payload["unseen"] for payload in payloads) / n,
        "tables": {"End points by family": rows},
    }


def draw(summary: Summary) -> Mapping[str, Figure]:
    """The bar chart of Figure 2."""
    from separatrix.report.figures.attention import census_bars

    title = f"{summary['n_instances']} instances, {summary['n_runs']} starts"
    return {"census": census_bars(summary["tables"]["End points by family"], summary["n_instances"], title)}


def _judge_multistable(summary: Summary) -> Judgement:
    low, high = summary["multistable interval"]
    share = summary["multistable"] / summary["n_instances"]
    either = (summary["predicted multistable"]) / summary["n_instances"]
    rows = [
        Row(
            "share of multistable instances, 95% interval against one half",
            f"{share:.2f} [{low:.2f}, {high:.2f}]",
            "above 0.5",
            agrees=low > 0.5,
        )
    ]
    evidence = (
        f"{summary['multistable']} of {summary['n_instances']} instances reach a stable state of several clusters; "
        f"in closed form {either:.2f} of them have one"
    )
    if low <= 0.5 <= high:
        return Judgement(Verdict.UNDECIDED, evidence, tuple(rows))  # too few instances to tell which side of one half
    return judge(evidence, rows)


def _judge_ends(summary: Summary) -> Judgement:
    names = [row["family"] for row in summary["tables"]["End points by family"]]
    single = [name for name in names if name.startswith("1-clustering")]
    settled = summary["n_runs"] - summary["not converged"]
    rows = [
        Row("end points labelled 1-clustering", float(len(single)), 0.0),
        Row("settled runs that are certified stable", float(summary["stable"]), float(settled)),
    ]
    printed = [Row("1-clusterings that rest, as printed", float(len(single)), "some", agrees=bool(single))]
    return judge(f"{settled} of {summary['n_runs']} runs settled, all certified", rows, printed=printed)


def _judge_eigenvectors(summary: Summary) -> Judgement:
    rows = summary["tables"]["End points by family"]
    seen = {row["family"].split(" v")[1] for row in rows if row["family"].startswith("bipartite v")}
    allowed = {"1", str(summary["dim"])}
    return judge(
        f"bipartite end points on v{', v'.join(sorted(seen)) or ' none'}",
        [Row("eigenvectors with bipartite ends besides the first and the last", float(len(seen - allowed)), 0.0)],
    )


EXPERIMENT = Experiment(
    name="altafini-fig2",
    title="Census of stable equilibria reached from uniform starts",
    document="altafini2025",
    place="Example 2, Figure 2",
    version=1,
    scales={
        "smoke": Settings(dim=3, n_tokens=10, n_instances=12, n_starts=12),
        "laptop": Settings(n_instances=20, n_starts=30),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="altafini2025-example2-multistable",
            document="altafini2025",
            place="Example 2",
            statement="More than half of random instances with d = 20, n = 100 are multistable.",
            measures="instances with more than one certified stable equilibrium modulo antipode",
            test="Wilson 95% interval lies above one half; undecided if it contains one half",
            judge=_judge_multistable,
            scale="laptop",
        ),
        Claim(
            id="altafini2025-example2-one-clustering",
            document="altafini2025",
            place="Example 2, Figure 2",
            statement="Simulations lead to equilibria, among them 1-clusterings off the eigenvectors.",
            measures="classes of certified end points",
            test="equal tokens at rest lie on an eigenvector in every run",
            judge=_judge_ends,
            erratum="altafini2025-E10",
        ),
        Claim(
            id="altafini2025-example3-bipartite-ends",
            document="altafini2025",
            place="Example 3",
            statement="Stable bipartite consensus is aligned with the first or the last eigenvector.",
            measures="eigenvectors of simulated bipartite end points",
            test="no other eigenvector occurs",
            judge=_judge_eigenvectors,
        ),
    ),
    draw=draw,
)
