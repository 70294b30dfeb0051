"""agarwala2022, Figure 4 for symmetric weights: equilibria by Newton's method near the edge, and their stability.

Plain iteration slows down near the edge and stops at its last step whatever the equilibrium is. Here equilibria of
h = W (phi(h) + x) are followed from small scales upwards by Newton's method with a line search, and an equilibrium
counts as one on which iteration settles if the radius of its Jacobian is below one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core import spawn
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, judge, with_column

if TYPE_CHECKING:
    from torch import Tensor

TABLE = "equilibria"
BAND = (0.75, 1.15)
"""Multiples of the predicted scale below and above which a prediction must hold, as for the other families."""


class Settings(Params):
    """Scales around the predicted edge, followed upwards for each matrix."""

    width: int = 2000
    n_matrices: int = 3
    scales: tuple[float, ...] = (0.5, 0.7, 0.76, 0.9, 1.0, 1.05, 1.1, 1.18, 1.3)
    max_steps: int = 25


class Measured(Summary):
    """Width, and sqrt(V) at the predicted transition."""

    width: int
    critical_scale: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per matrix."""
    for seed in settings.seeds:
        for index in range(settings.n_matrices):
            yield {"index": index, "seed": seed, **settings.model_dump(exclude={"seeds", "n_matrices"})}


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
    from separatrix.theory import critical_weight_var

    rows = [
        {
            "matrix": cell.args["index"],
            "seed": cell.seed,
            **row,
            "settles": row["residual"] < 1e-9 and row["radius"] < 1,
        }
        for cell, payload in results
        for row in payload["found"]
    ]
    return Measured(
        width=int(results[0][0].args["width"]),
        critical_scale=float(critical_weight_var(GOE(), "hardtanh", input_var=1.0)) ** 0.5,
        tables={TABLE: rows},
    )


def judge_edge(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-fig4-goe``."""
    critical, rows, words = summary.critical_scale, [], []
    table = summary.table(TABLE)
    for scale in sorted({row["scale"] for row in table}):
        own = [row for row in table if row["scale"] == scale]
        settled = sum(row["settles"] for row in own)
        words.append(f"{scale:g}: {settled} of {len(own)}")
        if scale <= BAND[0] * critical:
            rows.append(Row(f"matrices that settle at {scale:g}", settled, len(own)))
        elif scale >= BAND[1] * critical:
            rows.append(Row(f"matrices that settle at {scale:g}", settled, 0))
    return judge(
        f"predicted edge {critical:.4f}, width {summary.width}; matrices that settle, {', '.join(words)}", rows
    )


EXPERIMENT = Experiment(
    name="agarwala-goe-edge",
    title="Symmetric weights near the edge: equilibria by Newton's method, and whether iteration settles on them",
    document="agarwala2022",
    place="Figure 4",
    version=1,
    scales={
        "smoke": Settings(width=120, n_matrices=2, scales=(0.5, 0.7, 1.3)),
        "laptop": Settings(),
        "paper": Settings(width=4000, n_matrices=10, max_steps=40),
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
            test="all settle up to 0.75 of the predicted scale, none from 1.15 times that scale",
            judge=judge_edge,
            counterfeit=with_column(TABLE, "settles", lambda row: row["scale"] > 1),
            genuine=with_column(TABLE, "settles", lambda row: row["scale"] < 1),
            scale="laptop",
        ),
    ),
)
