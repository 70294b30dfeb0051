"""Cavity theory of nonlinear equilibrium networks against simulation, for families where a unit hears its own echo.

Error bars are over matrices, at least 20 of them at full scale; each matrix serves several inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core import spawn
from separatrix.core.wording import measured, number
from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, Summary, groups, judge, with_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASES = (
    ("goe", "hardtanh", 0.6),
    ("goe", "hardtanh", 0.4),
    ("goe", "tanh", 0.6),
    ("goe", "tanh", 0.8),
    ("elliptic:0.5", "hardtanh", 0.6),
    ("elliptic:0.5", "tanh", 0.8),
    ("elliptic:-0.5", "hardtanh", 0.6),
    ("elliptic:-0.5", "tanh", 0.6),
    ("antisymmetric", "hardtanh", 0.45),
    ("antisymmetric", "tanh", 0.8),
    ("symmetric-orthogonal", "hardtanh", 0.8),
    ("symmetric-orthogonal", "tanh", 0.8),
)


class Settings(Params):
    """Settings. The first case gets ``n_matrices``, the others ``n_matrices_others``."""

    width: int = 2000
    n_matrices: int = 20
    n_matrices_others: int = 20
    n_inputs: int = 16
    n_cases: int = len(CASES)


class Measured(Summary):
    """Width of the networks."""

    width: int


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per case, matrix and seed."""
    for seed in settings.seeds:
        for index, (family, phi, scale) in enumerate(CASES[: settings.n_cases]):
            for matrix in range(settings.n_matrices_others if index else settings.n_matrices):
                yield {
                    "family": family,
                    "phi": phi,
                    "scale": scale,
                    "width": settings.width,
                    "n_inputs": settings.n_inputs,
                    "matrix": matrix,
                    "seed": seed,
                }


def run(cell: Cell) -> Payload:
    """Variance of the field and spectral radius at the equilibria of one matrix."""
    import torch

    from separatrix.core.networks.activations import find_activation
    from separatrix.dynamics.solve.random_networks import network_equilibria, network_radius
    from separatrix.matrices.ensembles import find_ensemble

    args, phi = cell.args, find_activation(cell.args["phi"])
    generator = spawn(cell.seed, "deq-cavity", args["family"], args["phi"], str(args["scale"]), int(args["matrix"]))
    matrix = find_ensemble(args["family"]).sample(int(args["width"]), args["scale"] ** 2, generator=generator)
    x = torch.randn(int(args["n_inputs"]), int(args["width"]), generator=generator, dtype=torch.float64)
    # half steps also settle where eigenvalues are imaginary and larger than 1
    solution = network_equilibria(
        matrix, phi.phi, x, damping=0.5 if args["family"] == "antisymmetric" else 1.0, tol=1e-7, max_steps=2000
    )
    h = solution.value @ matrix.mT
    settled = ~torch.isnan(h[:, 0])
    first = h[settled][:1]
    return {
        "h_var": float(h[settled].square().mean()) if bool(settled.any()) else math.nan,
        "radius": network_radius(matrix, phi.dphi(first[0])) if len(first) else math.nan,
        "settled": int(settled.sum()),
        "steps": int(solution.steps.max()),
    }


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Means over matrices with their errors, beside the cavity theory."""
    from separatrix.matrices.ensembles import find_ensemble
    from separatrix.theory import mean_field

    gathered: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    for cell, payload in results:
        gathered.setdefault((cell.args["family"], cell.args["phi"], cell.args["scale"]), []).append(payload)
    width = int(results[0][0].args["width"]) if results else 0
    n_inputs = int(results[0][0].args["n_inputs"]) if results else 0
    rows = []
    for (family, phi, scale), payloads in gathered.items():
        theory = mean_field(find_ensemble(family), phi, weight_var=scale**2, input_var=1.0)
        row: dict[str, Any] = {"family": family, "phi": phi, "scale": scale, "matrices": len(payloads)}
        row["unsettled"] = sum(n_inputs - p["settled"] for p in payloads)
        for name in ("h_var", "radius"):
            values = [p[name] for p in payloads if p[name] == p[name]]
            row[name], row[f"{name}_spread"] = _mean_and_spread(values)
            row[f"{name}_se"] = (
                None if row[f"{name}_spread"] is None else row[f"{name}_spread"] / math.sqrt(len(values))
            )
        rows.append(row | {"theory_h_var": float(theory.h_var), "theory_radius": float(theory.radius)})
    return Measured(
        width=width,
        tables={"cases": rows},
    )


def _mean_and_spread(values: list[float]) -> tuple[float | None, float | None]:
    if len(values) < 2:
        return (values[0] if values else None), None
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _quantile(count: int) -> float:
    """Student's t: a deviation this many standard errors large happens once in a thousand (3.9 for 20 matrices)."""
    from scipy.stats import t

    return float(t.ppf(1 - 0.5e-3, count - 1))


def _variance_rows(table: Iterable[Mapping[str, Any]], width: int) -> list[Row]:
    return [
        Row(
            f"h.h/N, {r['family']} {r['phi']} at {r['scale']:g}",
            r["h_var"],
            r["theory_h_var"],
            _quantile(r["matrices"]) * r["h_var_se"] + 5 / width * r["theory_h_var"],
            spread=r["h_var_se"],
        )
        for r in table
        if r["h_var_se"] is not None
    ]


def _radius_rows(table: Iterable[Mapping[str, Any]], width: int) -> list[Row]:
    return [
        Row(
            f"radius, {r['family']} {r['phi']} at {r['scale']:g}",
            r["radius"],
            r["theory_radius"],
            _quantile(r["matrices"]) * r["radius_se"] + 1.5 * width ** (-2 / 3) * r["theory_radius"],
            spread=r["radius_spread"],
        )
        for r in table
        if r["radius_se"] is not None
    ]


def judge_headline(summary: Measured) -> Judgement:
    """Decide ``separatrix-cavity-goe``."""
    case = summary.table("cases")[:1]
    rows = _variance_rows(case, summary.width) + _radius_rows(case, summary.width)
    if not rows:
        return judge("", rows)
    r = case[0]
    evidence = (
        f"{r['matrices']} matrices of width {summary.width}: h.h/N = {measured(r['h_var'], r['h_var_se'])} "
        f"(theory {number(r['theory_h_var'], 4)}), radius {measured(r['radius'], r['radius_se'])} "
        f"(theory {number(r['theory_radius'], 4)})"
    )
    return judge(evidence, rows)


def judge_all_cases(summary: Measured) -> Judgement:
    """Decide ``separatrix-cavity-families``."""
    table, width = summary.table("cases"), summary.width
    rows = _variance_rows(table, width) + _radius_rows(table, width)
    return judge(f"{sum(bool(row.agrees) for row in rows)} of {len(rows)} comparisons agree", rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Measured quantities against theory."""
    from separatrix.report.figures import deq

    return {"cavity": deq.theory_against_simulation(summary.table("cases"))}


_TEST = "Student t over matrices at 0.1%, and 5/N (variance) or 1.5 N^(-2/3), the shift of the edge (radius)"

_ALL = (groups("cases", ("family", "phi"), *(case[:2] for case in CASES if case[0] != "goe")),)

EXPERIMENT = Experiment(
    name="deq-cavity",
    title="Cavity theory of nonlinear equilibrium networks against simulation",
    document="separatrix",
    place="nonlinear mean field",
    version=1,
    scales={
        "smoke": Settings(width=200, n_matrices=6, n_matrices_others=4, n_inputs=6, n_cases=5),
        "laptop": Settings(width=2000, n_matrices=20, n_matrices_others=6, n_inputs=8),
        "paper": Settings(),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-cavity-goe",
            statement="hard-tanh, symmetric weights, sqrt(V) = 0.6: variance and radius are those of the cavity theory",
            measures="h.h / N and spectral radius, mean over matrices",
            test=_TEST,
            needs=(groups("cases", ("family", "phi", "scale"), CASES[0]),),
            judge=judge_headline,
            counterfeit=with_column("cases", "h_var", lambda row: 1.1 * row["h_var"]),
            scale="laptop",
        ),
        Claim(
            id="separatrix-cavity-families",
            statement="the same for elliptic, antisymmetric and symmetric orthogonal weights",
            measures="h.h / N and spectral radius, mean over matrices",
            test=_TEST,
            needs=_ALL,
            judge=judge_all_cases,
            counterfeit=with_column("cases", "radius", lambda row: 1.2 * row["radius"]),
            scale="laptop",
        ),
    ),
    draw=draw,
)
