"""kerg2022, Proposition 3.4.1 and section 2.6: bounds of the memory of triangular matrices, tried at random."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.wording import number, small
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    condition,
    crossed,
    in_turn,
    judge,
    misprint,
    spans,
    with_column,
    with_fields,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

SLACK = 1e-9  # rounding of a ratio of two numbers computed in double precision


class Settings(Params):
    """Random triangular matrices, and the delay lines of section 2.6."""

    sizes: tuple[int, ...] = (2, 3, 4, 5, 6, 7, 8)
    n_matrices: int = 300  # of each size
    noise_var: float = 2.0  # not 1, so that a missing factor 1/eps shows
    alphas: tuple[float, ...] = (1.1, 1.5, 2.0, 4.0)
    line_units: tuple[int, ...] = (100, 200, 400)


class Measured(Summary):
    """Curves of one random matrix and of two delay lines."""

    example: dict[str, list[float]] | None
    line: list[float]
    front_loaded: list[float]
    noise_var: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per size and seed, and one for the lines."""
    for seed in settings.seeds:
        for size in settings.sizes:
            common = {"kind": "random", "n_units": size, "noise_var": settings.noise_var}
            yield {**common, "n_matrices": settings.n_matrices, "seed": seed}
    yield {
        "kind": "lines",
        "alphas": settings.alphas,
        "line_units": settings.line_units,
        "noise_var": settings.noise_var,
    }


def run(cell: Cell) -> Payload:
    """Ratios of memory to each bound, or totals of delay lines."""
    return _random(cell) if cell.args["kind"] == "random" else _lines(cell)


def _random(cell: Cell) -> dict[str, Any]:
    import torch

    from separatrix import core, matrices, theory

    size, noise_var = cell.args["n_units"], cell.args["noise_var"]
    generator = core.spawn(cell.seed, "kerg3-prop3-4-1", size)
    theta, alpha = _draw_triangular(size, cell.args["n_matrices"], generator)
    source = torch.eye(size, dtype=torch.float64)[0]
    memory = matrices.fisher_memory_curve(theta, source, size, noise_var)
    printed = theory.triangular_memory_bound(theta, noise_var)
    sharp = theory.sharp_triangular_memory_bound(theta, noise_var)
    signal = torch.stack([(torch.linalg.matrix_power(theta, k) @ source) for k in range(size)], dim=-1)
    ceiling = theory.amplification_bound(signal.square().sum(-2), noise_var)
    return {
        "printed_ratio": float((memory.curve / printed).min()),
        "sharp_ratio": float((memory.curve / sharp).min()),
        "ceiling_ratio": float((memory.curve / ceiling).max()),
        "gain": float((sharp / printed).min()),
        "median_gain": float((sharp / printed).median()),
        "without_noise_var": float((memory.curve / (noise_var * printed)).min()),
        "exponent_2_fails": _order_fails(theta, alpha, memory.covariance / noise_var, 2),
        "full_exponent_fails": _order_fails(theta, alpha, memory.covariance / noise_var, 2 * (size - 1)),
        "n_matrices": cell.args["n_matrices"],
        "example": {
            "memory": memory.curve[0],
            "printed": printed[0],
            "sharp": sharp[0],
            "ceiling": ceiling[0],
        },
    }


def _draw_triangular(size: int, count: int, generator: Any) -> tuple[Tensor, Tensor]:
    """Strictly lower-triangular matrices with sqrt(alpha) along the sub-diagonal and Gaussian entries below."""
    import torch

    below = torch.randn(count, size, size, generator=generator, dtype=torch.float64).tril(-2)
    scale = 1.5 * torch.rand(count, 1, 1, generator=generator, dtype=torch.float64)
    alpha = 0.2 + 2 * torch.rand(count, 1, generator=generator, dtype=torch.float64)
    return below * scale + torch.diag_embed(alpha.sqrt().expand(-1, size - 1), -1), alpha


def _order_fails(theta: Tensor, alpha: Tensor, covariance: Tensor, exponent: int) -> int:
    """How often sigma^exponent diag(...) - C has a negative eigenvalue; Eq. (A.2.6) prints the exponent 2."""
    import torch

    size = theta.shape[-1]
    last = torch.eye(size, dtype=theta.dtype)[-1:].expand(len(theta), 1, size)
    factor = torch.cat([theta[:, 1:] / alpha[..., None].sqrt(), last], dim=-2)
    sigma = torch.linalg.matrix_norm(factor, 2)
    line = torch.cumsum(alpha ** torch.arange(size), dim=-1)
    gap = torch.linalg.eigvalsh(torch.diag_embed(sigma[:, None] ** exponent * line) - covariance)[..., 0]
    return int((gap < -SLACK * torch.linalg.matrix_norm(covariance, 2)).sum())


def _lines(cell: Cell) -> dict[str, Any]:
    import torch

    from separatrix import matrices, theory

    noise_var = cell.args["noise_var"]
    alphas = torch.tensor(cell.args["alphas"], dtype=torch.float64)
    totals = [theory.delay_line_total(alphas, size, noise_var) for size in cell.args["line_units"]]
    leading = [theory.delay_line_total_leading(alphas, size, noise_var) for size in cell.args["line_units"]]
    line = matrices.delay_line(10, 1.1**0.5)
    front = line.clone()
    front[1, 0] *= 3
    curve = matrices.fisher_memory_curve(torch.stack([line, front]), torch.eye(10, dtype=torch.float64)[0], 10).curve
    return {"totals": torch.stack(totals), "leading": torch.stack(leading), "line": curve[0], "front_loaded": curve[1]}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """The extreme ratios of every size, and the totals of the lines."""
    from separatrix.core import plain

    random = [(cell, plain(payload)) for cell, payload in results if cell.args["kind"] == "random"]
    lines = [(cell, plain(payload)) for cell, payload in results if cell.args["kind"] == "lines"]
    table = [
        {"n_units": cell.args["n_units"], "seed": cell.seed} | {k: v for k, v in payload.items() if k != "example"}
        for cell, payload in random
    ]
    totals = [
        {"alpha": alpha, "n_units": size, "total": payload["totals"][i][j], "leading": payload["leading"][i][j]}
        for cell, payload in lines
        for i, size in enumerate(cell.args["line_units"])
        for j, alpha in enumerate(cell.args["alphas"])
    ]
    noise_var = results[0][0].args["noise_var"] if results else 1.0
    return Measured(
        tables={"Memory against its bounds": table, "Totals of delay lines": totals},
        example=random[-1][1]["example"] if random else None,
        line=lines[0][1]["line"] if lines else [],
        front_loaded=lines[0][1]["front_loaded"] if lines else [],
        noise_var=noise_var,
    )


def _least(summary: Measured, name: str, wanted: float = 1.0) -> list[Row]:
    return [
        Row(
            f"least {name}, N={row['n_units']}",
            row[name],
            f"at least {wanted}",
            SLACK,
            agrees=row[name] >= wanted - SLACK,
        )
        for row in summary.table("Memory against its bounds")
    ]


def judge_bound(summary: Measured) -> Judgement:
    """The bound with its factor 1/eps, and as printed without."""
    rows = _least(summary, "printed_ratio")
    count = sum(row["n_matrices"] for row in summary.table("Memory against its bounds"))
    printed = _least(summary, "without_noise_var")
    right, wrong = (min((float(row.measured) for row in asked), default=0.0) for asked in (rows, printed))
    evidence = (
        f"the least ratio of the memory of {count} matrices to the bound is {number(right)} with the factor 1/eps and "
        f"{number(wrong)} without it, at eps = {summary.noise_var}"
    )
    return judge(evidence, printed, misprint("the bound holds with a factor 1/eps", rows))


def judge_exponent(summary: Measured) -> Judgement:
    """Eq. (A.2.6): exponent 2(N-1) holds, the printed exponent 2 does not."""
    table = summary.table("Memory against its bounds")

    def violations(name: str) -> list[Row]:
        return [Row(f"{name}, N={row['n_units']}", float(row[name]), 0.0) for row in table]

    low, full = (sum(row[name] for row in table) for name in ("exponent_2_fails", "full_exponent_fails"))
    count = sum(row["n_matrices"] for row in table)
    evidence = f"exponent 2 fails for {low} of {count} matrices, exponent 2(N-1) for {full}"
    right = misprint("sigma has the exponent 2(N-1)", violations("full_exponent_fails"))
    return judge(evidence, violations("exponent_2_fails"), right)


def judge_sharp(summary: Measured) -> Judgement:
    """Our bound holds and is never below the document's."""
    rows = _least(summary, "sharp_ratio") + _least(summary, "gain")
    gains = [row["median_gain"] for row in summary.table("Memory against its bounds")]
    return judge(f"median gain up to {number(max(gains, default=0.0))} at the sizes tried", rows)


def judge_ceiling(summary: Measured) -> Judgement:
    """The amplification bound from above."""
    table = summary.table("Memory against its bounds")
    rows = [
        Row(
            f"largest ratio, N={row['n_units']}",
            row["ceiling_ratio"],
            "at most 1",
            SLACK,
            agrees=row["ceiling_ratio"] <= 1 + SLACK,
        )
        for row in table
    ]
    worst = max((row["ceiling_ratio"] for row in table), default=0.0)
    return judge(f"memory is at most {number(worst, 4)} of the amplification bound", rows)


def judge_total(summary: Measured) -> Judgement:
    """What is left of the total after the leading term does not grow with the line; the printed term misses it."""
    eps = summary.noise_var
    table = summary.table("Totals of delay lines")
    rows, printed = [], []
    for alpha in sorted({row["alpha"] for row in table}):
        same = sorted((row for row in table if row["alpha"] == alpha), key=lambda row: row["n_units"])
        rest = [row["total"] - row["leading"] for row in same]
        rows.append(Row(f"growth of the remainder at alpha={alpha}", rest[-1] - rest[0], 0.0, 1e-3))
        size = same[-1]["n_units"]
        per_unit = same[-1]["total"] * eps / size
        printed.append(Row(f"total per unit at alpha={alpha}, N={size}", per_unit, 1 - 1 / eps, 0.05))
    right = misprint("the total grows by (1 - 1/alpha)/eps per unit, not by (1 - 1/eps)/eps", rows)
    widest = max(abs(float(row.measured)) for row in rows)
    return judge(f"after N (1 - 1/alpha)/eps the remainder changes by at most {small(widest)}", printed, right)


def judge_highest(summary: Measured) -> Judgement:
    """The line meets the amplification bound, yet a line with a stronger first weight remembers more."""
    if not summary.line:
        return judge("", [])
    line, front = summary.line, summary.front_loaded
    limits = [1 / sum(1.1**-m for m in range(k + 1)) for k in range(len(line))]
    gap = max(abs(a - b) for a, b in zip(line, limits, strict=True))
    rows = [Row("line against its amplification bound", gap, 0.0, 1e-12)]
    other = [Row("J(1), first weight tripled", front[1], f"at most {line[1]:.4f}", "", agrees=front[1] <= line[1])]
    right = condition("among networks of the same amplification the delay line has the highest curve", rows)
    return judge(f"J(1) = {number(front[1])} with a stronger first weight, against {number(line[1])}", other, right)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """One matrix of the search between its bounds."""
    from separatrix.report.figures.recurrent.memory import draw_memory_bounds

    return {"bounds": draw_memory_bounds(summary.example)} if summary.example else {}


_BOUNDS = "Memory against its bounds"
_ALL = (crossed(_BOUNDS, "n_units", "seed"), spans(_BOUNDS, "n_units", 3, 8))
"""Networks from small to the largest that is searched."""

EXPERIMENT = Experiment(
    name="kerg3-prop3-4-1",
    title="Bounds of the memory of triangular matrices",
    document="kerg2022",
    place="Proposition 3.4.1, section 2.6",
    version=1,
    scales={
        "smoke": Settings(sizes=(3, 6, 8), n_matrices=200),
        "laptop": Settings(n_matrices=1000, seeds=(0, 1)),
        "paper": Settings(n_matrices=1000, seeds=(0, 1, 2, 3)),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-ch3-prop3-4-1",
            place="Proposition 3.4.1",
            statement=(
                "any strictly lower-triangular matrix remembers at least a fraction of what its delay line does"
            ),
            measures="ratio of memory to bound",
            test="no violation in a random search",
            judge=judge_bound,
            counterfeit=in_turn(
                with_column("Memory against its bounds", "printed_ratio", 0.9),
                with_column("Memory against its bounds", "without_noise_var", 0.9),
            ),
            erratum="kerg2022-normalisation",
        ),
        Claim(
            id="kerg2022-ch3-eq-a-2-6",
            place="appendix A.2, Eq. (A.2.6)",
            statement="the covariance is at most sigma^2 times that of the delay line",
            measures="ratio of memory to bound",
            test="no negative eigenvalue of the difference",
            judge=judge_exponent,
            counterfeit=with_column("Memory against its bounds", "full_exponent_fails", 3),
            erratum="kerg2022-eq-a-2-6",
        ),
        Claim(
            id="separatrix-ch3-sharper-bound",
            document="separatrix",
            place="our own, after Proposition 3.4.1",
            statement="the bound holds with the lag k in place of N-1",
            measures="ratio of memory to bound",
            test="no violation, never below Proposition 3.4.1",
            needs=_ALL,
            judge=judge_sharp,
            counterfeit=with_column("Memory against its bounds", "sharp_ratio", 0.9),
        ),
        Claim(
            id="kerg2022-ch3-amplification",
            place="section 2.6",
            statement="memory is at most the inverse of the summed inverse amplification",
            measures="ratio of memory to bound",
            test="no violation in a random search",
            needs=_ALL,
            judge=judge_ceiling,
            counterfeit=with_column("Memory against its bounds", "ceiling_ratio", 1.2),
        ),
        Claim(
            id="kerg2022-ch3-delay-line-total",
            place="section 2.6",
            statement="the total of an amplifying delay line grows in proportion to its length",
            measures="ratio of memory to bound",
            test="remainder after the leading term constant to 1e-3",
            judge=judge_total,
            counterfeit=with_column("Totals of delay lines", "total", lambda row: row["total"] + 0.1 * row["n_units"]),
            erratum="kerg2022-delay-line-total",
        ),
        Claim(
            id="kerg2022-ch3-delay-line-optimal",
            place="section 3.4.2",
            statement="the delay line has the highest possible memory curve",
            measures="ratio of memory to bound",
            test="equality with the bound; no other network above it",
            judge=judge_highest,
            counterfeit=with_fields(line=lambda line: [0.9 * value for value in line]),
            erratum="kerg2022-delay-line-optimal",
        ),
    ),
    draw=draw,
)
