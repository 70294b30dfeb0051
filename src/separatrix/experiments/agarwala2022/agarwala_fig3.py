"""agarwala2022, Figure 3: spectral radius of the Jacobian at the equilibrium of a hard-tanh network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from separatrix.lab import Cell, Claim, Experiment, Judgement, Payload, Row, crossed, groups, judge, spans, with_column

from .nonlinear import Measured, Settings, expand, grid, measure, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _tolerance(row: dict[str, Any], width: int) -> float:
    """Four standard errors, and the shift of the edge at finite width: of order N^(-1/2) or N^(-2/3)."""
    shift = width**-0.5 if row["family"] == "gaussian" else 1.5 * width ** (-2 / 3)
    return 4 * row["radius_se"] + 1.5 * shift * row["theory_radius"]


def _rows(summary: Measured, families: tuple[str, ...], theory: str) -> list[Row]:
    table = [
        r
        for r in summary.table("scales")
        if r["family"] in families and r["valid"] and r["theory_radius"] <= 0.9 and r["radius"] is not None
    ]
    return [
        Row(
            f"{r['family']} radius at sqrt(V) = {r['scale']:.3g}",
            r["radius"],
            r[theory],
            _tolerance(r, summary.width),
            spread=r["radius_se"],
        )
        for r in table
    ]


def judge_independent(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-fig3-independent``."""
    rows = _rows(summary, ("gaussian", "haar"), "theory_radius")
    return judge(f"{sum(bool(r.agrees) for r in rows)} of {len(rows)} radii agree with Eq. (30)", rows)


def judge_cavity(summary: Measured) -> Judgement:
    """Decide ``separatrix-cavity-radius``."""
    rows = _rows(summary, ("goe",), "theory_radius")
    plain = _rows(summary, ("goe",), "document_radius")
    agree, failed = sum(bool(r.agrees) for r in rows), sum(r.agrees is False for r in plain)
    return judge(
        f"cavity theory agrees at {agree} of {len(rows)} scales, 2 sqrt(V p) with a Gaussian field fails at {failed}",
        rows,
    )


def run(cell: Cell) -> Payload:
    """Simulated networks of one family and scale."""
    return measure(cell)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Spectral radius against the scale."""
    from separatrix.report.figures import deq

    return {"spectral-radius": deq.scale_curves(summary.table("scales"), "radius")}


EXPERIMENT = Experiment(
    name="agarwala-fig3",
    title="Spectral radius of the Jacobian, three families, simulation and two theories",
    document="agarwala2022",
    place="Figure 3",
    version=1,
    scales={
        "smoke": Settings(width=200, n_matrices=4, n_inputs=2, steps=200, scales=(0.2, 0.5, 0.9), radius_inputs=1),
        "laptop": Settings(width=500, n_matrices=8, n_inputs=4, steps=400, scales=grid(0.05, 1.5, 16), radius_inputs=1),
        "paper": Settings(scales=grid(0.05, 1.5, 25), n_inputs=4, radius_inputs=2),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-fig3-independent",
            place="Figure 3, Theorem 3.2",
            statement="r^2 = V E phi'^2 for independent and orthogonal weights, away from the transition",
            measures="largest |eigenvalue| of the Jacobian, averaged over matrices",
            test="within 4 standard errors and the shift of the edge at this width, radius up to 0.9",
            needs=(
                crossed("scales", "family", "scale"),
                spans("scales", "scale", 0.2, 0.9),
                groups("scales", "family", "gaussian", "haar"),
            ),
            judge=judge_independent,
            counterfeit=with_column(
                "scales", "radius", lambda row: 0.8 * row["radius"], lambda row: row["radius"] is not None
            ),
        ),
        Claim(
            id="separatrix-cavity-radius",
            document="separatrix",
            place="Eq. (30) and Figure 3 for symmetric weights",
            statement="the radius 2 sqrt(V p) holds for symmetric weights with p from the cavity equations",
            measures="largest |eigenvalue| of the Jacobian, averaged over matrices",
            test="within 4 standard errors and the shift of the edge at this width, radius up to 0.9",
            needs=(crossed("scales", "family", "scale"), spans("scales", "scale", 0.2, 0.9)),
            judge=judge_cavity,
            counterfeit=with_column(
                "scales", "radius", lambda row: 0.8 * row["radius"], lambda row: row["radius"] is not None
            ),
            erratum="agarwala2022-eq25-goe",
        ),
    ),
    draw=draw,
)
