"""agarwala2022, sections 2.1 and 2.2: moments of linear equilibrium networks, tied and untied."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core import spawn
from separatrix.core.wording import measured
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
    crossed,
    groups,
    instead,
    judge,
    misprint,
    with_column,
)

from .family_names import named

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


class Settings(Params):
    """Settings; the theorems are for infinite width."""

    width: int = 600
    n_matrices: int = 12
    untied_width: int = 400
    untied_matrices: int = 16
    untied_steps: int = 60


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per family, weight variance and seed, tied and untied."""
    for seed in settings.seeds:
        for family, v in TIED:
            yield {"family": family, "weight_var": v, "tied": True, "seed": seed} | {
                "width": settings.width,
                "n_matrices": settings.n_matrices,
            }
        for family, v in UNTIED:
            yield {"family": family, "weight_var": v, "tied": False, "seed": seed} | {
                "width": settings.untied_width,
                "n_matrices": settings.untied_matrices,
                "steps": settings.untied_steps,
            }


def run(cell: Cell) -> Payload:
    """Moments of sampled matrices."""
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


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """Moments beside their closed forms."""
    from separatrix.matrices.ensembles import find_ensemble
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
    return Summary(tables={"moments": rows})


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


def _select(summary: Summary, tied: bool, quantities: tuple[str, ...], families: tuple[str, ...] = ()) -> list[Any]:
    return [
        row
        for row in summary.table("moments")
        if row["tied"] == tied and row["quantity"] in quantities and (not families or row["family"] in families)
    ]


def _count(rows: list[Row]) -> str:
    return f"{sum(bool(row.agrees) for row in rows)} of {len(rows)} moments agree"


def judge_independent(summary: Summary) -> Judgement:
    """Decide ``agarwala2022-eq8``."""
    rows = _agree(_select(summary, True, ("chi", "m1", "m2"), ("gaussian", "haar")))
    return judge(_count(rows), rows)


def judge_goe_second(summary: Summary) -> Judgement:
    """Decide ``agarwala2022-eq66``."""
    table = _select(summary, True, ("m1",), ("goe",))

    def printed(row: Mapping[str, Any]) -> float:
        root = math.sqrt(1 - 4 * row["weight_var"])
        return 1 / root - (1 - root) / (2 * row["weight_var"])

    rows = _agree(table)
    return judge(
        _count(rows), _agree(table, printed), misprint("the second moment is 2/(s(1 + s)) with s = sqrt(1 - 4V)", rows)
    )


def judge_mean(summary: Summary) -> Judgement:
    """Decide ``agarwala2022-eq9``."""
    table = _select(summary, True, ("chi",))
    rows = _agree(table)
    equal = _agree(table, lambda r: 1.0)
    others = ", ".join(
        f"{named(r['family'])} {measured(r['measured'], r['error'])}"
        for r, row in zip(table, equal, strict=True)
        if not row.agrees
    )
    truth = "the mean output is chi times the input, with chi = 1 only where the traces of all powers vanish"
    return judge(f"mean output over input differs from 1 for {others or 'no family'}", equal, condition(truth, rows))


def judge_goe_fourth(summary: Summary) -> Judgement:
    """Decide ``agarwala2022-eq20``."""
    table = _select(summary, True, ("m2",), ("goe",))

    def printed(row: Mapping[str, Any]) -> float:
        gap = 1 - 4 * row["weight_var"]
        return (gap**2.5 - gap**1.5) / (4 * row["weight_var"])

    rows = _agree(table)
    return judge(_count(rows), _agree(table, printed), misprint("the powers of 1 - 4V are -5/2 and -3/2", rows))


def _printed_untied(row: Mapping[str, Any]) -> float:
    v = float(row["weight_var"])
    if row["family"] == "haar":
        return 2 / (1 - v) ** 2 - 1 / (1 - v * v)
    return 2 / (1 - v) ** 2 + 1 / (1 - v * v) ** 2 - 2 / (1 - v * v)


def judge_untied(summary: Summary) -> Judgement:
    """Decide ``agarwala2022-eq14``."""
    table = _select(summary, False, ("m2",))
    rows = _agree(table)
    return judge(
        _count(rows), _agree(table, _printed_untied), instead("the closed forms of erratum agarwala2022-eq14", rows)
    )


def judge_other_families(summary: Summary) -> Judgement:
    """Decide ``separatrix-other-families``."""
    families = tuple({r["family"] for r in summary.table("moments")} - {"gaussian", "haar", "goe"})
    rows = _agree(_select(summary, True, ("chi", "m1", "m2"), families))
    return judge(_count(rows), rows)


def draw(summary: Summary) -> Mapping[str, Figure]:
    """Measured moments against closed forms."""
    from separatrix.report.figures import deq

    return {"moments": deq.moments([r for r in summary.table("moments") if r["quantity"] != "chi"])}


_INDEPENDENT = (
    groups(
        "moments",
        ("family", "weight_var", "quantity"),
        *itertools.product(("gaussian", "haar"), (0.2, 0.5), ("chi", "m1", "m2")),
    ),
)
_OTHERS = (crossed("moments", "family", "quantity", weight_var=0.3),)
_MEASURED = "normalised traces of sampled matrices"
_TEST = "within 4 standard errors over matrices and 2% (10% for a fourth moment above 30)"

EXPERIMENT = Experiment(
    name="agarwala-theorems",
    title="Moments of linear equilibrium networks, tied and untied",
    document="agarwala2022",
    place="sections 2.1, 2.2 and appendix A",
    version=2,
    scales={
        "smoke": Settings(width=200, n_matrices=6, untied_width=150, untied_matrices=6, untied_steps=50),
        "laptop": Settings(),
        "paper": Settings(width=1200, n_matrices=40, untied_width=600, untied_matrices=64, untied_steps=120),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-eq8",
            place="Eqs. (8), (18), (19)",
            statement="moments of independent and orthogonal weights",
            measures=_MEASURED,
            test=_TEST,
            needs=_INDEPENDENT,
            judge=judge_independent,
            counterfeit=with_column("moments", "measured", lambda row: 1.3 * row["measured"] + 1),
        ),
        Claim(
            id="agarwala2022-eq66",
            place="Eqs. (11), (66)",
            statement="second moment of symmetric weights",
            measures=_MEASURED,
            test=_TEST,
            judge=judge_goe_second,
            counterfeit=with_column("moments", "measured", lambda row: 1.3 * row["measured"] + 1),
            erratum="agarwala2022-eq66",
        ),
        Claim(
            id="agarwala2022-eq9",
            place="Eq. (9), A.3",
            statement="the mean output equals the input for every rotation-invariant family",
            measures=_MEASURED,
            test=_TEST,
            judge=judge_mean,
            counterfeit=with_column("moments", "measured", lambda row: 1.3 * row["measured"] + 1),
            erratum="agarwala2022-eq9",
        ),
        Claim(
            id="agarwala2022-eq20",
            place="Eq. (20)",
            statement="length variance of symmetric weights",
            measures=_MEASURED,
            test=_TEST,
            judge=judge_goe_fourth,
            counterfeit=with_column("moments", "measured", lambda row: 1.3 * row["measured"] + 1),
            erratum="agarwala2022-eq20",
        ),
        Claim(
            id="agarwala2022-eq14",
            place="Eqs. (14), (15)",
            statement="length variance of untied weights",
            measures=_MEASURED,
            test=_TEST,
            judge=judge_untied,
            counterfeit=with_column("moments", "measured", lambda row: 1.3 * row["measured"] + 1),
            genuine=with_column("moments", "measured", _printed_untied, lambda row: not row["tied"]),
            erratum="agarwala2022-eq14",
        ),
        Claim(
            id="separatrix-other-families",
            document="separatrix",
            place="linear moments",
            statement="closed forms for elliptic, antisymmetric and symmetric orthogonal weights",
            measures=_MEASURED,
            test=_TEST,
            needs=(
                *_OTHERS,
                groups("moments", "family", "elliptic:-0.5", "elliptic:0.5", "antisymmetric", "symmetric-orthogonal"),
            ),
            judge=judge_other_families,
            counterfeit=with_column("moments", "measured", lambda row: 1.3 * row["measured"] + 1),
        ),
    ),
    draw=draw,
)
