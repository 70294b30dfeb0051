"""altafini2025, Example 2 and Figure 2: where uniform starts go, d = 20, n = 100, 50 instances of 100 starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core import spawn
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
    interval_row,
    judge,
    with_column,
    with_fields,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from separatrix.dynamics import InstanceCensus
    from separatrix.matrices import AttentionInstance
    from separatrix.theory import StableWindow

TABLE = "End points by family"


class Settings(Params):
    """Sizes of Example 2. The ensemble is not stated there; unit-variance Gaussians reproduce its percentages."""

    dim: int = 20  # Example 2
    n_tokens: int = 100  # Example 2
    n_instances: int = 50  # Example 2
    n_starts: int = 100  # Example 2
    ensemble: str = "gaussian"
    preset: str = "default"


class Measured(Summary):
    """Totals over all instances of the census."""

    dim: int
    n_instances: int
    n_runs: int
    stable: int
    not_converged: int
    multistable: int
    multistable_interval: tuple[float, float]
    multilabel: int
    predicted_multistable: int
    unseen: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per weight instance."""
    for seed in settings.seeds:
        for instance in range(settings.n_instances):
            yield {**settings.model_dump(exclude={"seeds", "n_instances"}), "instance": instance, "seed": seed}


def run(cell: Cell) -> Payload:
    """A census of one instance; every stable bipartite end point must lie in the closed-form window."""
    from separatrix import dynamics, matrices, theory

    args, instance = cell.args, cell.args["instance"]
    drawn = matrices.attention_instance(
        args["dim"], generator=spawn(cell.seed, "census", "weights", instance), ensemble=args["ensemble"]
    )
    flow = dynamics.AttentionFlow(query=drawn.query, key=drawn.key, value=drawn.value)
    census = dynamics.census(
        {instance: flow},
        n_tokens=args["n_tokens"],
        n_starts=args["n_starts"],
        seed=cell.seed,
        preset=args["preset"],
    )
    found = census.instances[0]
    _require_windows(found, drawn)
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


def _require_windows(found: InstanceCensus, drawn: AttentionInstance) -> None:
    """Every certified stable bipartite end point lies in the closed-form window, or one of the two routes is wrong."""
    from separatrix import dynamics, theory

    for end in found.ends:
        if end.kind == "bipartite" and end.eigenvector is not None and end.stable:
            n1, n2 = (int(size) for size in end.sizes)
            window = theory.stable_window(drawn.coupling, drawn.value, end.eigenvector, n1 + n2)
            if not _inside(window, n1, n2):
                raise dynamics.Contradiction(
                    f"instance {found.instance} has a certified stable bipartite end point on eigenvector "
                    f"{end.eigenvector} with sizes {end.sizes} (abscissa {end.abscissa:.3g}) outside its window."
                )


def _inside(window: StableWindow, n1: int, n2: int) -> bool:
    single = bool(window.single) and min(n1, n2) == 1
    return single or int(window.lowest) <= n1 <= int(window.highest)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Families by instance and overall, with intervals."""
    from separatrix import dynamics

    payloads = [payload for _, payload in results]
    n = len(payloads)
    rows = dynamics.family_table([payload["families"] for payload in payloads])
    multistable = sum(payload["multistable"] for payload in payloads)
    return Measured(
        dim=results[0][0].args["dim"],
        n_instances=n,
        n_runs=sum(payload["starts"] for payload in payloads),
        stable=sum(payload["stable"] for payload in payloads),
        not_converged=sum(payload["not converged"] for payload in payloads),
        multistable=multistable,
        multistable_interval=dynamics.wilson_interval(multistable, n),
        multilabel=sum(payload["multilabel"] for payload in payloads),
        predicted_multistable=sum(payload["predicted multistable"] for payload in payloads),
        unseen=sum(payload["unseen"] for payload in payloads) / n,
        tables={TABLE: sorted(rows, key=lambda row: (-row["instances"], row["family"]))},
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """The bar chart of Figure 2."""
    from separatrix.report.figures.attention import census_bars

    title = f"{summary.n_instances} instances, {summary.n_runs} starts"
    return {"census": census_bars(summary.table(TABLE), summary.n_instances, title)}


def judge_multistable(summary: Measured) -> Judgement:
    """Decide ``altafini2025-example2-multistable``."""
    low, high = summary.multistable_interval
    share = summary.multistable / summary.n_instances
    either = (summary.predicted_multistable) / summary.n_instances
    rows = [interval_row("share of multistable instances, 95% interval", share, (low, high), above=0.5)]
    evidence = (
        f"{summary.multistable} of {summary.n_instances} instances reach a stable state of several clusters; "
        f"in closed form {either:.2f} of them have one"
    )
    return judge(evidence, rows)


def judge_ends(summary: Measured) -> Judgement:
    """Decide ``altafini2025-example2-one-clustering``."""
    names = [row["family"] for row in summary.table(TABLE)]
    single = [name for name in names if name.startswith("1-clustering")]
    settled = summary.n_runs - summary.not_converged
    rows = [
        Row("end points labelled 1-clustering", float(len(single)), 0.0),
        Row("settled runs that are certified stable", float(summary.stable), float(settled)),
    ]
    printed = [Row("1-clusterings that rest, as printed", float(len(single)), "some", agrees=bool(single))]
    evidence = f"{settled} of {summary.n_runs} runs settled, all certified; {len(single)} off the eigenvectors"
    return judge(evidence, printed, instead("equal tokens at rest lie on an eigenvector", rows))


def judge_eigenvectors(summary: Measured) -> Judgement:
    """Decide ``altafini2025-example3-bipartite-ends``."""
    rows = summary.table(TABLE)
    seen = {row["family"].split(" v")[1] for row in rows if row["family"].startswith("bipartite v")}
    allowed = {"1", str(summary.dim)}
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
            place="Example 2",
            statement="More than half of random instances with d = 20, n = 100 are multistable.",
            measures="instances with more than one certified stable equilibrium modulo antipode",
            test="Wilson 95% interval lies above one half; undecided if it contains one half",
            judge=judge_multistable,
            counterfeit=with_fields(multistable_interval=(0.2, 0.4)),
            genuine=with_fields(multistable_interval=(0.6, 0.8)),
            scale="laptop",
        ),
        Claim(
            id="altafini2025-example2-one-clustering",
            statement="Simulations lead to equilibria, among them 1-clusterings off the eigenvectors.",
            measures="classes of certified end points",
            test="equal tokens at rest lie on an eigenvector in every run",
            judge=judge_ends,
            counterfeit=with_fields(stable=0),
            genuine=with_column(
                TABLE, "family", "1-clustering", where=lambda row: row["family"].startswith("consensus")
            ),
            erratum="altafini2025-E10",
        ),
        Claim(
            id="altafini2025-example3-bipartite-ends",
            place="Example 3",
            statement="Stable bipartite consensus is aligned with the first or the last eigenvector.",
            measures="eigenvectors of simulated bipartite end points",
            test="no other eigenvector occurs",
            judge=judge_eigenvectors,
            counterfeit=with_column(TABLE, "family", "bipartite v2"),
        ),
    ),
    draw=draw,
)
