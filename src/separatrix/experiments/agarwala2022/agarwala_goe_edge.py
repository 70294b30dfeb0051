"""agarwala2022, Figure 4 for symmetric weights: equilibria by Newton's method near the edge, and their stability.

Plain iteration slows down near the edge and stops at its last step whatever the equilibrium is. Here equilibria of
h = W (phi(h) + x) are followed from small scales upwards by Newton's method with a line search, and an equilibrium
counts as one on which iteration settles if the radius of its Jacobian is below one.

The predicted radius meets one with a horizontal tangent, so that at any one width the largest eigenvalue's own
fluctuation (of order N^(-2/3)) blurs the edge over a wide range of scales. Several widths are therefore measured:
below the edge the radius is carried to infinite width, and above it the share of matrices that keep a stable
equilibrium is compared between widths.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from statistics import fmean, variance
from typing import TYPE_CHECKING, Any

from separatrix.core import spawn
from separatrix.core.wording import measured, number, uncertainty
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    interval_row,
    judge,
    with_column,
)

from .transition import unseen_sides

if TYPE_CHECKING:
    from torch import Tensor

TABLE = "equilibria"
BAND = (0.75, 1.15)
"""Multiples of the predicted scale below and above which a prediction must hold, as for the other families."""
NEAREST = 0.9
"""Multiple of the predicted scale up to which the radius is compared."""
FINEST = 0.02
"""Half-width of an interval beyond which a comparison of radii tells nothing."""


class Settings(Params):
    """Widths with their numbers of matrices, and scales around the predicted edge, followed upwards."""

    widths: tuple[int, ...] = (500, 1000, 2000)
    n_matrices: tuple[int, ...] = (48, 24, 12)  # of each width
    scales: tuple[float, ...] = (0.5, 0.7, 0.76, 0.9, 1.0, 1.05, 1.1, 1.18, 1.3)
    max_steps: int = 40


class Measured(Summary):
    """sqrt(V) at the predicted transition, and the predicted radius by scale where there is one."""

    critical_scale: float
    predicted: list[dict[str, float]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per matrix."""
    common = settings.model_dump(exclude={"seeds", "n_matrices", "widths"})
    for seed in settings.seeds:
        for width, count in zip(settings.widths, settings.n_matrices, strict=True):
            for index in range(count):
                yield {"index": index, "seed": seed, "width": width, **common}


def run(cell: Cell) -> Payload:
    """By scale: the residual of the equilibrium that was reached, and the radius of the Jacobian there."""
    import torch

    from separatrix.matrices.ensembles import GOE

    args = cell.args
    generator = spawn(cell.seed, "agarwala-goe-edge", args["index"])
    matrix = GOE().sample(args["width"], 1.0, generator=generator)
    x = torch.randn(args["width"], generator=generator, dtype=torch.float64)
    h, found = torch.zeros_like(x), []
    for scale in sorted(args["scales"]):
        h, residual = _newton(scale * matrix, x, h, args["max_steps"])
        open_units = h.abs() < 1  # hard tanh has slope one there and zero elsewhere
        values = torch.linalg.eigvalsh(scale * matrix[open_units][:, open_units])
        found.append({"scale": scale, "residual": residual, "radius": float(values.abs().max())})
    return {"found": found}


def _newton(matrix: Tensor, x: Tensor, h: Tensor, max_steps: int) -> tuple[Tensor, float]:
    """Newton's method with halved steps for h = W (phi(h) + x); the root mean square of what is left."""
    import torch

    def gap(state: Tensor) -> Tensor:
        return matrix @ (state.clamp(-1, 1) + x) - state

    left, eye = gap(h), torch.eye(len(x), dtype=x.dtype)
    for _ in range(max_steps):
        if float(left.square().mean().sqrt()) < 1e-10:
            break
        step = torch.linalg.solve(eye - matrix * (h.abs() < 1), left)
        length = 1.0
        while length > 1e-3 and gap(h + length * step).norm() > (1 - 0.1 * length) * left.norm():
            length /= 2
        h = h + length * step
        left = gap(h)
    return h, float(left.square().mean().sqrt())


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """A row per matrix and scale."""
    from separatrix.matrices.ensembles import GOE
    from separatrix.theory import critical_weight_var, mean_field

    rows = [
        {
            "width": cell.args["width"],
            "matrix": cell.args["index"],
            "seed": cell.seed,
            **row,
            "settles": row["residual"] < 1e-9 and row["radius"] < 1,
        }
        for cell, payload in results
        for row in payload["found"]
    ]
    critical = float(critical_weight_var(GOE(), "hardtanh", input_var=1.0)) ** 0.5
    below = sorted({row["scale"] for row in rows if row["scale"] <= NEAREST * critical})
    predicted = [
        {"scale": s, "radius": float(mean_field(GOE(), "hardtanh", weight_var=s**2, input_var=1.0).radius)}
        for s in below
    ]
    return Measured(critical_scale=critical, predicted=predicted, tables={TABLE: rows})


def judge_edge(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-fig4-goe`` at the largest width."""
    critical, rows, words = summary.critical_scale, [], []
    width = max(row["width"] for row in summary.table(TABLE))
    table = [row for row in summary.table(TABLE) if row["width"] == width]
    for scale in sorted({row["scale"] for row in table}):
        own = [row for row in table if row["scale"] == scale]
        settled = sum(row["settles"] for row in own)
        words.append(f"{scale:g}: {settled} of {len(own)}")
        if scale <= BAND[0] * critical:
            rows.append(Row(f"matrices that settle at {scale:g}", settled, len(own)))
        elif scale >= BAND[1] * critical:
            rows.append(Row(f"matrices that settle at {scale:g}", settled, 0))
    rows += unseen_sides(sorted({row["scale"] for row in table}), BAND[0] * critical, BAND[1] * critical)
    return judge(f"predicted edge {number(critical)}, width {width}; matrices that settle, {', '.join(words)}", rows)


def judge_radius(summary: Measured) -> Judgement:
    """Decide ``separatrix-goe-edge-radius``: mean radii by width, carried to infinite width."""
    rows, words = [], []
    for entry in summary.predicted:
        scale, radius = entry["scale"], entry["radius"]
        own = [(row["width"], row["radius"]) for row in summary.table(TABLE) if row["scale"] == scale]
        limit, half = limit_of_means(own)
        tells = half <= FINEST
        agrees = (abs(limit - radius) <= half) if tells else None
        name = f"radius at {scale:g}, carried to infinite width"
        rows.append(Row(name, limit, f"{radius:.4f}", f"99 % interval of half-width {uncertainty(half)}", agrees))
        words.append(f"{scale:g}: {measured(limit, half)} ({measured(radius, half).partition(' ')[0]})")
    return judge(f"radius at infinite width and predicted: {', '.join(words)}", rows)


def limit_of_means(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Mean at infinite width of values with corrections of N^(-2/3) and 1/N, and half of its 99 % interval.

    The edge of a spectrum is off by N^(-2/3), the set of open units by 1/N, and the two have opposite signs here: one
    alone extrapolates wrongly. Least squares through the means, weighted by their spread at each width. The half-width
    is infinite where fewer than three widths, or fewer than three values at one of them, leave nothing to tell from.
    In decimal arithmetic of 60 digits: a verdict is the same on every processor.
    """
    from scipy import stats

    widths = sorted({width for width, _ in points})
    groups = [[value for at, value in points if at == width] for width in widths]
    if len(widths) < 3 or min(map(len, groups)) < 3:
        return fmean(groups[-1]), float("inf")
    with decimal.localcontext(prec=60):  # normal equations of such columns lose half the digits
        sizes = [Decimal(width) for width in widths]
        design = [(Decimal(1), size ** (Decimal(-2) / 3), 1 / size) for size in sizes]
        spreads = [max(Decimal(variance(group)), Decimal("1e-30")) / len(group) for group in groups]
        means = [sum(map(Decimal, group), Decimal()) / len(group) for group in groups]
        measured_at = list(zip(design, means, spreads, strict=True))
        normal = [[_total(row[i] * row[j] / own for row, _, own in measured_at) for j in range(3)] for i in range(3)]
        goal = [_total(row[i] * mean / own for row, mean, own in measured_at) for i in range(3)]
        limit, error = _first_unknown(normal, goal), _first_unknown(normal, [Decimal(1), Decimal(0), Decimal(0)])
    freedom = sum(map(len, groups)) - 3
    return float(limit), float(stats.t.ppf(0.995, freedom)) * float(error) ** 0.5


def _total(terms: Iterable[Decimal]) -> Decimal:
    return sum(terms, Decimal())


def _first_unknown(matrix: list[list[Decimal]], goal: list[Decimal]) -> Decimal:
    """The first unknown of three linear equations, by Cramer's rule."""

    def determinant(m: list[list[Decimal]]) -> Decimal:
        (a, b, c), (d, e, f), (g, h, i) = m
        return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)

    replaced = [[right, *row[1:]] for row, right in zip(matrix, goal, strict=True)]
    return determinant(replaced) / determinant(matrix)


def judge_share(summary: Measured) -> Judgement:
    """Decide ``separatrix-goe-edge-share``: matrices that settle beyond the edge, largest against smallest width."""
    import numpy
    from scipy import stats

    table = [row for row in summary.table(TABLE) if row["scale"] >= BAND[1] * summary.critical_scale]
    widths = sorted({row["width"] for row in table})
    shares: dict[int, list[float]] = {width: [] for width in widths}
    for width in widths:
        for key in sorted({(row["seed"], row["matrix"]) for row in table if row["width"] == width}):
            own = [r["settles"] for r in table if (r["width"], r["seed"], r["matrix"]) == (width, *key)]
            shares[width].append(sum(own) / len(own))
    words = ", ".join(f"{width}: {numpy.mean(found):.2f} of {len(found)}" for width, found in shares.items())
    first, last = shares[widths[0]], shares[widths[-1]]
    if len(widths) < 2 or min(len(first), len(last)) < 3:
        row = Row("change of the share with the width", 0.0, "below 0", "too few matrices", None)
        return judge(f"mean share of stable equilibria beyond the edge, {words}", [row])
    gap = float(numpy.mean(last) - numpy.mean(first))
    parts = [float(numpy.var(own, ddof=1)) / len(own) for own in (last, first)]
    freedom = sum(parts) ** 2 / max(
        sum(part**2 / (len(own) - 1) for part, own in zip(parts, (last, first), strict=True)), 1e-300
    )
    half = float(stats.t.ppf(0.975, max(freedom, 1.0))) * sum(parts) ** 0.5  # Welch
    row = interval_row(
        f"share at width {widths[-1]} minus that at {widths[0]}", gap, (gap - half, gap + half), below=0.0
    )
    return judge(f"mean share of stable equilibria beyond the edge, {words}", [row])


def _with_predicted_radii(summary: Measured) -> Measured:
    """Radii as predicted, with hardly any spread."""
    predicted = {row["scale"]: row["radius"] for row in summary.predicted}

    def radius(row: Mapping[str, Any]) -> float:
        return float(predicted.get(row["scale"], row["radius"])) + 1e-6 * (-1) ** int(row["matrix"])

    return with_column(TABLE, "radius", radius)(summary)


EXPERIMENT = Experiment(
    name="agarwala-goe-edge",
    title="Symmetric weights near the edge: equilibria by Newton's method, and whether iteration settles on them",
    document="agarwala2022",
    place="Figure 4",
    version=2,
    scales={
        "smoke": Settings(widths=(60, 120), n_matrices=(4, 4), scales=(0.5, 0.7, 1.3)),
        "laptop": Settings(),
        "paper": Settings(widths=(500, 1000, 2000, 4000), n_matrices=(48, 24, 12, 8)),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-fig4-goe",
            document="separatrix",
            statement="the loss of convergence of the goe family is predicted by the theory of its radius",
            measures="equilibria followed upwards by Newton's method: their existence, and the radius there",
            test="at the largest width all settle up to 0.75 of the predicted scale, none from 1.15 times that scale",
            judge=judge_edge,
            counterfeit=with_column(TABLE, "settles", lambda row: row["scale"] > 1),
            genuine=with_column(TABLE, "settles", lambda row: row["scale"] < 1),
            scale="laptop",
        ),
        Claim(
            id="separatrix-goe-edge-radius",
            document="separatrix",
            statement="below its edge the radius of the goe family at infinite width is the predicted one",
            measures="radius at equilibria, mean over matrices at each width, carried to infinite width",
            test=(
                f"the 99 % interval holds the prediction at every scale up to {NEAREST} of the edge; an interval wider "
                f"than {FINEST} either way tells nothing"
            ),
            judge=judge_radius,
            counterfeit=with_column(TABLE, "radius", lambda row: 1.1 + 1e-6 * row["matrix"]),
            genuine=_with_predicted_radii,
            scale="laptop",
        ),
        Claim(
            id="separatrix-goe-edge-share",
            document="separatrix",
            statement="beyond the edge the share of matrices that keep a stable equilibrium falls with the width",
            measures="share of the scales from 1.15 times the edge on at which a matrix settles, mean over matrices",
            test="95 % interval of the difference, largest minus smallest width, below zero; refuted if above",
            judge=judge_share,
            counterfeit=with_column(TABLE, "settles", lambda row: row["width"] > 1000 or row["matrix"] % 2 == 0),
            genuine=with_column(TABLE, "settles", lambda row: row["width"] < 1000 or row["matrix"] % 2 == 0),
            scale="laptop",
        ),
    ),
)
