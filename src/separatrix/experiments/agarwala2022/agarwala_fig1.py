"""agarwala2022, Figure 1: length variance of a linear equilibrium network against the distance to criticality.

One matrix per family and seed. Symmetric and orthogonal matrices need one eigenvalue decomposition for all scales;
for independent entries the quantity depends on the singular values of 1 - sqrt(V) W, which no decomposition of W
gives, so each scale costs an inverse.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core import spawn
from separatrix.core.wording import number
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    Verdict,
    crossed,
    judge,
    spans,
    with_column,
)

from .family_names import named

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAMILIES = ("gaussian", "haar", "goe")


class Settings(Params):
    """Settings; the document gives the width only."""

    width: int = 5000  # N in the caption
    n_scales: int = 20
    smallest_delta: float = 0.01


class Measured(Summary):
    """Width of the matrices."""

    width: int


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """Symmetric and orthogonal matrices in one cell each, independent entries in one per distance."""
    span = math.log(settings.smallest_delta)
    deltas = [round(math.exp(span * k / (settings.n_scales - 1)), 10) for k in range(settings.n_scales)]
    deltas[0] = 0.999  # delta = 1 is the zero matrix
    for seed in settings.seeds:
        for family in ("haar", "goe"):
            yield {"family": family, "width": settings.width, "deltas": deltas, "seed": seed}
        for delta in deltas:
            yield {"family": "gaussian", "width": settings.width, "deltas": [delta], "seed": seed}


def run(cell: Cell) -> Payload:
    """The normalised trace of ((1 - W)^T (1 - W))^-2 at each distance to criticality."""
    import torch

    from separatrix.matrices import ensembles

    family, width = cell.args["family"], int(cell.args["width"])
    generator = spawn(cell.seed, "agarwala-fig1", family)
    delta = torch.tensor(cell.args["deltas"], dtype=torch.float64)
    if family == "goe":
        values = ensembles.goe_eigenvalues(width, generator=generator)
        squares = (1 - ((1 - delta) / 4).sqrt()[:, None] * values).square()
    elif family == "haar":
        cosines = ensembles.haar_cosines(width, generator=generator)
        v = (1 - delta)[:, None]
        squares = 1 + v - 2 * v.sqrt() * cosines
    else:
        matrix = ensembles.Gaussian().sample(width, 1.0, generator=generator)
        return {"m2": [_fourth_moment(matrix, float(1 - d)) for d in delta]}
    return {"m2": squares.pow(-2).mean(-1).tolist()}


def _fourth_moment(matrix: Any, weight_var: float) -> float:
    """tr of the squared inverse of (1 - sqrt(V) W)^T (1 - sqrt(V) W), through one inverse and one product."""
    import torch

    system = matrix.mul(-math.sqrt(weight_var))
    system.diagonal().add_(1.0)
    inverse = torch.linalg.inv(system)
    return float((inverse @ inverse.mT).square().sum() / len(matrix))


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Measured traces beside those of the theory."""
    from separatrix.matrices.ensembles import find_ensemble
    from separatrix.theory import linear_critical_weight_var, resolvent_moment

    rows = []
    for cell, payload in results:
        ensemble = find_ensemble(cell.args["family"])
        critical = linear_critical_weight_var(ensemble)
        for delta, measured in zip(cell.args["deltas"], payload["m2"], strict=True):
            theory = resolvent_moment(ensemble, critical * (1 - delta), 2)
            rows.append(
                {"family": ensemble.name, "seed": cell.seed, "delta": delta, "measured": measured, "theory": theory}
            )
    rows.sort(key=lambda row: (FAMILIES.index(row["family"]), row["seed"], -row["delta"]))
    width = int(results[0][0].args["width"]) if results else 0
    return Measured(
        width=width,
        tables={"length variance": rows},
    )


def _fluctuation(family: str, width: int) -> float:
    """The distance to criticality below which the edge of one matrix fluctuates past it.

    Independent entries: the squared spectral radius of sampled matrices of width 200 and 500 exceeds its limit by
    1.1 N^(-1/2) with a standard deviation of 0.4 N^(-1/2); the number here is the mean and two standard deviations.
    """
    return {"haar": 0.0, "goe": width ** (-2 / 3), "gaussian": 2 * width**-0.5}[family]


FAR = 0.5
"""Distance to the transition from which on nothing leaves the theory."""
LEAST_REACH = 3.0
"""Over a smaller factor of distances, or from fewer than three of them, a power law is no finding."""


def reach(rows: Sequence[Mapping[str, Any]]) -> float:
    """The factor between the largest and the smallest distance; 1 if there are fewer than three distances."""
    distances = {row["delta"] for row in rows}
    return max(distances) / min(distances) if len(distances) >= 3 else 1.0


def judge_match(family: str, tolerance: float) -> Callable[[Measured], Judgement]:
    """Decide the claim on one family: measured and predicted traces agree where the edge does not fluctuate."""

    def judge_family(summary: Measured) -> Judgement:
        width = summary.width
        safe = max(5 * _fluctuation(family, width), 25 / width if family == "haar" else 0.0)
        table = [row for row in summary.table("length variance") if row["family"] == family]
        kept = [row for row in table if row["delta"] >= safe]
        rows = [
            Row(
                f"log of the trace, delta = {r['delta']:.3g}", math.log(r["measured"]), math.log(r["theory"]), tolerance
            )
            for r in kept
        ]
        if reach(kept) < LEAST_REACH:
            return Judgement(
                Verdict.NOT_RUN,
                f"at width {width} the edge fluctuates below delta = {safe:.3g}: the distances left do not span the "
                f"factor {LEAST_REACH:g} over which a power could be told",
            )
        worst = max(abs(float(row.measured) - float(row.expected)) for row in rows)
        nearest = min(row["delta"] for row in kept)
        evidence = f"{len(rows)} scales down to delta = {nearest:.3g} at width {width}: largest log ratio {worst:.3f}"
        return judge(evidence, rows)

    return judge_family


def _curve(summary: Measured, family: str) -> dict[float, dict[str, Any]]:
    """Rows of one family and the first seed by distance, from far to near."""
    table = [row for row in summary.table("length variance") if row["family"] == family]
    first = min(row["seed"] for row in table)
    return {row["delta"]: row for row in sorted(table, key=lambda row: -row["delta"]) if row["seed"] == first}


def judge_order(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-fig1-order``."""
    curves = {family: _curve(summary, family) for family in FAMILIES}
    rows = []
    for delta in curves["gaussian"]:
        if delta > 0.9:
            continue  # all traces are one at the zero matrix
        values = [curves[family][delta]["measured"] for family in ("gaussian", "haar", "goe")]
        falls = values[0] > values[1] > values[2]
        shown = " / ".join(number(value) for value in values)
        rows.append(Row(f"independent / orthogonal / symmetric, delta = {delta:.3g}", shown, "falling", agrees=falls))
    held = sum(bool(row.agrees) for row in rows)
    return judge(f"independent above orthogonal above symmetric at {held} of {len(rows)} distances", rows)


def judge_deviation(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-fig1-deviation``."""
    ratios, far = {}, {}
    for family in FAMILIES:
        curve = _curve(summary, family)
        found = {delta: abs(math.log(row["measured"] / row["theory"])) for delta, row in curve.items()}
        ratios[family] = found[min(found)]
        far[family] = max(ratio for delta, ratio in found.items() if delta >= FAR)
    rows = [
        Row(
            f"log ratio at the smallest distance, {named(family)}",
            ratios[family],
            "above 0.25",
            agrees=ratios[family] > 0.25,
        )
        for family in ("gaussian", "goe")
    ]
    # who is nowhere near the theory does not leave it close to the transition
    rows += [
        Row(f"largest log ratio from distance {FAR:g} on, {named(family)}", far[family], 0.0, 0.25)
        for family in ("gaussian", "goe")
    ]
    shown = ", ".join(f"{named(family)} {ratio:.2f}" for family, ratio in ratios.items())
    most = max(far[family] for family in ("gaussian", "goe"))
    return judge(
        f"log ratio to the theory at the smallest distance: {shown}; from distance {FAR:g} on at most {most:.2f}", rows
    )


def judge_peak(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-fig1-peak``."""
    curve = [row["measured"] for row in _curve(summary, "gaussian").values()]
    turns = sum(after < before for before, after in itertools.pairwise(curve))
    rows = [Row("distances at which the trace of independent entries falls towards the transition", turns, "some",
                agrees=turns > 0)]  # fmt: skip
    return judge(f"the trace of independent entries falls at {turns} of {len(curve) - 1} steps towards delta = 0", rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """The figure: traces against the distance, on logarithmic axes."""
    from separatrix.report.figures import deq

    return {"length-variance": deq.length_variance_curves(summary.table("length variance"), summary.width)}


_MEASURED = "normalised trace of ((1 - W)^T (1 - W))^-2 of one matrix per family"

EXPERIMENT = Experiment(
    name="agarwala-fig1",
    title="Length variance of linear equilibrium networks near the critical scale",
    document="agarwala2022",
    place="Figure 1",
    version=1,
    scales={
        "smoke": Settings(width=300, n_scales=8),
        "laptop": Settings(width=1500),
        "paper": Settings(width=5000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-fig1-haar",
            place="Figure 1, Eqs. (18)-(20)",
            statement="orthogonal matrices follow (2 - delta)/delta^3",
            measures=_MEASURED,
            test="within 25% (log) wherever delta is 5 times the edge fluctuation at this width, or more",
            needs=(spans("length variance", "delta", 0.02, 0.9, family="haar"),),
            judge=judge_match("haar", 0.25),
            counterfeit=with_column("length variance", "measured", lambda row: row["measured"] / row["delta"]),
            erratum="agarwala2022-eq18",
        ),
        Claim(
            id="agarwala2022-fig1-goe",
            place="Figure 1, Eqs. (18)-(20)",
            statement="symmetric Gaussian matrices follow delta^(-5/2) until the edge fluctuates",
            measures=_MEASURED,
            test="within 35% (log) wherever delta is 5 times the edge fluctuation at this width, or more",
            needs=(spans("length variance", "delta", 0.02, 0.9, family="goe"),),
            judge=judge_match("goe", 0.35),
            counterfeit=with_column("length variance", "measured", lambda row: row["measured"] / row["delta"]),
            erratum="agarwala2022-eq20",
        ),
        Claim(
            id="agarwala2022-fig1-gaussian",
            place="Figure 1, Eqs. (18)-(20)",
            statement="independent entries follow delta^(-4) until the edge fluctuates",
            measures=_MEASURED,
            test="within 50% (log) wherever delta is 5 times the edge fluctuation at this width, or more",
            needs=(spans("length variance", "delta", 0.02, 0.9, family="gaussian"),),
            judge=judge_match("gaussian", 0.5),
            counterfeit=with_column("length variance", "measured", lambda row: row["measured"] / row["delta"]),
        ),
        Claim(
            id="agarwala2022-fig1-order",
            statement="at every distance independent entries have the largest length variance, symmetric the smallest",
            measures=_MEASURED,
            test="the order at every distance below 0.9",
            needs=(
                crossed("length variance", "family", "seed", "delta"),
                spans("length variance", "delta", 0.02, 0.78),
            ),
            judge=judge_order,
            counterfeit=with_column("length variance", "measured", 5.0),
            scale="laptop",
        ),
        Claim(
            id="agarwala2022-fig1-deviation",
            statement="close to the transition traces of independent and symmetric matrices leave the theory",
            measures=_MEASURED,
            test="log ratio above 0.25 at the smallest distance and below it from distance 0.5 on, in both families",
            needs=(
                crossed("length variance", "family", "seed", "delta"),
                spans("length variance", "delta", 0.02, 0.78),
            ),
            as_a_whole=("length variance",),
            judge=judge_deviation,
            counterfeit=with_column("length variance", "measured", lambda row: row["theory"]),
            scale="laptop",
        ),
        Claim(
            id="agarwala2022-fig1-peak",
            statement="the trace of one matrix of independent entries does not rise steadily towards the transition",
            measures=_MEASURED,
            test="it falls between two distances at least once",
            needs=(spans("length variance", "delta", 0.02, 0.9, family="gaussian"),),
            as_a_whole=("length variance",),
            judge=judge_peak,
            counterfeit=with_column("length variance", "measured", lambda row: row["theory"]),
            scale="laptop",
        ),
    ),
    draw=draw,
)
