"""agarwala2022, Figure 2: variance of the preactivations of a hard-tanh equilibrium network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Payload,
    Row,
    crossed,
    groups,
    interval_row,
    judge,
    spans,
    with_column,
)

from .nonlinear import Measured, Settings, expand, grid, measure, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _tolerance(row: dict[str, Any]) -> float:
    """Four standard errors over matrices, and 3% for the finite width."""
    return 4 * row["h_var_se"] + 0.03 * row["theory_h_var"]


def _settled(summary: Measured, families: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows where theory holds and the iteration has settled, radius at most 0.95."""
    rows = summary.table("scales")
    return [r for r in rows if r["family"] in families and r["valid"] and r["theory_radius"] <= 0.95]


def _rows(table: list[dict[str, Any]], theory: str) -> list[Row]:
    return [
        Row(
            f"{r['family']} h.h/N at sqrt(V) = {r['scale']:.3g}",
            r["h_var"],
            r[theory],
            _tolerance(r),
            spread=r["h_var_se"],
        )
        for r in table
    ]


def judge_independent(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-fig2-independent``."""
    table = _settled(summary, ("gaussian", "haar"))
    rows = _rows(table, "theory_h_var")
    return judge(f"{sum(bool(r.agrees) for r in rows)} of {len(rows)} scales agree with Eq. (25)", rows)


def judge_symmetric_is_larger(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-fig2-goe``."""
    table = [r for r in _settled(summary, ("goe",)) if r["scale"] >= 0.3]
    rows = [
        interval_row(
            f"h.h/N at sqrt(V) = {r['scale']:.3g}",
            r["h_var"],
            (r["h_var"] - 3 * r["h_var_se"], r["h_var"] + 3 * r["h_var_se"]),
            above=r["document_h_var"],
        )
        for r in table
    ]
    larger = sum(bool(row.agrees) for row in rows)
    return judge(f"larger than Eq. (25) says at {larger} of {len(rows)} scales from 0.3", rows)


def judge_cavity(summary: Measured) -> Judgement:
    """Decide ``separatrix-cavity-variance``."""
    table = _settled(summary, ("goe",))
    rows, plain = _rows(table, "theory_h_var"), _rows(table, "document_h_var")
    agree, failed = sum(bool(r.agrees) for r in rows), sum(r.agrees is False for r in plain)
    return judge(f"cavity theory agrees at {agree} of {len(rows)} scales, Eq. (25) fails at {failed}", rows)


def run(cell: Cell) -> Payload:
    """Simulated networks of one family and scale."""
    return measure(cell)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Variance of the preactivations against the scale."""
    from separatrix.report.figures import deq

    return {"field-variance": deq.scale_curves(summary.table("scales"), "h_var")}


_MEASURED = "h.h / N at the equilibrium, averaged over matrices"

EXPERIMENT = Experiment(
    name="agarwala-fig2",
    title="Variance of the preactivations, three families, simulation and two theories",
    document="agarwala2022",
    place="Figure 2",
    version=1,
    scales={
        "smoke": Settings(width=200, n_matrices=4, n_inputs=4, steps=200, scales=(0.2, 0.4, 0.6, 1.0)),
        "laptop": Settings(width=500, n_matrices=8, n_inputs=16, steps=400, scales=grid(0.05, 1.5, 16)),
        "paper": Settings(scales=grid(0.05, 1.5, 25)),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-fig2-independent",
            place="Figure 2, Theorem 3.1",
            statement="Eq. (25) predicts the variance for independent and orthogonal weights",
            measures=_MEASURED,
            test="within 4 standard errors over matrices and 3%, radius up to 0.95",
            needs=(
                crossed("scales", "family", "scale"),
                spans("scales", "scale", 0.2, 0.9),
                groups("scales", "family", "gaussian", "haar"),
            ),
            judge=judge_independent,
            counterfeit=with_column("scales", "h_var", lambda row: 1.2 * row["h_var"]),
        ),
        Claim(
            id="agarwala2022-fig2-goe",
            statement="for symmetric weights the variance is larger than Eq. (25) says",
            measures=_MEASURED,
            test="above the prediction by 3 standard errors at every scale from 0.3; refuted if one is below",
            needs=(crossed("scales", "family", "scale"), spans("scales", "scale", 0.2, 0.9)),
            judge=judge_symmetric_is_larger,
            counterfeit=with_column("scales", "h_var", lambda row: row["document_h_var"] - 9 * row["h_var_se"]),
        ),
        Claim(
            id="separatrix-cavity-variance",
            document="separatrix",
            place="Eq. (25) for symmetric weights",
            statement="with the reaction of a unit on itself the variance is predicted for symmetric weights too",
            measures=_MEASURED,
            test="within 4 standard errors over matrices and 3%, radius up to 0.95",
            needs=(crossed("scales", "family", "scale"), spans("scales", "scale", 0.2, 0.9)),
            judge=judge_cavity,
            counterfeit=with_column(
                "scales", "h_var", lambda row: row["document_h_var"], lambda row: row["family"] == "goe"
            ),
            erratum="agarwala2022-eq25-goe",
        ),
    ),
    draw=draw,
)
