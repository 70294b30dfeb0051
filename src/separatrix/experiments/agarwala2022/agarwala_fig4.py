"""agarwala2022, Figure 4: does plain iteration settle? Change of h after many steps against the scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from separatrix.core.wording import number
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Payload,
    Row,
    Summary,
    crossed,
    judge,
    with_column,
    with_fields,
)

from .family_names import named
from .nonlinear import FAMILIES, Settings, expand, grid, measure, rows_by_scale
from .transition import unseen_sides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCUMENT_GOE_SCALE = 0.5257
"""sqrt(V) at which 2 sqrt(V p) with a Gaussian field reaches 1 for unit inputs: the document's threshold."""


class Measured(Summary):
    """Width, and sqrt(V) at the predicted transition of each family."""

    width: int
    critical_scale: dict[str, float]


def _critical(family: str) -> float:
    from separatrix.matrices.ensembles import find_ensemble
    from separatrix.theory import critical_weight_var

    return critical_weight_var(find_ensemble(family), "hardtanh", input_var=1.0) ** 0.5


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Means by family and scale, and the predicted scale at which each family stops to settle."""
    width, rows = rows_by_scale(results)
    return Measured(
        width=width,
        critical_scale={family: _critical(family) for family in FAMILIES},
        tables={"scales": rows},
    )


def judge_transition(family: str, below: float, above: float) -> Callable[[Measured], Judgement]:
    """Settled below one multiple of the predicted scale, not settled above another."""

    def judge_family(summary: Measured) -> Judgement:
        critical, width = summary.critical_scale[family], summary.width
        small = 1e-3 * width**0.5
        rows = []
        for r in (row for row in summary.table("scales") if row["family"] == family):
            if r["scale"] <= below * critical:
                rows.append(
                    Row(f"change at {r['scale']:.3g}", r["change"], f"below {small:.2g}", "", r["change"] < small)
                )
            elif r["scale"] >= above * critical:
                rows.append(
                    Row(f"change at {r['scale']:.3g}", r["change"], f"above {small:.2g}", "", r["change"] > small)
                )
        scales = [row["scale"] for row in summary.table("scales") if row["family"] == family]
        rows += unseen_sides(scales, below * critical, above * critical)
        wrong = [str(row.quantity) for row in rows if not row.agrees]
        evidence = (
            f"{named(family)}: predicted transition at sqrt(V) = {number(critical)}, "
            f"{len(rows) - len(wrong)} of {len(rows)} agree"
        )
        return judge(f"{evidence}{'; not the ' + ', '.join(wrong) if wrong else ''}", rows)

    return judge_family


def judge_early(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-fig4-early``."""
    small = 1e-3 * summary.width**0.5
    table = [
        r for r in summary.table("scales") if r["family"] == "goe" and 1.05 * DOCUMENT_GOE_SCALE <= r["scale"] <= 0.65
    ]
    rows = [
        Row(f"change at {r['scale']:.3g}", r["change"], f"below {small:.2g}", "", r["change"] < small) for r in table
    ]
    return judge(f"iteration still settles above the predicted {DOCUMENT_GOE_SCALE}", rows)


def run(cell: Cell) -> Payload:
    """Simulated networks of one family and scale."""
    return measure(cell)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Last change of h against the scale, with both thresholds."""
    from separatrix.report.figures import deq

    return {"convergence": deq.convergence(summary.table("scales"), summary.critical_scale, DOCUMENT_GOE_SCALE)}


_MEASURED = "|h_{t+1} - h_t| at the last step, averaged over inputs and matrices"

EXPERIMENT = Experiment(
    name="agarwala-fig4",
    title="Loss of convergence of plain iteration, with the thresholds of both theories",
    document="agarwala2022",
    place="Figure 4",
    version=1,
    scales={
        "smoke": Settings(width=150, n_matrices=4, n_inputs=4, steps=150, scales=(0.3, 0.6, 0.9, 1.2, 2.0, 2.4)),
        "laptop": Settings(width=400, n_matrices=8, n_inputs=16, steps=300, scales=grid(0.1, 2.4, 24)),
        "paper": Settings(scales=grid(0.1, 2.5, 25)),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-fig4-gaussian",
            statement="the loss of convergence of independent entries is predicted by the theory of its radius",
            measures=_MEASURED,
            test="below 1e-3 sqrt(N) up to 0.75 of the predicted scale, above it from 1.15 times that scale",
            needs=(crossed("scales", "family", "scale"),),
            judge=judge_transition("gaussian", 0.75, 1.15),
            counterfeit=with_fields(critical_scale=lambda found: {name: scale / 2 for name, scale in found.items()}),
            scale="laptop",
        ),
        Claim(
            id="agarwala2022-fig4-haar",
            statement="the loss of convergence of the orthogonal family is predicted by the theory of its radius",
            measures=_MEASURED,
            test="below 1e-3 sqrt(N) up to 0.75 of the predicted scale, above it from 1.15 times that scale",
            needs=(crossed("scales", "family", "scale"),),
            judge=judge_transition("haar", 0.75, 1.15),
            counterfeit=with_fields(critical_scale=lambda found: {name: scale / 2 for name, scale in found.items()}),
            scale="laptop",
        ),
        Claim(
            id="agarwala2022-fig4-early",
            statement="for symmetric weights free independence predicts the transition too early",
            measures="|h_{t+1} - h_t| at the last step between 0.55 and 0.65",
            test="below 1e-3 sqrt(N)",
            judge=judge_early,
            counterfeit=with_column("scales", "change", 1.0),
        ),
    ),
    draw=draw,
)
