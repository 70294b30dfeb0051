"""kerg2022, Proposition 3.4.2: powers with a unit spectrum grow like polynomials; products with masks need not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from separatrix.core.wording import number
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
    interval_row,
    judge,
    spans,
    with_fields,
    with_interval,
)

if TYPE_CHECKING:
    from torch import Tensor

RATES = "Growth of products a step, mean over draws with its 95 % interval"


class Settings(Params):
    """Exact powers, their growth, and products of masked matrices with a unit spectrum."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    n_units: int = 64
    spreads: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2)  # of the entries of T
    share_on: float = 0.9
    bias: float = -0.5  # of modReLU where masks are the network's own
    n_steps: int = 1500


class Measured(Summary):
    """Errors of the closed form, and the degree of growth."""

    formula_error: float
    n_compared: int
    wrong_degrees: int
    degree: float
    expected_degree: int
    largest_orthogonal_norm: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell for exact powers, and one per spread and seed for masked products."""
    yield {"kind": "powers"}
    kept = settings.model_dump(include={"n_units", "share_on", "bias", "n_steps"})
    for spread in settings.spreads:
        for seed in settings.seeds:
            yield {"kind": "masks", "spread": spread, "seed": seed, **kept}


def run(cell: Cell) -> Payload:
    """Exact arithmetic, or growth rates."""
    return _powers() if cell.args["kind"] == "powers" else _masks(cell)


def _powers(size: int = 6, most: int = 9) -> Payload:
    """The closed form against products of fractions; the degree of each entry in x; the growth at many steps."""
    import torch

    from separatrix import theory

    error, n_compared = Fraction(0), 0
    for entry in (Fraction(1, 3), Fraction(-5, 4)):
        row = [Fraction(j == 0) for j in range(size)]
        for power in range(1, most + 1):
            row = [row[j] + entry * sum(row[:j]) for j in range(size)]
            for offset in range(1, size):
                terms = _coefficients(offset, power)
                closed = sum((entry**degree * terms[degree] for degree in range(1, offset + 1)), Fraction(0))
                error, n_compared = max(error, abs(closed - row[offset])), n_compared + 1
    wrong = sum(_coefficients(offset, 40)[0] != 0 or not _is_bounded(offset) for offset in range(1, size))
    n_units = 50
    powers = torch.tensor([10**8, 2 * 10**8])
    corner = theory.unit_triangular_power(torch.tensor(0.02, dtype=torch.float64), torch.tensor(n_units - 1), powers)
    return {
        "error": float(error),
        "n_compared": n_compared,
        "wrong": wrong,
        "degree": math.log2(float(corner[1]) / float(corner[0])),
        "expected_degree": n_units - 1,
    }


def _coefficients(offset: int, power: int) -> list[int]:
    """Of the polynomial in x, by the recursion of the proof, in integers."""
    rows = [[1]] + [[0] * (offset + 1) for _ in range(offset)]
    for _ in range(power):
        rows = [_plus_x_times(rows, place) for place in range(offset + 1)]
    return (rows[offset] + [0] * (offset + 1))[: offset + 1]


def _plus_x_times(rows: Sequence[Sequence[int]], place: int) -> list[int]:
    """p_place + x (p_0 + ... + p_(place-1)), as coefficients."""
    found = [0] * (place + 1)
    for degree, value in enumerate(rows[place][: place + 1]):
        found[degree] += value
    for lower in range(place):
        for degree, value in enumerate(rows[lower]):
            if value:
                found[degree + 1] += value
    return found


def _is_bounded(offset: int) -> bool:
    """Whether each coefficient over its binomial in the power is the same number at every power: O(C(t, l))."""
    constants = []
    for power in (20, 40, 80):
        terms = _coefficients(offset, power)
        constants.append([Fraction(terms[degree], math.comb(power, degree)) for degree in range(1, offset + 1)])
    return all(row == constants[0] for row in constants)


def _masks(cell: Cell) -> Payload:
    import torch

    from separatrix.core.random import spawn

    args = cell.args
    generator = spawn(cell.seed, "kerg3-prop3-4-2", round(1000 * args["spread"]))
    matrix = _unit_spectrum(args["n_units"], args["spread"], generator)
    singular = float(torch.linalg.matrix_norm(matrix, 2))
    return {
        "independent": _growth(matrix, args, generator, own=False)["rate"],
        **{f"own {name}": value for name, value in _growth(matrix, args, generator, own=True).items()},
        "largest singular value": singular,
    }


def _unit_spectrum(n_units: int, spread: float, generator: Any) -> Tensor:
    """A matrix in Schur form with all eigenvalues on the unit circle, in a random basis."""
    import torch

    from separatrix import nn

    matrix = nn.NonNormalMatrix(n_units, start="haar", generator=generator, dtype=torch.float64).eval()
    with torch.no_grad():
        matrix.feedforward.normal_(0, spread, generator=generator) if spread else None
        return matrix()


def _growth(matrix: Tensor, args: Mapping[str, Any], generator: Any, *, own: bool) -> dict[str, float]:
    """Rate of growth a step of a product of masked matrices, over its second half; masks drawn, or the network's."""
    import torch

    from separatrix import nn

    size, n_steps = len(matrix), args["n_steps"]
    bias = torch.full((size,), args["bias"], dtype=torch.float64)
    state = torch.zeros(size, dtype=torch.float64)
    direction = torch.nn.functional.normalize(torch.randn(size, generator=generator, dtype=torch.float64), dim=0)
    total = on = 0.0
    for step in range(n_steps):
        if own:
            drive = torch.randn(size, generator=generator, dtype=torch.float64)
            state = nn.modrelu(matrix @ state + drive, bias)
            mask = (state != 0).to(torch.float64)
        else:
            mask = (torch.rand(size, generator=generator) < args["share_on"]).to(torch.float64)
        direction = mask * (matrix @ direction)
        length = float(direction.norm())
        direction = direction / length
        if 2 * step >= n_steps:
            total, on = total + math.log(length), on + float(mask.mean())
    n_counted = n_steps - n_steps // 2
    return {"rate": total / n_counted, "share on": on / n_counted, "state": float(state.norm())}


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Rates by spread, with intervals over draws."""
    from separatrix.training import spread

    exact = next(payload for cell, payload in results if cell.args["kind"] == "powers")
    masked = [(cell, payload) for cell, payload in results if cell.args["kind"] == "masks"]
    rows = []
    for value in dict.fromkeys(cell.args["spread"] for cell, _ in masked):
        same = [payload for cell, payload in masked if cell.args["spread"] == value]
        for masks, name in (("independent", "independent"), ("the network's own", "own rate")):
            found = spread([payload[name] for payload in same])
            share_on = sum(payload["own share on"] for payload in same) / len(same) if name == "own rate" else None
            row = {"spread": value, "masks": masks, "rate": found.mean, "low": found.low, "high": found.high}
            rows.append({**row, "share_on": share_on})
    orthogonal = [p["largest singular value"] for cell, p in masked if cell.args["spread"] == 0]
    return Measured(
        formula_error=exact["error"],
        n_compared=exact["n_compared"],
        wrong_degrees=exact["wrong"],
        degree=exact["degree"],
        expected_degree=exact["expected_degree"],
        largest_orthogonal_norm=max(orthogonal, default=math.nan),
        tables={RATES: rows},
    )


def judge_powers(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch3-prop3-4-2``."""
    rows = [
        Row("error of the closed form, in fractions", summary.formula_error, 0.0),
        Row("entries whose coefficients are not as stated", summary.wrong_degrees, 0),
        Row("degree of growth of the corner of a matrix of 50", summary.degree, summary.expected_degree, 1e-2),
    ]
    return judge(
        f"{summary.wrong_degrees} of {summary.n_compared} entries are not as stated, the closed form is off by "
        f"{number(summary.formula_error)}, and the corner grows with the degree {number(summary.degree, 4)}",
        rows,
    )


def _rows(summary: Measured, masks: str) -> list[dict[str, Any]]:
    return [dict(row) for row in summary.table(RATES) if row["masks"] == masks]


def judge_polynomial(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch3-polynomial``."""
    stated = [
        interval_row(f"rate with spread {row['spread']:g}", row["rate"], (row["low"], row["high"]), below=0.01)
        for row in _rows(summary, "independent")
    ]
    linear = [
        Row("degree of growth, linear network", summary.degree, summary.expected_degree, 1e-2),
        Row("norm of orthogonal matrices, which no mask raises", summary.largest_orthogonal_norm, 1.0, 1e-9),
    ]
    worst = max(_rows(summary, "independent"), key=lambda row: row["rate"])
    evidence = f"masked products grow by {worst['rate']:+.3f} a step at the spread {worst['spread']:g}"
    return judge(evidence, stated, condition("that holds where no unit switches off, or T = 0", linear))


def judge_own_masks(summary: Measured) -> Judgement:
    """Decide ``separatrix-ch3-own-masks``."""
    rows = [
        interval_row(f"rate with spread {row['spread']:g}", row["rate"], (row["low"], row["high"]), below=0.05)
        for row in _rows(summary, "the network's own")
    ]
    worst = max(_rows(summary, "the network's own"), key=lambda row: row["rate"])
    share = worst["share_on"]
    return judge(f"at most {worst['rate']:+.4f} a step, with {100 * share:.0f} per cent of units on", rows)


EXPERIMENT = Experiment(
    name="kerg3-prop3-4-2",
    title="Growth of products of matrices with a unit spectrum, with and without masks",
    document="kerg2022",
    place="Proposition 3.4.2",
    version=1,
    scales={
        "smoke": Settings(seeds=(0, 1, 2), spreads=(0.0, 0.1, 0.2), n_steps=600),
        "laptop": Settings(seeds=tuple(range(8)), n_steps=3000),
        "paper": Settings(seeds=tuple(range(20)), spreads=(0.0, 0.02, 0.05, 0.1, 0.2), n_steps=10_000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-ch3-prop3-4-2",
            statement="Entries of powers of a unit triangular matrix are polynomials in x whose coefficient of degree "
            "l is of the order of the binomial (t, l), and none of degree 0.",
            measures="powers in fractions against the closed form; coefficients by the recursion of the proof",
            test="exact; degree of growth to 1e-2",
            judge=judge_powers,
            counterfeit=with_fields(formula_error=0.5),
        ),
        Claim(
            id="kerg2022-ch3-polynomial",
            place="section 3.4.3",
            statement="With a unit spectrum gradients of the network grow at most polynomially.",
            measures="growth a step of products of the matrix with masks of units that are off",
            test="interval over draws below .01 a step",
            judge=judge_polynomial,
            counterfeit=with_fields(degree=100.0),
            erratum="kerg2022-polynomial",
        ),
        Claim(
            id="separatrix-ch3-own-masks",
            document="separatrix",
            place="our own, after Proposition 3.4.2",
            statement="Masks that a modReLU network driven by noise makes itself do not give exponential growth: where "
            "states grow, all units are on, and the network is linear.",
            measures="growth a step of the products along the network's own states, second half of the run",
            test="interval over draws below .05 a step",
            needs=(crossed(RATES, "spread", "masks"), spans(RATES, "spread", 0.0, 0.2)),
            judge=judge_own_masks,
            counterfeit=with_interval(RATES, 0.15, 0.25),
        ),
    ),
)
