"""altafini2025, Example 1 and Figure 1: four trajectories on the sphere, d = 3, n = 10."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge, with_fields

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = ("(a) consensus", "(b) consensus, long transient", "(c) bipartite on v1", "(d) 3-clustering")


class Settings(Params):
    """Sizes of Example 1; instances are searched until every panel has one."""

    dim: int = 3  # Example 1
    n_tokens: int = 10  # Example 1
    n_instances: int = 60
    first_instance: int = 186
    n_starts: int = 8
    n_frames: int = 160
    n_tries: int = 12  # candidates for a panel that are followed at reference accuracy


class Measured(Summary):
    """The path of each panel, and how many starts ended in each family."""

    panels: dict[str, dict[str, Any]]
    counts: dict[str, int]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One search per seed."""
    for seed in settings.seeds:
        yield {**settings.model_dump(exclude={"seeds"}), "seed": seed}


def run(cell: Cell) -> Payload:
    """Classify the ends of many starts, choose one start per panel, and keep its path."""
    from separatrix import dynamics

    args = cell.args
    candidates: dict[str, list[tuple[float, int, int]]] = {panel: [] for panel in PANELS}
    counts: dict[str, int] = {}
    for instance in range(args["first_instance"], args["first_instance"] + args["n_instances"]):
        flow, starts = _draw(cell, instance)
        ends = dynamics.integrate(flow, starts, max_steps=1500)  # a search: slow starts are left aside
        for start, end in enumerate(dynamics.classify(flow, ends.final, cycles=False)):
            counts[end.family] = counts.get(end.family, 0) + 1
            time = float(ends.time[start] * flow.rate)
            for panel in _panels(end):
                # Panel (b) takes the longest transient, the others the shortest.
                candidates[panel].append((-time if panel == PANELS[1] else time, instance, start))
    paths = {panel: _first_path(cell, panel, sorted(found)) for panel, found in candidates.items()}
    return {"counts": counts, "paths": {panel: path for panel, path in paths.items() if path is not None}}


def _first_path(cell: Cell, panel: str, candidates: Sequence[tuple[float, int, int]]) -> Payload | None:
    """The first candidate whose path at reference accuracy ends as the panel says.

    Near a separatrix the end of a long transient can depend on the accuracy of the integration, so the search alone
    does not settle it.
    """
    for _, instance, start in candidates[: cell.args["n_tries"]]:
        path, end = _path(cell, instance, start)
        if panel in _panels(end):
            return path
    return None


def _draw(cell: Cell, instance: int) -> tuple[Any, Any]:
    from separatrix import dynamics, matrices

    args = cell.args
    drawn = matrices.attention_instance(args["dim"], generator=spawn(cell.seed, "altafini-fig1", "weights", instance))
    flow = dynamics.AttentionFlow(query=drawn.query, key=drawn.key, value=drawn.value)
    generator = spawn(cell.seed, "altafini-fig1", "starts", instance)
    return flow, dynamics.random_tokens(args["n_tokens"], args["dim"], args["n_starts"], generator=generator)


def _panels(end: Any) -> tuple[str, ...]:
    if not end.stable:
        return ()
    if end.kind == "consensus":
        return PANELS[:2]
    if end.kind == "bipartite" and end.eigenvector == 0:
        return (PANELS[2],)
    return (PANELS[3],) if end.kind == "clustering" and len(end.sizes) == 3 else ()


def _path(cell: Cell, instance: int, start: int) -> tuple[Payload, Any]:
    import torch

    from separatrix import dynamics

    flow, starts = _draw(cell, instance)
    rest = dynamics.integrate(flow, starts[start], "reference")
    # Dense frames early, where tokens move fast.
    times = float(rest.time) * torch.linspace(0, 1, cell.args["n_frames"], dtype=torch.float64) ** 2
    run = dynamics.integrate(flow, starts[start], "reference", times=times)
    vectors = torch.linalg.eigh(flow.value).eigenvectors
    end = dynamics.classify(flow, run.final)[0]
    path = {
        "states": run.states,
        "axis": vectors[:, -1],
        "label": end.coarse_label,
        "abscissa": end.abscissa,
        "instance": instance,
        "time": float(run.time * flow.rate),
    }
    return path, end


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Paths of the first seed that has them, and the counts of all."""
    counts: dict[str, int] = {}
    panels: dict[str, Any] = {}
    for _, payload in results:
        for family, count in payload["counts"].items():
            counts[family] = counts.get(family, 0) + count
        for name, path in payload["paths"].items():
            panels.setdefault(name, path)
    rows = [
        {"panel": name, "end": path["label"], "largest real part": path["abscissa"], "time x |V|": path["time"]}
        for name, path in sorted(panels.items())
    ]
    plain = {
        name: {**path, "states": path["states"].tolist(), "axis": path["axis"].tolist()}
        for name, path in panels.items()
    }
    return Measured(
        panels=plain,
        counts=counts,
        tables={"Four trajectories": rows},
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """The four panels."""
    from separatrix.report.figures.attention import sphere_trajectories

    names = [name for name in PANELS if name in summary.panels]
    panels = [(name, summary.panels[name]["states"]) for name in names]
    return {"spheres": sphere_trajectories(panels, [summary.panels[name]["axis"] for name in names])}


def judge_panels(summary: Measured) -> Judgement:
    """Decide ``altafini2025-example1``."""
    rows = [
        Row(
            f"panel {name}",
            "found" if name in summary.panels else "missing",
            "found",
            agrees=name in summary.panels,
        )
        for name in PANELS
    ]
    stable = [path["abscissa"] < 0 for path in summary.panels.values()]
    rows.append(Row("ends with negative tangent spectrum", float(sum(stable)), float(len(PANELS))))
    ends = sorted(summary.counts.items(), key=lambda item: -item[1])
    listing = ", ".join(f"{count} {family}" for family, count in ends)
    return judge(f"{sum(summary.counts.values())} starts: {listing}", rows)


EXPERIMENT = Experiment(
    name="altafini-fig1",
    title="Trajectories that end in consensus, bipartite consensus and a 3-clustering",
    document="altafini2025",
    place="Example 1, Figure 1",
    version=2,
    scales={
        "smoke": Settings(n_instances=6),
        "laptop": Settings(first_instance=0, n_instances=400),
        "paper": Settings(first_instance=0, n_instances=400),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="altafini2025-example1",
            place="Example 1",
            statement="Random weights with d = 3, n = 10 lead to consensus, bipartite consensus and 3-clusterings.",
            measures="class and tangent spectrum of certified end points",
            test="each panel found, every end stable",
            judge=judge_panels,
            counterfeit=with_fields(panels=lambda panels: dict(list(panels.items())[1:])),
        ),
    ),
    draw=draw,
)
