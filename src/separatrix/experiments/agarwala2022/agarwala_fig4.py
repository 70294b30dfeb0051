"""agarwala2022, Figure 4: does plain iteration settle? Change of h after many steps against the scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from separatrix.lab.experiment.cell import Cell
from separatrix.lab.experiment.claim import Claim, Judgement, Row, judge
from separatrix.lab.experiment.definition import Experiment

from . import nonlinear as shared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCUMENT_GOE_SCALE = 0.5257
"""sqrt(V) at which 2 sqrt(V p) with a Gaussian field reaches 1 for unit inputs: the document's threshold."""


def _critical(family: str) -> float:
    from separatrix.matrices.ensembles import find_ensemble
    from separatrix.theory import critical_weight_var

    return critical_weight_var(find_ensemble(family), "hardtanh", input_var=1.0) ** 0.5


def _summarise(results: Any) -> dict[str, Any]:
    summary = shared.summarise(results)
    summary["critical_scale"] = {family: _critical(family) for family in shared.FAMILIES}
    return summary


def _transition(family: str, below: float, above: float) -> Any:
    """Settled below one multiple of the predicted scale, not settled above another."""

    def judged(summary: dict[str, Any]) -> Judgement:
        critical, width = summary["critical_scale"][family], summary["width"]
        small = 1e-3 * width**0.5
        rows = []
        for r in (row for row in summary["tables"]["scales"] if row["family"] == family):
            if r["scale"] <= below * critical:
                rows.append(
                    Row(f"change at {r['scale']:.3g}", r["change"], f"below {small:.2g}", "", r["change"] < small)
                )
            elif r["scale"] >= above * critical:
                rows.append(
                    Row(f"change at {r['scale']:.3g}", r["change"], f"above {small:.2g}", "", r["change"] > small)
                )
        return judge(f"{family}: predicted transition at sqrt(V) = {critical:.4g}", rows)

    return judged


def _early(summary: dict[str, Any]) -> Judgement:
    small = 1e-3 * summary["width"] ** 0.5
    table = [
        r
        for r in summary["tables"]["scales"]
        if r["family"] == "goe" and 1.05 * DOCUMENT_GOE_SCALE <= r["scale"] <= 0.65
    ]
    rows = [
        Row(f"change at {r['scale']:.3g}", r["change"], f"below {small:.2g}", "", r["change"] < small) for r in table
    ]
    return judge(f"iteration still settles above the predicted {DOCUMENT_GOE_SCALE}", rows)


def _run(cell: Cell) -> dict[str, Any]:
    return shared.run(cell)


def _draw(summary: dict[str, Any]) -> Mapping[str, Figure]:
    from separatrix.report.figures import deq

    return {"convergence": deq.convergence(summary["tables"]["scales"], summary["critical_scale"], DOCUMENT_GOE_SCALE)}


def _claim(family: str, below: float, above: float) -> Claim:
    return Claim(
        id=f"agarwala2022-fig4-{family}",
        document="agarwala2022" if family != "goe" else "separatrix",
        place="Figure 4",
        statement=f"the loss of convergence of the {family} family is predicted by the theory of its radius",
        measures="|h_{t+1} - h_t| at the last step, averaged over inputs and matrices",
        test=f"below 1e-3 sqrt(N) up to {below} of the predicted scale, above it from {above} times that scale",
        judge=_transition(family, below, above),
        scale="laptop",
    )


EXPERIMENT = Experiment(
    name="agarwala-fig4",
    title="Loss of convergence of plain iteration, with the thresholds of both theories",
    document="agarwala2022",
    place="Figure 4",
    version=1,
    scales={
        "smoke": shared.NonlinearParams(
            width=150, n_matrices=4, n_inputs=4, steps=150, scales=(0.3, 0.6, 0.9, 1.2, 2.0, 2.4)
        ),
        "laptop": shared.NonlinearParams(
            width=400, n_matrices=8, n_inputs=16, steps=300, scales=shared.grid(0.1, 2.4, 24)
        ),
        "paper": shared.NonlinearParams(scales=shared.grid(0.1, 2.5, 25)),
    },
    expand=shared.expand,
    run=_run,
    summarise=_summarise,
    claims=(
        _claim("gaussian", 0.75, 1.15),
        _claim("haar", 0.75, 1.15),
        _claim("goe", 0.65, 1.6),
        Claim(
            id="agarwala2022-fig4-early",
            document="agarwala2022",
            place="Figure 4",
            statement="for symmetric weights free independence predicts the transition too early",
            measures="|h_{t+1} - h_t| at the last step between 0.55 and 0.65",
            test="below 1e-3 sqrt(N)",
            judge=_early,
        ),
    ),
    draw=_draw,
)
