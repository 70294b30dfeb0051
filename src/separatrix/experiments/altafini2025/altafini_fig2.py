"""altafini2025, Example 2 and Figure 2: where uniform starts go, and how many instances are multistable.

The figure is a census of 50 instances with d = 20, n = 100 and 100 starts each. The share of multistable instances
needs thousands: for each the closed form is asked first, and where it finds nothing two searches look for clusterings.
"""

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

from ..worst_case import highest

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
    n_searched: int = 2000
    block: int = 40
    n_pairs: int = 99
    n_uniform: int = 8


class Measured(Summary):
    """Totals over all instances of the census, and over all that were searched."""

    dim: int
    n_instances: int
    n_runs: int
    stable: int
    not_converged: int
    reached_several: int
    multilabel: int
    unseen: float
    n_searched: int
    counted: int
    by_pairs: int
    by_uniform: int
    by_both: int
    multistable: int
    multistable_interval: tuple[float, float]
    missed: float
    with_missed_interval: tuple[float, float]


CENSUS = ("dim", "n_tokens", "n_starts", "ensemble", "preset")
SEARCH = ("dim", "n_tokens", "ensemble", "n_pairs", "n_uniform")


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per weight instance of the census, one per block of instances that are searched."""
    values = settings.model_dump()
    for seed in settings.seeds:
        for instance in range(settings.n_instances):
            yield {"part": "census", **{name: values[name] for name in CENSUS}, "instance": instance, "seed": seed}
        for first in range(0, settings.n_searched, settings.block):
            size = min(settings.block, settings.n_searched - first)
            chosen = {name: values[name] for name in SEARCH}
            yield {"part": "search", **chosen, "first": first, "size": size, "seed": seed}


def run(cell: Cell) -> Payload:
    """One part of the experiment."""
    return _census(cell) if cell.args["part"] == "census" else _search(cell)


def _drawn(cell: Cell, instance: int) -> AttentionInstance:
    from separatrix import matrices

    generator = spawn(cell.seed, "census", "weights", instance)
    return matrices.attention_instance(cell.args["dim"], generator=generator, ensemble=cell.args["ensemble"])


def _census(cell: Cell) -> Payload:
    """A census of one instance; every stable bipartite end point must lie in the closed-form window."""
    from separatrix import dynamics

    args, instance = cell.args, cell.args["instance"]
    drawn = _drawn(cell, instance)
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
    return {
        "families": found.families,
        "coarse": found.coarse,
        "stable": found.n_stable,
        "not converged": found.n_not_converged,
        "saddles": found.saddles,
        "reached several": found.reached_several,
        "multilabel": found.multilabel,
        "unseen": found.unseen,
        "starts": found.n_starts,
        "evaluations": found.evaluations,
    }


def _search(cell: Cell) -> Payload:
    """Which instances of a block are multistable in closed form, and which by a clustering that a search found.

    Instances that the closed form decides are not searched.
    """
    from separatrix import diagnose, theory

    args = cell.args
    numbers = range(args["first"], args["first"] + args["size"])
    counted, by_pairs, by_uniform, unsettled = [], [], [], 0
    for instance in numbers:
        drawn = _drawn(cell, instance)
        windows = theory.stable_windows(drawn.coupling, drawn.value, args["n_tokens"])
        if bool(windows.any_bipartite.any()):
            counted.append(instance)
            continue
        found = diagnose.multistability(
            drawn.coupling,
            drawn.value,
            args["n_tokens"],
            generator=spawn(cell.seed, "example 2", "search", instance),
            n_pairs=args["n_pairs"],
            n_starts=args["n_uniform"],
        )
        by_pairs += [instance] if found.pairs else []
        by_uniform += [instance] if found.ends else []
        unsettled += found.n_unsettled
    return {"counted": counted, "by pairs": by_pairs, "by uniform": by_uniform, "unsettled": unsettled}


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
    """Families by instance and overall, and the share of multistable instances, with intervals."""
    from separatrix import dynamics

    censuses = [(cell, payload) for cell, payload in results if cell.args["part"] == "census"]
    searches = [(cell, payload) for cell, payload in results if cell.args["part"] == "search"]
    payloads = [payload for _, payload in censuses]
    rows = dynamics.family_table([payload["families"] for payload in payloads])
    reached = {(cell.seed, cell.args["instance"]) for cell, payload in censuses if payload["reached several"]}
    return Measured(
        dim=results[0][0].args["dim"],
        n_instances=len(payloads),
        n_runs=sum(payload["starts"] for payload in payloads),
        stable=sum(payload["stable"] for payload in payloads),
        not_converged=sum(payload["not converged"] for payload in payloads),
        reached_several=len(reached),
        multilabel=sum(payload["multilabel"] for payload in payloads),
        unseen=sum(payload["unseen"] for payload in payloads) / len(payloads),
        **_shares(searches, reached),
        tables={TABLE: sorted(rows, key=lambda row: (-row["instances"], row["family"]))},
    )


def _shares(searches: Sequence[tuple[Cell, Payload]], reached: set[tuple[int, int]]) -> dict[str, Any]:
    """How many instances are multistable by each route and by any, and how many the searches are likely to miss."""
    from separatrix import dynamics

    def those(name: str) -> set[tuple[int, int]]:
        return {(cell.seed, instance) for cell, payload in searches for instance in payload[name]}

    drawn = {(cell.seed, cell.args["first"] + place) for cell, _ in searches for place in range(cell.args["size"])}
    counted, pairs, uniform = those("counted"), those("by pairs"), those("by uniform")
    uniform |= (reached & drawn) - counted  # ends of the census are ends of uniform starts
    found = counted | pairs | uniform
    both = len(pairs & uniform)
    # Chapman's estimate of what neither of two searches found, from how often both found the same instance
    missed = (len(pairs) + 1) * (len(uniform) + 1) / (both + 1) - 1 - len(pairs | uniform)
    with_missed = min(len(found) + round(missed), len(drawn))
    return {
        "n_searched": len(drawn),
        "counted": len(counted),
        "by_pairs": len(pairs),
        "by_uniform": len(uniform),
        "by_both": both,
        "multistable": len(found),
        "multistable_interval": dynamics.wilson_interval(len(found), len(drawn)),
        "missed": missed,
        "with_missed_interval": dynamics.wilson_interval(with_missed, len(drawn)),
    }


def draw(summary: Measured) -> Mapping[str, Figure]:
    """The bar chart of Figure 2."""
    from separatrix.report.figures.attention import census_bars

    title = f"{summary.n_instances} instances, {summary.n_runs} starts"
    return {"census": census_bars(summary.table(TABLE), summary.n_instances, title)}


def judge_multistable(summary: Measured) -> Judgement:
    """Decide ``altafini2025-example2-multistable`` by the same rule on both sides of one half.

    What is counted or found is certainly there, so that its interval above one half confirms. Below one half it refutes
    only if that remains so with the instances that the searches are estimated to have missed.
    """
    n = summary.n_searched
    low, high = summary.multistable_interval
    least, most = summary.with_missed_interval
    # found is there for certain, so the lower end is that of what was found; the upper end adds what was missed
    rows = [
        interval_row(
            "share with several stable states, counted or found, 95% interval",
            summary.multistable / n,
            (low, highest(high, most)),
            above=0.5,
        )
    ]
    evidence = (
        f"{summary.multistable} of {n} instances: {summary.counted} in closed form "
        f"({summary.counted / n:.3f}), {summary.multistable - summary.counted} by stable clusterings that were found "
        f"(pairs {summary.by_pairs}, uniform starts {summary.by_uniform}, both {summary.by_both}); with an estimated "
        f"{summary.missed:.0f} missed, 95% interval [{least:.3f}, {most:.3f}]; of {summary.n_instances} instances "
        f"followed from {summary.n_runs // summary.n_instances} starts each, {summary.reached_several} reach several"
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
    evidence = f"{settled} of {summary.n_runs} runs settled, {summary.stable} at states that are certified stable; "
    evidence += f"{len(single)} ended with equal tokens off the eigenvectors"
    return judge(evidence, printed, instead("equal tokens at rest lie on an eigenvector", rows))


def judge_eigenvectors(summary: Measured) -> Judgement:
    """Decide ``altafini2025-example3-bipartite-ends``."""
    rows = summary.table(TABLE)
    seen = {row["family"].split(" v")[1] for row in rows if row["family"].startswith("bipartite v")}
    other = len(seen - {"1", str(summary.dim)})
    row = Row(
        "eigenvectors with bipartite ends besides the first and the last", other, 0, agrees=other == 0 if seen else None
    )
    untold = summary.n_runs - summary.not_converged - sum(row["runs"] for row in rows)
    left = [Row("end points of no family in the table", untold, 0, agrees=None)] if untold > 0 else []
    return judge(f"bipartite end points on v{', v'.join(sorted(seen)) or ' none'}", [row, *left])


EXPERIMENT = Experiment(
    name="altafini-fig2",
    title="Census of stable equilibria reached from uniform starts",
    document="altafini2025",
    place="Example 2, Figure 2",
    version=2,
    scales={
        "smoke": Settings(dim=3, n_tokens=10, n_instances=12, n_starts=12, n_searched=24, block=12, n_pairs=9),
        "laptop": Settings(),
        "paper": Settings(n_searched=20_000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="altafini2025-example2-multistable",
            place="Example 2",
            statement="More than half of random instances with d = 20, n = 100 are multistable.",
            measures="instances with more than one stable equilibrium modulo antipode, in closed form or found",
            test="Wilson 95% interval of what was counted or found above one half; refuted if the interval that adds "
            "the estimated number missed by the searches lies below; otherwise undecided",
            judge=judge_multistable,
            counterfeit=with_fields(multistable_interval=(0.2, 0.4), with_missed_interval=(0.2, 0.4)),
            genuine=with_fields(multistable_interval=(0.6, 0.8), with_missed_interval=(0.6, 0.8)),
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
