"""altafini2025, Theorem 2: its inequalities as printed and corrected, and our criterion, against exact spectra."""

from __future__ import annotations

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
    condition,
    judge,
    misprint,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CRITERIA = ("printed", "corrected", "one-line criterion")


class Settings(Params):
    """Random bipartite points; the document gives no experiment for the theorem."""

    dim: int = 3
    n_points: int = 100  # per split and eigenvector
    splits: tuple[tuple[int, int], ...] = ((2, 2), (2, 3), (3, 3), (2, 6), (4, 5), (1, 1), (1, 3), (1, 6))


class Measured(Summary):
    """Decisions by split, and stable instances of consensus by eigenvector."""

    rows: list[dict[str, int]]
    consensus: list[dict[str, int]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per seed and split."""
    for seed in settings.seeds:
        for n1, n2 in settings.splits:
            yield {"seed": seed, "n1": n1, "n2": n2, "dim": settings.dim, "n_points": settings.n_points}


def run(cell: Cell) -> Payload:
    """Decisions of each criterion and of the dense tangent Jacobian, at random points on every eigenvector."""
    import torch

    from separatrix import dynamics, matrices, theory

    n1, n2, dim, count = (cell.args[name] for name in ("n1", "n2", "dim", "n_points"))
    drawn = matrices.attention_instance(dim, generator=spawn(cell.seed, "altafini-theorem2", n1, n2), batch=(count,))
    eigenvalues, vectors = torch.linalg.eigh(drawn.value)
    eigenvalues, vectors = eigenvalues.flip(-1), vectors.flip(-1)
    signs = torch.tensor([1.0] * n1 + [-1.0] * n2, dtype=torch.float64)
    flow = dynamics.AttentionFlow.from_coupling(drawn.coupling, drawn.value)
    counts = {f"{name} wrong": 0 for name in CRITERIA} | {"printed stable wrongly": 0, "stable": 0, "points": 0}
    consensus = []
    for k in range(dim):
        strength = torch.einsum("ia,iab,ib->i", vectors[..., k], drawn.coupling, vectors[..., k])
        points = signs[:, None] * vectors[..., None, :, k]
        dense = torch.linalg.eigvals(flow.jacobian(points)).real.amax(-1)
        truth, clear = dense < 0, dense.abs() > 1e-7
        found = {
            "printed": theory.theorem2_printed(eigenvalues, k, strength, n1, n2),
            "corrected": theory.theorem2_corrected(eigenvalues, k, strength, n1, n2),
            "one-line criterion": theory.is_stable(eigenvalues, k, strength, n1, n2),
        }
        for name, decision in found.items():
            counts[f"{name} wrong"] += int(((decision != truth) & clear).sum())
        counts["printed stable wrongly"] += int((found["printed"] & ~truth & clear).sum())
        counts["stable"] += int((truth & clear).sum())
        counts["points"] += int(clear.sum())
        agreed = torch.linalg.eigvals(flow.jacobian(signs.abs()[:, None] * vectors[..., None, :, k])).real.amax(-1)
        consensus.append([int((agreed < 0).sum()), count])
    return {**counts, "consensus": consensus}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Disagreements by split, and consensus by eigenvector."""
    rows = [
        {"n1": cell.args["n1"], "n2": cell.args["n2"]} | {k: v for k, v in payload.items() if k != "consensus"}
        for cell, payload in results
    ]
    dim = results[0][0].args["dim"]
    consensus = [
        {
            "k": k + 1,
            "stable": sum(payload["consensus"][k][0] for _, payload in results),
            "instances": sum(payload["consensus"][k][1] for _, payload in results),
        }
        for k in range(dim)
    ]
    return Measured(
        rows=rows,
        consensus=consensus,
        tables={"Decisions against the dense spectrum": rows, "Consensus by eigenvector": consensus},
    )


def _total(summary: Measured, column: str, *, single: bool) -> int:
    chosen = [row for row in summary.rows if (min(row["n1"], row["n2"]) == 1) is single]
    return sum(row[column] for row in chosen)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Wrong decisions of each criterion."""
    from separatrix.report.figures.attention import disagreements

    bars = {}
    for name in CRITERIA:
        bars[f"{name}, two or more per group"] = _total(summary, f"{name} wrong", single=False)
        bars[f"{name}, one token alone"] = _total(summary, f"{name} wrong", single=True)
    points = sum(row["points"] for row in summary.rows)
    return {"disagreements": disagreements(bars, points, "Theorem 2 against exact spectra")}


def _wrong(summary: Measured, quantity: str, column: str, *, single: bool) -> Row:
    """No point decided wrongly; nothing is known where no point was looked at."""
    looked = _total(summary, "points", single=single) > 0
    wrong = _total(summary, column, single=single)
    return Row(quantity, wrong, 0) if looked else Row(quantity, wrong, 0, "no point was looked at", None)


def judge_inequalities(summary: Measured) -> Judgement:
    """Decide ``altafini2025-theorem2-inequalities``."""
    points = _total(summary, "points", single=False)
    printed = _total(summary, "printed wrong", single=False)
    rows = [_wrong(summary, "corrected inequalities decided wrongly", "corrected wrong", single=False)]
    return judge(
        f"of {points} points the printed pair (9) errs on {printed}, the corrected pair on "
        f"{_total(summary, 'corrected wrong', single=False)}",
        [_wrong(summary, "printed inequalities decided wrongly", "printed wrong", single=False)],
        misprint("the pair (9) with its signs right, as erratum E12 has it", rows),
    )


def judge_single(summary: Measured) -> Judgement:
    """Decide ``altafini2025-theorem2-single``."""
    wrong = _total(summary, "corrected wrong", single=True)
    points = _total(summary, "points", single=True)
    rows = [_wrong(summary, "wrong with two tokens or more per group", "corrected wrong", single=False)]
    return judge(
        f"with one token alone the condition delta_l lambda_k > 0 excludes {wrong} of {points} points wrongly",
        [*rows, _wrong(summary, "wrong with one token alone", "corrected wrong", single=True)],
        condition("with two tokens or more in each group", rows),
    )


def judge_criterion(summary: Measured) -> Judgement:
    """Decide ``separatrix-criterion-theorem2``."""
    rows = [
        _wrong(summary, f"wrong, {text}", "one-line criterion wrong", single=single)
        for single, text in ((False, "two or more per group"), (True, "one token alone"))
    ]
    points = sum(row["points"] for row in summary.rows)
    stable = sum(row["stable"] for row in summary.rows)
    return judge(f"{points} points, {stable} of them stable", rows)


def judge_consensus(summary: Measured) -> Judgement:
    """Decide ``altafini2025-theorem2-consensus``."""
    rows = [
        Row(f"consensus stable on v_{row['k']}", row["stable"], row["instances"] if row["k"] == 1 else 0)
        for row in summary.consensus
    ]
    first = [row for row in summary.consensus if row["k"] == 1]
    stable, asked = (sum(row[name] for row in first) for name in ("stable", "instances"))
    elsewhere = sum(row["stable"] for row in summary.consensus if row["k"] != 1)
    return judge(f"stable on v_1 in {stable} of {asked} instances and {elsewhere} times elsewhere", rows)


EXPERIMENT = Experiment(
    name="altafini-theorem2",
    title="Stability of bipartite consensus: printed, corrected and simplified conditions against exact spectra",
    document="altafini2025",
    place="Theorem 2",
    version=1,
    scales={"smoke": Settings(), "laptop": Settings(n_points=1000), "paper": Settings(n_points=1000, seeds=(0, 1, 2))},
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="altafini2025-theorem2-consensus",
            statement="Consensus on the principal eigenvector is always stable, on the others never.",
            measures="dense tangent abscissa at consensus",
            test="no exception",
            judge=judge_consensus,
            counterfeit=with_column("consensus", "stable", lambda row: row["instances"]),
        ),
        Claim(
            id="altafini2025-theorem2-inequalities",
            place="Theorem 2, Eq. (9)",
            statement="A bipartite consensus is stable iff delta_l lambda_k > 0 and inequalities (9) hold.",
            measures="points decided against the dense spectrum, two tokens or more in each group",
            test="zero",
            judge=judge_inequalities,
            counterfeit=with_column("rows", "corrected wrong", 5),
            erratum="altafini2025-E12",
        ),
        Claim(
            id="altafini2025-theorem2-single",
            statement="delta_l lambda_k > 0 for both groups is necessary for stability.",
            measures="points decided against the dense spectrum by the corrected theorem",
            test="zero; counterexamples with a single token",
            judge=judge_single,
            counterfeit=with_column("rows", "corrected wrong", 5),
            erratum="altafini2025-E13",
        ),
        Claim(
            id="separatrix-criterion-theorem2",
            document="separatrix",
            place="explanation/attention-equilibria",
            statement="lambda_k c > 0 and max lambda_j < H |lambda_k| decide every case, single tokens included.",
            measures="points decided against the dense spectrum",
            test="zero",
            judge=judge_criterion,
            counterfeit=with_column("rows", "one-line criterion wrong", 1),
        ),
    ),
    draw=draw,
)
