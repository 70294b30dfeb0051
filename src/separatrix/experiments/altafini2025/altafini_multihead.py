"""altafini2025, section 7: several heads; consensus follows the sum of the value matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
    instead,
    judge,
    with_column,
)

from ..worst_case import highest


class Settings(Params):
    """Random heads; the document gives no sizes."""

    dim: int = 4
    heads: tuple[int, ...] = (1, 2, 3, 8)
    n_instances: int = 10
    n_starts: int = 16  # directions from which opposite groups are sought


class Measured(Summary):
    """A row per number of heads."""

    rows: list[dict[str, Any]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per seed and number of heads."""
    for seed in settings.seeds:
        for heads in settings.heads:
            yield {"seed": seed, "heads": heads, **settings.model_dump(exclude={"seeds", "heads"})}


def run(cell: Cell) -> Payload:
    """Consensus spectra against dense ones, and balanced opposite groups with their stability."""
    import torch

    from separatrix import dynamics, matrices, theory

    dim, heads = cell.args["dim"], cell.args["heads"]
    generator = spawn(cell.seed, "altafini-multihead", heads)
    shape = (cell.args["n_instances"], heads)
    drawn = matrices.attention_instance(dim, generator=generator, batch=shape)
    error, wrong, off_span, opposite, opposite_stable, slowest = 0.0, 0, 0.0, 0, 0, 0.0
    for couplings, values in zip(drawn.coupling, drawn.value, strict=True):
        flow = dynamics.AttentionFlow.from_coupling(couplings, values, heads=True)
        eigenvalues, vectors = torch.linalg.eigh(values.sum(0))
        for k in range(dim):
            state = vectors[:, dim - 1 - k].expand(4, dim)
            spectrum = theory.multihead_consensus_spectrum(values, k, 4)
            dense = torch.linalg.eigvals(flow.jacobian(state))
            error = highest(error, matrices.spectral_distance(spectrum.expand(), dense))
            expected = k == 0 and float(eigenvalues[-1]) > 0
            wrong += bool(dense.real.max() < 0) is not expected
        principal = torch.linalg.eigh(values)[1][:, :, -1]
        if heads < dim:
            rest = vectors[:, -1] - principal.mT @ torch.linalg.lstsq(principal.mT, vectors[:, -1:]).solution[:, 0]
            off_span = highest(off_span, float(rest.norm()))
        starts = torch.randn(cell.args["n_starts"], dim, dtype=torch.float64, generator=generator)
        found = theory.balanced_direction(couplings, values, starts)
        for vector in found.vector[~found.vector.isnan().any(-1)]:
            pair = torch.stack([vector, -vector])
            blocks = theory.multihead_cluster_spectrum(couplings, values, pair, [3, 3])
            slowest = highest(slowest, float(torch.as_tensor(blocks.residual)))
            opposite, opposite_stable = opposite + 1, opposite_stable + bool(blocks.stable)
    return {
        "error": error,
        "wrong": wrong,
        "off span": off_span,
        "opposite": opposite,
        "opposite stable": opposite_stable,
        "residual": slowest,
        "starts": cell.args["n_starts"] * cell.args["n_instances"],
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """A row per number of heads."""
    rows = [{"heads": cell.args["heads"], **payload} for cell, payload in results]
    return Measured(
        rows=rows,
        tables={"Several heads": rows},
    )


def judge_consensus(summary: Measured) -> Judgement:
    """Decide ``altafini2025-multihead-consensus``."""
    rows = summary.rows
    several = [row["off span"] for row in rows if row["heads"] > 1 and row["off span"] != 0]  # 0: not measured
    distance = highest(*several) if several else math.nan
    holds = [
        Row("largest error of an eigenvalue with the summed value matrix", max(r["error"] for r in rows), 0.0, 1e-10),
        Row("consensus points whose stability is not that of the sum", sum(r["wrong"] for r in rows), 0),
    ]
    printed = [
        Row(
            "distance of the consensus direction from the span of the heads' principal eigenvectors",
            distance,
            0.0,
            1e-6,
        )
    ]
    evidence = f"consensus lies up to {distance:.2f} off the span of the heads' principal eigenvectors"
    return judge(evidence, printed, instead("consensus sits on eigenvectors of the sum of the value matrices", holds))


def judge_opposite(summary: Measured) -> Judgement:
    """Decide ``separatrix-multihead-opposite``."""
    rows = [row for row in summary.rows if row["heads"] > 1]
    found, stable = sum(row["opposite"] for row in rows), sum(row["opposite stable"] for row in rows)
    holds = [
        Row("directions found", found, "some", agrees=found > 0),
        Row("stable ones among them", stable, "some", agrees=stable > 0),
        Row("largest speed of the tokens there", max(row["residual"] for row in rows), 0.0, 1e-9),
    ]
    return judge(f"{found} balanced opposite states found, {stable} of them stable", holds)


EXPERIMENT = Experiment(
    name="altafini-multihead",
    title="Several heads: consensus on the summed value matrix, and stable opposite groups",
    document="altafini2025",
    place="section 7, multi-head attention",
    version=1,
    scales={"smoke": Settings(n_instances=4), "laptop": Settings(n_instances=50), "paper": Settings(n_instances=200)},
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="altafini2025-multihead-consensus",
            place="section 7",
            statement="With several heads consensus stays asymptotically stable, on a combination of the heads' "
            "principal eigenvectors.",
            measures="dense spectra at the eigenvectors of the summed value matrix",
            test="eigenvalues to 1e-10; direction in the span of the heads' principal eigenvectors to 1e-6",
            judge=judge_consensus,
            counterfeit=with_column("rows", "error", 0.1),
            genuine=with_column("rows", "off span", 1e-12),
            erratum="altafini2025-E15",
        ),
        Claim(
            id="separatrix-multihead-opposite",
            document="separatrix",
            place="explanation/attention-equilibria",
            statement="Equal opposite groups rest on solutions of a nonlinear eigenproblem, and can be stable.",
            measures="directions found by Newton's method, and their block spectra",
            test="tokens rest to 1e-9; some are stable",
            judge=judge_opposite,
            counterfeit=with_column("rows", "opposite stable", 0),
        ),
    ),
)
