"""kerg2022, chapter 3, Fig. 1: transients (b) and Fisher memory curves (c) of triangular matrices."""

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
    judge,
    misprint,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Lines = tuple[tuple[float, float, float], ...]
NILPOTENT: Lines = tuple((sub, rest, 0.0) for rest in (0.0, 0.005) for sub in (0.95, 1.0, 1.05))  # legend of (b)
DIAGONAL: Lines = tuple((sub, rest, 0.2) for sub, rest, _ in NILPOTENT)


class Settings(Params):
    """Matrices, sizes and number of starts."""

    n_units: int = 100  # N = 100 (caption)
    n_starts: int = 1000  # 10^3 starts on the unit sphere (caption)
    n_times: int = 126  # t = 0 .. 125, the axis of panel (b)
    n_lags: int = 150  # the axis of panel (c)
    with_diagonal: Lines = DIAGONAL  # d = 0.2 (caption)


class Measured(Summary):
    """Curves of both panels."""

    transients: list[dict[str, Any]]
    memory: list[dict[str, Any]]
    n_units: int


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per transient and seed, one per memory curve."""
    for seed in settings.seeds:
        for sub, rest, _ in NILPOTENT:
            line = {"panel": "b", "sub": sub, "rest": rest, "diagonal": 0.0, "n_units": settings.n_units}
            yield {**line, "n_starts": settings.n_starts, "n_times": settings.n_times, "seed": seed}
    for sub, rest, diagonal in NILPOTENT + settings.with_diagonal:
        line = {"panel": "c", "sub": sub, "rest": rest, "diagonal": diagonal, "n_units": settings.n_units}
        yield {**line, "n_lags": settings.n_lags}


def run(cell: Cell) -> Payload:
    """A transient or a memory curve."""
    return _transient(cell) if cell.args["panel"] == "b" else _memory(cell)


def _transient(cell: Cell) -> dict[str, Any]:
    import torch

    from separatrix import core, matrices

    args = cell.args
    line = matrices.delay_line(args["n_units"], args["sub"], args["rest"], args["diagonal"])
    generator = core.spawn(cell.seed, "kerg3-fig1", "starts")  # the same starts for every matrix
    state = torch.randn(args["n_starts"], args["n_units"], generator=generator, dtype=torch.float64)
    state = state / torch.linalg.vector_norm(state, dim=-1, keepdim=True)
    power = torch.eye(args["n_units"], dtype=torch.float64)
    norms, spreads, exact = [], [], []
    for _ in range(args["n_times"]):
        norms.append(torch.linalg.vector_norm(state, dim=-1))
        spreads.append(state.std(dim=0).mean())
        exact.append(torch.linalg.matrix_norm(power) / args["n_units"] ** 0.5)
        state, power = state @ line.mT, power @ line
    norm = torch.stack(norms)
    return {
        "mean_norm": norm.mean(-1),
        "std_norm": norm.std(-1),
        "mean_square": norm.square().mean(-1),
        "error_square": norm.square().std(-1) / args["n_starts"] ** 0.5,
        "mean_spread": torch.stack(spreads),
        "rms_norm": torch.stack(exact),
    }


def _memory(cell: Cell) -> dict[str, Any]:
    import torch

    from separatrix import matrices, theory

    args = cell.args
    line = matrices.delay_line(args["n_units"], args["sub"], args["rest"], args["diagonal"])
    source = torch.eye(args["n_units"], dtype=torch.float64)[0]
    memory = matrices.fisher_memory_curve(line, source, args["n_lags"])
    payload = {"curve": memory.curve, "total": float(memory.total), "bits": int(memory.bits)}
    if args["rest"] == 0 and args["diagonal"] == 0:
        lags = torch.arange(args["n_lags"])
        for name, alpha in (("formula_squared", args["sub"] ** 2), ("formula_as_printed", args["sub"])):
            weight = torch.tensor(alpha, dtype=torch.float64)
            payload[name] = theory.delay_line_memory(weight, lags, args["n_units"])
    return payload


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Curves as lists, with the matrix they belong to."""
    from separatrix.core import plain

    panels: dict[str, list[dict[str, Any]]] = {"b": [], "c": []}
    for cell, payload in results:
        names = {"alpha": cell.args["sub"], "beta": cell.args["rest"], "d": cell.args["diagonal"]}
        panels[cell.args["panel"]].append({**names, "seed": cell.seed, **plain(payload)})
    n_units = results[0][0].args["n_units"] if results else 0
    peaks = [
        {"alpha": row["alpha"], "beta": row["beta"], "peak": max(row["rms_norm"]), "step": _argmax(row["rms_norm"])}
        for row in panels["b"]
        if row["seed"] == panels["b"][0]["seed"]
    ]
    points = [
        {"alpha": row["alpha"], "beta": row["beta"], "d": row["d"], "total": row["total"], "bits": row["bits"]}
        | {
            f"J({lag})": row["curve"][lag]
            for lag in (0, 1, n_units // 2, n_units - 1, n_units)
            if lag < len(row["curve"])
        }
        for row in panels["c"]
    ]
    tables = {"Exact root mean square of the norm, peak": peaks, "Fisher memory": points}
    return Measured(
        tables=tables,
        transients=panels["b"],
        memory=panels["c"],
        n_units=n_units,
    )


def _argmax(values: list[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def _name(row: dict[str, Any]) -> str:
    return f"alpha={row['alpha']}, beta={row['beta']}, d={row['d']}"


def judge_growth(summary: Measured) -> Judgement:
    """Each step of alpha and of beta makes every transient larger, until the rest of the triangle no longer acts."""
    exact = {(row["alpha"], row["beta"]): row["rms_norm"] for row in summary.transients}
    steps = [
        (("alpha", low, beta), (low, beta), (high, beta))
        for low, high in ((0.95, 1.0), (1.0, 1.05))
        for beta in (0.0, 0.005)
    ]
    steps += [(("beta", alpha, 0.0), (alpha, 0.0), (alpha, 0.005)) for alpha in (0.95, 1.0, 1.05)]
    rows = []
    for (name, first, second), low, high in steps:
        quantity = f"least growth by {name} from ({first}, {second})"
        if low in exact and high in exact:
            times = range(2, summary.n_units - 1)
            least = min(exact[high][t] / exact[low][t] for t in times)
            rows.append(Row(quantity, least, "above 1", "", agrees=least > 1))
        else:
            rows.append(Row(quantity, "not measured", "above 1", agrees=None))
    ratio = min((float(row.measured) for row in rows if row.agrees is not None), default=0.0)
    return judge(f"the smaller of two neighbours is exceeded by a factor of at least {ratio:.4f} at every step", rows)


def judge_end(summary: Measured) -> Judgement:
    """The state is exactly zero from step N on, and not one step before."""
    size = summary.n_units
    rows = []
    for row in summary.transients:
        last, after = row["rms_norm"][size - 1], max(row["mean_norm"][size:])
        rows.append(Row(f"norm at N-1, {_name(row)}", last, "above 0", "", agrees=last > 0))
        rows.append(Row(f"norm from N on, {_name(row)}", after, 0.0, 0.0))
    left = max((max(row["mean_norm"][size:]) for row in summary.transients), default=0.0)
    return judge(f"of {len(rows) // 2} transients at most {small(left)} is left from t = {size} on", rows)


def judge_sampling(summary: Measured) -> Judgement:
    """Sampled mean squares against the exact ones, in standard errors."""
    rows = []
    for row in summary.transients:
        pairs = zip(row["mean_square"], row["rms_norm"], row["error_square"], strict=True)
        worst = max(abs(mean - rms**2) / error for mean, rms, error in list(pairs)[1 : summary.n_units])
        rows.append(Row(f"largest deviation in standard errors, {_name(row)}", worst, 0.0, 5.0))
    worst = max((float(row.measured) for row in rows), default=0.0)
    return judge(f"largest deviation {worst:.2f} standard errors", rows)


def judge_normalisation(summary: Measured) -> Judgement:
    """Closed form of the delay line at the squared entry, and at the entry as the text has it."""
    lines = [row for row in summary.memory if "formula_squared" in row]

    def gap(row: dict[str, Any], name: str) -> float:
        return max(abs(a - b) for a, b in zip(row["curve"], row[name], strict=True))

    rows = [
        Row(f"formula at the squared entry, {_name(row)}", gap(row, "formula_squared"), 0.0, 1e-12) for row in lines
    ]
    printed = [Row(f"formula at the entry, {_name(row)}", gap(row, "formula_as_printed"), 0.0, 1e-4) for row in lines]
    worst = max((float(row.measured) for row in printed), default=0.0)
    right = max((float(row.measured) for row in rows), default=0.0)
    evidence = f"at the squared entry off by up to {small(right)}, at the entry itself by up to {worst:.3f}"
    return judge(evidence, printed, misprint("alpha stands for the squared entry of the sub-diagonal", rows))


def judge_most(summary: Measured) -> Judgement:
    """Memory of the first N lags: the strongest delay line against all others."""
    size = summary.n_units
    sums = {(row["alpha"], row["beta"], row["d"]): sum(row["curve"][:size]) for row in summary.memory}
    best = sums.get((1.05, 0.0, 0.0))
    if best is None:
        return judge("", [])

    def compare(keys: list[tuple[float, float, float]]) -> list[Row]:
        return [
            Row(f"sum up to N of {key}", sums[key], f"at most {best:.5f}", "", agrees=sums[key] <= best) for key in keys
        ]

    plain_lines = compare([key for key in sums if key[2] == 0])
    others = compare([key for key in sums if key[2] > 0])
    top = max(sums.values())
    evidence = f"{number(best)} for the line, at most {number(top)} with a diagonal"
    return judge(evidence, plain_lines + others, condition("among matrices without a diagonal", plain_lines))


def judge_beyond(summary: Measured) -> Judgement:
    """A diagonal keeps memory past lag N, where nilpotent matrices have none."""
    size = summary.n_units
    rows = []
    for row in summary.memory:
        value = row["curve"][size]
        wanted = "above 0.001" if row["d"] > 0 else "zero"
        agrees = value > 1e-3 if row["d"] > 0 else value == 0
        rows.append(Row(f"J(N), {_name(row)}", value, wanted, "", agrees=agrees))
    kept = [row["curve"][size] for row in summary.memory if row["d"] > 0]
    return judge(
        f"J(N) = {number(min(kept, default=0))} to {number(max(kept, default=0))} with a diagonal, 0 without", rows
    )


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Panels (b) and (c)."""
    from separatrix.report.figures.recurrent.memory import draw_memory_curves, draw_transients

    first = [row for row in summary.transients if row["seed"] == summary.transients[0]["seed"]]
    return {
        "transients": draw_transients(first, summary.n_units),
        "memory": draw_memory_curves(summary.memory, summary.n_units),
    }


EXPERIMENT = Experiment(
    name="kerg3-fig1",
    title="Transients and Fisher memory of triangular matrices",
    document="kerg2022",
    place="chapter 3, Fig. 1(b) and 1(c)",
    version=1,
    scales={
        "smoke": Settings(n_starts=200, with_diagonal=((1.05, 0.0, 0.2),)),
        "laptop": Settings(),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-ch3-fig1-growth",
            place="section 3.4, Fig. 1",
            statement="transients grow with alpha and with beta",
            measures="exact root mean square of the norm at steps 2 to N-2",
            test="larger at every step",
            judge=judge_growth,
            counterfeit=with_column(
                "transients", "rms_norm", lambda row: [1.0] * len(row["rms_norm"]), where=lambda row: row["alpha"] > 1
            ),
        ),
        Claim(
            id="kerg2022-ch3-fig1-end",
            place="section 3.4, Fig. 1",
            statement="transients end abruptly at step N",
            measures="norm at N-1 and from N on",
            test="exactly zero",
            judge=judge_end,
            counterfeit=with_column("transients", "mean_norm", lambda row: [1.0] * len(row["mean_norm"])),
        ),
        Claim(
            id="separatrix-ch3-fig1-sampling",
            document="separatrix",
            place="section 3.4, Fig. 1",
            statement="the sampled transients are the exact root mean square, ||Theta^t||_F / sqrt(N)",
            measures="mean square over starts",
            test="5 standard errors",
            judge=judge_sampling,
            counterfeit=with_column(
                "transients", "mean_square", lambda row: [2 * value for value in row["mean_square"]]
            ),
        ),
        Claim(
            id="kerg2022-ch3-fig1-normalisation",
            place="section 3.4, Fig. 1",
            statement="the memory curve of the delay line is alpha^k (alpha-1) / (alpha^(k+1)-1)",
            measures="largest difference over the lags",
            test="1e-12 at the squared entry",
            judge=judge_normalisation,
            counterfeit=with_column(
                "memory", "formula_squared", lambda row: [1.1 * value for value in row["formula_squared"]]
            ),
            erratum="kerg2022-normalisation",
        ),
        Claim(
            id="kerg2022-ch3-fig1-most",
            place="section 3.4, Fig. 1",
            statement="up to lag N the delay line with alpha > 1 retains the most memory",
            measures="sum of J(k) over k < N",
            test="no other sum is larger",
            judge=judge_most,
            counterfeit=with_column(
                "memory",
                "curve",
                lambda row: [20 * value for value in row["curve"]],
                where=lambda row: row["alpha"] < 1,
            ),
            erratum="kerg2022-delay-line-optimal",
        ),
        Claim(
            id="kerg2022-ch3-fig1-beyond",
            place="section 3.4, Fig. 1",
            statement="a diagonal extends memory beyond lag N",
            measures="J(N)",
            test="above 0.001, zero without",
            judge=judge_beyond,
            counterfeit=with_column(
                "memory", "curve", lambda row: [0.0] * len(row["curve"]), where=lambda row: row["d"] > 0
            ),
        ),
    ),
    draw=draw,
)
