"""agarwala2022, section 2.2.3: exponents with which the length variance diverges, measured on sampled matrices.

No closed form of the trace enters. At each distance delta from the transition the mean logarithm of the trace over
matrices is taken at two widths and extrapolated to infinite width (corrections of order 1/N); a power law with smooth
corrections, ``log m = a - p log(delta) + c delta + d delta^2``, is fitted to the result. The corrections c and d are
drawn towards zero with standard deviation 1 where traces are noisy (tied), and 4 where they are not (untied). The
spread of p is that over matrices drawn anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    groups,
    instead,
    judge,
    with_column,
)

from .family_names import named

if TYPE_CHECKING:
    import numpy

FAMILIES = ("gaussian", "haar", "goe")
CRITICAL = {"gaussian": 1.0, "haar": 1.0, "goe": 0.25}
"""V at which the radius of a tied linear layer reaches one; untied layers lose stability at V = 1 in every family."""
TABLE = "exponents"
DRAWS_ANEW = 300


class Settings(Params):
    """Widths and numbers of matrices; the smaller width serves the extrapolation only.

    The larger scales use other matrices (seed 2) than those on which estimator and rule were chosen (seeds 0 and 1).
    """

    widths: tuple[int, int] = (400, 800)
    symmetric_widths: tuple[int, int] = (1500, 3000)  # their eigenvalues are drawn without the matrix
    untied_widths: tuple[int, int] = (80, 160)
    n_matrices: int = 12  # of the larger width, twice as many of the smaller
    n_varied: int = 40  # where traces vary most: tied and independent, untied and not orthogonal
    n_deltas: int = 7


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per family, tied or untied, and width."""
    for seed in settings.seeds:
        for family in FAMILIES:
            for tied in (True, False):
                own = settings.symmetric_widths if family == "goe" else settings.widths
                widths = own if tied else settings.untied_widths
                # the edge of independent entries fluctuates most, so that the window begins further out
                low, high = (0.15, 0.8) if tied and family == "gaussian" else (0.05, 0.5)
                deltas = [low * (high / low) ** (k / (settings.n_deltas - 1)) for k in range(settings.n_deltas)]
                varied = family == "gaussian" if tied else family != "haar"
                count = settings.n_varied if varied else settings.n_matrices
                for width, factor in zip(widths, (2, 1), strict=True):
                    yield {
                        "family": family,
                        "tied": tied,
                        "width": width,
                        "n_matrices": factor * count,
                        "deltas": deltas,
                        "seed": seed,
                    }


def run(cell: Cell) -> Payload:
    """The normalised trace of (M^T M)^2 for every matrix and distance, M the map from input to output."""
    import torch

    args = cell.args
    traces = torch.empty(int(args["n_matrices"]), len(args["deltas"]), dtype=torch.float64)
    for index in range(len(traces)):
        generator = spawn(cell.seed, "agarwala-exponents", args["family"], args["tied"], args["width"], index)
        measure = _tied if args["tied"] else _untied
        traces[index] = measure(args["family"], int(args["width"]), args["deltas"], generator)
    return {"traces": traces}


def _tied(family: str, width: int, deltas: Sequence[float], generator: Any) -> Any:
    """One matrix at every distance; symmetric and orthogonal ones through their eigenvalues."""
    import torch

    from separatrix.matrices import ensembles

    v = CRITICAL[family] * (1 - torch.tensor(deltas, dtype=torch.float64))
    if family == "goe":
        values = ensembles.goe_eigenvalues(width, generator=generator)
        return (1 - v.sqrt()[:, None] * values).pow(-4).mean(-1)
    if family == "haar":
        cosines = ensembles.haar_cosines(width, generator=generator)
        return (1 + v[:, None] - 2 * v.sqrt()[:, None] * cosines).pow(-2).mean(-1)
    matrix = ensembles.find_ensemble(family).sample(width, 1.0, generator=generator)
    eye = torch.eye(width, dtype=torch.float64)
    return torch.stack([_fourth(torch.linalg.inv(eye - root * matrix)) for root in v.sqrt()])


def _untied(family: str, width: int, deltas: Sequence[float], generator: Any) -> Any:
    """Fresh matrices at every step, until what is left of the first is below a thousandth."""
    import torch

    from separatrix.matrices.ensembles import find_ensemble

    eye, ensemble, traces = torch.eye(width, dtype=torch.float64), find_ensemble(family), []
    for delta in deltas:
        response = eye
        for _ in range(math.ceil(math.log(1e-3) / math.log(1 - delta))):
            response = eye + ensemble.sample(width, 1 - delta, generator=generator) @ response
        traces.append(_fourth(response))
    return torch.stack(traces)


def _fourth(response: Any) -> Any:
    return (response @ response.mT).square().sum() / len(response)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Summary:
    """The fitted exponent of each family, tied and untied, with its spread."""
    import numpy

    gathered: dict[tuple[str, bool], dict[int, list[Any]]] = {}
    deltas: dict[tuple[str, bool], list[float]] = {}
    for cell, payload in results:
        key = (cell.args["family"], cell.args["tied"])
        gathered.setdefault(key, {}).setdefault(int(cell.args["width"]), []).append(numpy.asarray(payload["traces"]))
        deltas[key] = cell.args["deltas"]
    rows = []
    for (family, tied), by_width in gathered.items():
        small, large = (numpy.concatenate(by_width[width]) for width in sorted(by_width))
        exponent, spread = _exponent(numpy.asarray(deltas[family, tied]), small, large, 1.0 if tied else 4.0)
        rows.append({"family": family, "tied": tied, "matrices": len(large), "exponent": exponent, "spread": spread})
    return Summary(tables={TABLE: rows})


def _exponent(
    delta: numpy.ndarray, small: numpy.ndarray, large: numpy.ndarray, corrections: float
) -> tuple[float, float]:
    """The exponent, and its standard deviation over matrices drawn anew."""
    import numpy

    random = numpy.random.default_rng(0)

    def drawn(traces: numpy.ndarray) -> numpy.ndarray:
        return traces[random.integers(0, len(traces), len(traces))]

    heights = numpy.stack([_limit(drawn(small), drawn(large)) for _ in range(DRAWS_ANEW)])
    errors = heights.std(0)
    anew = [_fit(delta, height, errors, corrections) for height in heights]
    return _fit(delta, _limit(small, large), errors, corrections), float(numpy.std(anew))


def _limit(small: numpy.ndarray, large: numpy.ndarray) -> numpy.ndarray:
    """Mean logarithm of the trace, extrapolated from a width and twice that width to infinity."""
    import numpy

    return 2 * numpy.log(large).mean(0) - numpy.log(small).mean(0)


def _fit(delta: numpy.ndarray, height: numpy.ndarray, errors: numpy.ndarray, corrections: float) -> float:
    """Weighted least squares with corrections c and d drawn towards zero with a standard deviation."""
    import numpy

    weights = 1 / numpy.hypot(errors, 0.003)
    columns = numpy.stack([numpy.ones_like(delta), -numpy.log(delta), delta, delta**2], 1) * weights[:, None]
    prior = numpy.diag([0.0, 0.0, 1.0, 1.0])[2:] / corrections
    system, goal = numpy.concatenate([columns, prior]), numpy.concatenate([height * weights, numpy.zeros(2)])
    return float(numpy.linalg.lstsq(system, goal, rcond=None)[0][1])


def _rows(table: Iterable[Mapping[str, Any]], expected: Mapping[str, float], rivals: set[float]) -> list[Row]:
    """Within three spreads and 0.1; no answer where a rival lies there as well."""
    rows = []
    for row in table:
        room, value = 3 * row["spread"] + 0.1, expected[row["family"]]
        near = {exponent for exponent in rivals | {value} if abs(row["exponent"] - exponent) <= room}
        agrees = None if value in near and len(near) > 1 else value in near
        rows.append(Row(f"exponent, {row['family']}", row["exponent"], value, room, agrees, spread=row["spread"]))
    return rows


def judge_exponents(
    tied: bool, printed: Mapping[str, float], ours: Mapping[str, float] | None = None
) -> Callable[[Summary], Judgement]:
    """Decide ``agarwala2022-exponents-tied`` and ``agarwala2022-exponents-untied``."""

    def judge_families(summary: Summary) -> Judgement:
        table = [row for row in summary.table(TABLE) if row["tied"] == tied]
        found = ", ".join(f"{named(row['family'])} {measured(row['exponent'], row['spread'])}" for row in table)
        truth, rivals = None, {*printed.values(), *(ours or printed).values()}
        if ours is not None:
            right = ", ".join(f"{ours[row['family']]:g} ({named(row['family'])})" for row in table)
            truth = instead(f"the exponents are {right}", _rows(table, ours, rivals))
        return judge(f"fitted exponents: {found}", _rows(table, printed, rivals), truth)

    return judge_families


_TIED = {"gaussian": 4.0, "haar": 3.0, "goe": 2.5}
_UNTIED = dict.fromkeys(FAMILIES, 2.0)
_MEASURED = "slope of the extrapolated trace of the fourth order against the distance, on logarithmic axes"
_TEST = "within 3 spreads and 0.1; cannot tell where an exponent of another family, or ours, lies there too"

EXPERIMENT = Experiment(
    name="agarwala-exponents",
    title="How fast the length variance of linear equilibrium networks diverges",
    document="agarwala2022",
    place="section 2.2.3",
    version=1,
    scales={
        "smoke": Settings(
            widths=(60, 120), symmetric_widths=(60, 120), untied_widths=(16, 32), n_matrices=4, n_deltas=4
        ),
        "laptop": Settings(seeds=(2,)),
        "paper": Settings(
            widths=(1500, 3000),
            symmetric_widths=(5000, 10000),
            untied_widths=(300, 600),
            n_matrices=32,
            n_deltas=9,
            seeds=(2,),
        ),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="agarwala2022-exponents-tied",
            statement="tied length variance diverges with exponents 4, 3 and 5/2",
            measures=_MEASURED,
            test=_TEST,
            needs=(groups("exponents", "family", "gaussian", "haar", "goe"),),
            judge=judge_exponents(True, _TIED),
            counterfeit=with_column(TABLE, "exponent", 2.0),
            genuine=with_column(TABLE, "exponent", lambda row: _TIED[row["family"]]),
            scale="laptop",
        ),
        Claim(
            id="agarwala2022-exponents-untied",
            statement="untied length variance diverges with exponent 2 whatever the family",
            measures=_MEASURED,
            test=_TEST,
            needs=(groups("exponents", "family", "gaussian", "haar", "goe"),),
            judge=judge_exponents(False, _UNTIED, {"gaussian": 3.0, "goe": 3.0, "haar": 2.0}),
            counterfeit=with_column(TABLE, "exponent", 4.0),
            genuine=with_column(TABLE, "exponent", 2.0),
            erratum="agarwala2022-sec223-untied",
            scale="laptop",
        ),
    ),
)
