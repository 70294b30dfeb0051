"""agarwala2022, sections 2.1 and 2.2: moments of linear equilibrium networks, tied and untied, and their divergence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core import spawn
from separatrix.lab.experiment.cell import Cell
from separatrix.lab.experiment.claim import Claim, Judgement, Row, judge
from separatrix.lab.experiment.definition import Experiment, Params

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIED = (
    ("goe", 0.05),
    ("goe", 0.1),
    ("goe", 0.2),
    ("gaussian", 0.2),
    ("haar", 0.2),
    ("gaussian", 0.5),
    ("haar", 0.5),
    ("elliptic:0.5", 0.3),
    ("elliptic:-0.5", 0.3),
    ("antisymmetric", 0.3),
    ("symmetric-orthogonal", 0.3),
)
UNTIED = (("gaussian", 0.5), ("goe", 0.5), ("haar", 0.5), ("gaussian", 0.7), ("goe", 0.7), ("haar", 0.7))


class TheoremParams(Params):
    """Settings; the theorems are for infinite width."""

    width: int = 600
    n_matrices: int = 12
    untied_width: int = 400
    untied_matrices: int = 16
    untied_steps: int = 60


def _expand(params: TheoremParams) -> Iterable[Mapping[str, Any]]:
    for seed in params.seeds:
        for family, v in TIED:
            yield {"family": family, "weight_var": v, "tied": True, "seed": seed} | {
                "width": params.width,
                "n_matrices": params.n_matrices,
            }
        for family, v in UNTIED:
            yield {"family": family, "weight_var": v, "tied": False, "seed": seed} | {
                "width": params.untied_width,
                "n_matrices": params.untied_matrices,
                "steps": params.untied_steps,
            }


def _run(cell: Cell) -> dict[str, Any]:
    import torch

    from separatrix.matrices.ensembles import find_ensemble

    args = cell.args
    ensemble, width, v = find_ensemble(args["family"]), int(args["width"]), args["weight_var"]
    measured: dict[str, list[float]] = {"chi": [], "m1": [], "m2": []}
    eye = torch.eye(width, dtype=torch.float64)
    for index in range(int(args["n_matrices"])):
        generator = spawn(cell.seed, "agarwala-theorems", args["family"], index)
        if args["tied"]:
            response = torch.linalg.inv(eye - ensemble.sample(width, v, generator=generator))
        else:
            response = eye
            for _ in range(int(args["steps"])):
                response = eye + ensemble.sample(width, v, generator=generator) @ response
        measured["chi"].append(float(response.diagonal().mean()))
        measured["m1"].append(float(response.square().sum() / width))
        measured["m2"].append(float((response @ response.mT).square().sum() / width))
    return measured


def _summarise(results: Sequence[tuple[Cell, dict[str, Any]]]) -> dict[str, Any]:
    from separatrix.matrices.ensembles import GOE, Gaussian, Haar, find_ensemble
    from separatrix.theory.equilibrium_networks import linear as linear_deq

    rows = []
    for cell, payload in results:
        ensemble, v, tied = find_ensemble(cell.args["family"]), cell.args["weight_var"], cell.args["tied"]
        expected = {
            "chi": linear_deq.mean_response(ensemble, v) if tied else 1.0,
            "m1": linear_deq.resolvent_moment(ensemble, v, 1, tied),
            "m2": linear_deq.resolvent_moment(ensemble, v, 2, tied),
        }
        for quantity, values in payload.items():
            mean = sum(values) / len(values)
            spread = math.sqrt(sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1))
            rows.append(
                {
                    "family": cell.args["family"],
                    "weight_var": v,
                    "tied": tied,
                    "quantity": quantity,
                    "measured": mean,
                    "error": spread / math.sqrt(len(values)),
                    "theory": expected[quantity],
                }
            )
    exponents = [
        {
            "family": e.name,
            "tied": tied,
            "order": order,
            "exponent": linear_deq.divergence_exponent(e, order, tied=tied),
        }
        for e in (Gaussian(), Haar(), GOE())
        for tied in (True, False)
        for order in (1, 2)
    ]
    return {"tables": {"moments": rows, "divergence exponents": exponents}}


def _agree(rows: Iterable[Mapping[str, Any]], expected: Any = None) -> list[Row]:
    """Rows within 4 standard errors and 2% (10% for a fourth moment close to criticality)."""
    compared = []
    for row in rows:
        value = row["theory"] if expected is None else expected(row)
        near = row["quantity"] == "m2" and row["theory"] > 30
        compared.append(
            Row(
                f"{row['quantity']} {row['family']} V = {row['weight_var']:g}{'' if row['tied'] else ' untied'}",
                row["measured"],
                value,
                4 * row["error"] + (0.1 if near else 0.02) * abs(row["theory"]),
                spread=row["error"],
            )
        )
    return compared


def _select(
    summary: dict[str, Any], tied: bool, quantities: tuple[str, ...], families: tuple[str, ...] = ()
) -> list[Any]:
    return [
        row
        for row in summary["tables"]["moments"]
        if row["tied"] == tied and row["quantity"] in quantities and (not families or row["family"] in families)
    ]


def _count(rows: list[Row]) -> str:
    return f"{sum(row.agrees for row in rows)} of {len(rows)} moments agree"


def _judge_independent(summary: dict[str, Any]) -> Judgement:
    rows = _agree(_select(summary, True, ("chi", "m1", "m2"), ("gaussian", "haar")))
    return judge(_count(rows), rows)


def _judge_goe_second(summary: dict[str, Any]) -> Judgement:
    table = _select(summary, True, ("m1",), ("goe",))

    def printed(row: Mapping[str, Any]) -> float:
        root = math.sqrt(1 - 4 * row["weight_var"])
        return 1 / root - (1 - root) / (2 * row["weight_var"])

    rows = _agree(table)
    return judge(_count(rows), rows, printed=_agree(table, printed))


def _judge_mean(summary: dict[str, Any]) -> Judgement:
    table = _select(summary, True, ("chi",))
    rows = _agree(table)
    return judge(
        "the mean output is chi x, and chi is not 1 for symmetric matrices", rows, printed=_agree(table, lambda r: 1.0)
    )


def _judge_goe_fourth(summary: dict[str, Any]) -> Judgement:
    table = _select(summary, True, ("m2",), ("goe",))

    def printed(row: Mapping[str, Any]) -> float:
        gap = 1 - 4 * row["weight_var"]
        return (gap**2.5 - gap**1.5) / (4 * row["weight_var"])

    rows = _agree(table)
    return judge(_count(rows), rows, printed=_agree(table, printed))


def _judge_untied(summary: dict[str, Any]) -> Judgement:
    table = _select(summary, False, ("m2",))

    def printed(row: Mapping[str, Any]) -> float:
        v = row["weight_var"]
        if row["family"] == "haar":
            return 2 / (1 - v) ** 2 - 1 / (1 - v * v)
        return 2 / (1 - v) ** 2 + 1 / (1 - v * v) ** 2 - 2 / (1 - v * v)

    rows = _agree(table)
    return judge(_count(rows), rows, printed=_agree(table, printed))


def _judge_exponents(tied: bool, document: Mapping[str, float], ours: Mapping[str, float]) -> Any:
    def judged(summary: dict[str, Any]) -> Judgement:
        table = [row for row in summary["tables"]["divergence exponents"] if row["tied"] == tied and row["order"] == 2]
        rows = [Row(f"exponent {r['family']}", r["exponent"], ours[r["family"]]) for r in table]
        printed = [Row(f"exponent {r['family']} as printed", r["exponent"], document[r["family"]]) for r in table]
        return judge(", ".join(f"{r['family']} {r['exponent']:g}" for r in table), rows, printed=printed)

    return judged


def _judge_other_families(summary: dict[str, Any]) -> Judgement:
    families = tuple({r["family"] for r in summary["tables"]["moments"]} - {"gaussian", "haar", "goe"})
    rows = _agree(_select(summary, True, ("chi", "m1", "m2"), families))
    return judge(_count(rows), rows)


def _draw(summary: dict[str, Any]) -> Mapping[str, Figure]:
    from separatrix.report.figures import deq

    return {"moments": deq.moments([r for r in summary["tables"]["moments"] if r["quantity"] != "chi"])}


def _claim(
    name: str, place: str, statement: str, judged: Any, erratum: str | None = None, document: str = "agarwala2022"
) -> Claim:
    return Claim(
        id=f"{document}-{name}",
        document=document,
        place=place,
        statement=statement,
        measures="normalised traces of sampled matrices",
        test="within 4 standard errors over matrices and 2% (10% for a fourth moment above 30)",
        judge=judged,
        erratum=erratum,
    )


_TIED_EXPONENTS = {"gaussian": 4.0, "haar": 3.0, "goe": 2.5}

EXPERIMENT = Experiment(
    name="agarwala-theorems",
    title="Moments of linear equilibrium networks, tied and untied, and how they diverge",
    document="agarwala2022",
    place="sections 2.1, 2.2 and appendix A",
    version=1,
    scales={
        "smoke": TheoremParams(width=200, n_matrices=6, untied_width=150, untied_matrices=6, untied_steps=50),
        "laptop": TheoremParams(),
        "paper": TheoremParams(width=1200, n_matrices=40, untied_width=600, untied_matrices=64, untied_steps=120),
    },
    expand=_expand,
    run=_run,
    summarise=_summarise,
    claims=(
        _claim("eq8", "Eqs. (8), (18), (19)", "moments of independent and orthogonal weights", _judge_independent),
        _claim("eq66", "Eqs. (11), (66)", "second moment of symmetric weights", _judge_goe_second, "agarwala2022-eq66"),
        _claim("eq9", "Eq. (9), A.3", "the mean output is proportional to the input", _judge_mean, "agarwala2022-eq9"),
        _claim("eq20", "Eq. (20)", "length variance of symmetric weights", _judge_goe_fourth, "agarwala2022-eq20"),
        _claim("eq14", "Eqs. (14), (15)", "length variance of untied weights", _judge_untied, "agarwala2022-eq14"),
        _claim(
            "exponents-tied",
            "section 2.2.3",
            "tied length variance diverges with exponents 4, 3 and 5/2",
            _judge_exponents(True, _TIED_EXPONENTS, _TIED_EXPONENTS),
        ),
        _claim(
            "exponents-untied",
            "section 2.2.3",
            "untied length variance diverges with exponent 2 whatever the family",
            _judge_exponents(False, dict.fromkeys(_TIED_EXPONENTS, 2.0), {"gaussian": 3.0, "goe": 3.0, "haar": 2.0}),
            "agarwala2022-sec223-untied",
        ),
        _claim(
            "other-families",
            "linear moments",
            "closed forms for elliptic, antisymmetric and symmetric orthogonal weights",
            _judge_other_families,
            document="separatrix",
        ),
    ),
    draw=_draw,
)
