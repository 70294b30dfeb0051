"""kerg2022, appendix B.1: every lemma on gradients of attentive recurrent networks, checked by another route."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.lab import Cell, Claim, Experiment, Judgement, Params, Payload, Row, condition, instead, judge, misprint

from .theorem_parts import Measured, Right, equality, put, worst_of, zeros

PARTS = ("paths", "parameters", "sums", "rates", "non-normal", "single")
EIGENVALUES = (0.2, 0.5, 0.8, -0.3, -0.5, -0.9, 0.3 + 0.6j, -0.2 + 0.7j)
SLOPE = 2e-3
"""The asymptote is reached to about 1e-3 of its exponent within the longest sequence."""
RATES = "Exponents of the gradient under even attention"


class Settings(Params):
    """Sizes of the small networks, of the enumerations and of the recursions."""

    seeds: tuple[int, ...] = (0, 1, 2)
    n_units: int = 4
    n_steps: int = 7
    longest_sum: int = 7
    n_long: int = 200_000


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per part and seed; what draws nothing has one seed."""
    common = settings.model_dump(exclude={"seeds"})
    for part in PARTS:
        for seed in settings.seeds if part in ("paths", "parameters", "non-normal") else settings.seeds[:1]:
            yield {**common, "part": part, "seed": seed}


def run(cell: Cell) -> Payload:
    """Numbers of one part."""
    from . import path_measures

    args = cell.args
    if args["part"] == "paths":
        return dict(path_measures.path_errors(cell.seed, args["n_units"], args["n_steps"]))
    if args["part"] == "parameters":
        return dict(path_measures.parameter_errors(cell.seed, args["n_units"], args["n_steps"]))
    parts = {"sums": _sums, "rates": _rates, "non-normal": _non_normal, "single": _single}
    return parts[args["part"]](cell)


def _sums(cell: Cell) -> Payload:
    from separatrix.core import spawn
    from separatrix.theory import uniform_attention_coefficients

    from . import coefficient_measures as sums
    from .path_measures import even_attention_error

    longest = cell.args["longest_sum"]
    cases = [(k, s, t) for t in (1, 2, 5) for k in range(1, longest + 1) for s in range(k + 1)]
    chi_error = max(
        abs(float(uniform_attention_coefficients(t, k)[s]) - float(sums.chi(k, s, t))) / float(sums.chi(k, s, t))
        for k, s, t in cases
    )
    held = [sums.bounds_hold(k, s, t) for k, s, t in cases if s >= 1 and t + k - s > 0]
    composed = [
        sum(sums.chi_from_theta(k, s, t, with_convention=convention) != sums.chi(k, s, t) for k, s, t in cases)
        for convention in (True, False)
    ]
    four = sums.omega_four(9, 2)
    psi, ordered, unordered = sums.psi_tables(7, 9, 2)
    omegas = [
        abs(float(_omega_from_psi(psi, s, 9, 2) - sums.omega(0, 9, s, 2))) / float(sums.omega(0, 9, s, 2))
        for s in range(1, 8)
    ]
    gaps = [sums.bound_gap(k, 3, 1) for k in (100, 10_000)]
    return {
        "chi": chi_error,
        "even_jacobian": max(
            even_attention_error(t, k, spawn(cell.seed, "kergB-theorems", "even attention", t, k))
            for t in (1, 2, 5)
            for k in range(longest + 1)
        ),
        "theta_bounds_broken": sum(not first for first, _ in held),
        "chi_bounds_broken": sum(not second for _, second in held),
        "composition_broken": composed[0],
        "composition_without_convention_broken": composed[1],
        "omega4": abs(float(four["correct"] / four["truth"]) - 1),
        "omega4_first_print": abs(float(four["first_print"] / four["truth"]) - 1),
        "omega4_second_print": abs(float(four["second_print"] / four["truth"]) - 1),
        "psi_ordered": max(abs(float(a - b)) for a, b in zip(psi, ordered, strict=True)),
        "psi_unordered": max(abs(float(a - b)) for a, b in zip(psi, unordered, strict=True)),
        "omega_from_psi": max(omegas),
        "bound_gap_short": gaps[0],
        "bound_gap_long": gaps[1],
    }


def _omega_from_psi(psi: Sequence[Any], s: int, k: int, t: int) -> Any:
    """Proposition B.1.25."""
    import math
    from fractions import Fraction

    from .coefficient_measures import power_sum

    first = power_sum(1, k, t)
    return sum((psi[s - r] * first**r / math.factorial(r) for r in range(s + 1)), Fraction(0))


def _rates(cell: Cell) -> Payload:
    import math

    from separatrix.theory import (
        uniform_attention_asymptote,
        uniform_attention_curve,
        uniform_attention_exponent,
        uniform_attention_norm,
    )

    rows, n_long = [], cell.args["n_long"]
    for value in EIGENVALUES:
        curve = uniform_attention_curve(value, 1, n_long)
        early, late = abs(complex(curve[n_long // 10])), abs(complex(curve[n_long]))
        slope = math.log(late / early) / math.log((1 + n_long) / (1 + n_long // 10))
        level = abs(complex(curve[n_long])) / abs(complex(uniform_attention_asymptote(value, 1, n_long)))
        printed = max(-1.0, value.real - 1)
        exponent = float(uniform_attention_exponent(value))
        rows.append(
            {"eigenvalue": str(value), "slope": slope, "exponent": exponent, "printed": printed, "level": level}
        )
    import torch

    spectrum = torch.tensor([-0.5, -0.3, -0.8], dtype=torch.float64)
    times = [T * float(uniform_attention_norm(spectrum, 1, T - 1)) for T in (50, 200, 800)]
    return {"rates": rows, "counterexample": times}


def _non_normal(cell: Cell) -> Payload:
    """Remark B.1.35: the eigenvalues bound the Frobenius norm from below for every V."""
    import torch

    from separatrix.core import spawn
    from separatrix.theory import uniform_attention_jacobian, uniform_attention_norm

    generator = spawn(cell.seed, "kergB-theorems", "non-normal")
    ratios = []
    for _ in range(20):
        V = torch.randn(5, 5, generator=generator, dtype=torch.float64)
        V = 0.8 * V / torch.linalg.eigvals(V).abs().max()
        norm = float(torch.linalg.matrix_norm(uniform_attention_jacobian(V, 1, 60)))
        ratios.append(float(uniform_attention_norm(torch.linalg.eigvals(V), 1, 60)) / norm)
    return {"eigenvalues_over_norm": max(ratios)}


def _single(cell: Cell) -> Payload:
    """Remark B.1.40: one attended state, followed step by step, against the closed form and the printed one."""
    from separatrix.theory import single_attention_gradient

    errors, printed = [], []
    for value in (0.6, -0.7, 0.4 + 0.5j):
        for degree, k in ((1, 12), (2, 15), (3, 20)):
            truth = _followed(value, k, degree)
            errors.append(abs(complex(single_attention_gradient(value, k, degree)) - truth) / abs(truth))
            quotient = value**degree * (1 - value ** (k - degree + 1)) / (1 - value)
            printed.append(abs(quotient - truth) / abs(truth))
    return {"single": max(errors), "single_printed": max(printed)}


def _followed(value: float | complex, k: int, degree: int) -> complex:
    """All later times attend to the state that d recurrent steps lead to; the start is attended to before that."""
    by_hidden = {0: 1.0 + 0j}
    state = 0j
    for time in range(k + 1):
        if time > 0:
            by_hidden[time] = value * state
        context = by_hidden[degree] if time >= degree else 0j
        state = by_hidden[time] + context
    return state


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """The worst numbers over seeds."""
    from separatrix.core import plain

    results = [(cell, plain(payload)) for cell, payload in results]
    numbers: dict[str, float] = {}
    for part in PARTS:
        numbers |= worst_of(results, part)
    rates = next(payload for cell, payload in results if cell.args["part"] == "rates")
    numbers["slope_error"] = max(abs(row["slope"] - row["exponent"]) for row in rates["rates"])
    numbers["printed_slope_error"] = max(abs(row["slope"] - row["printed"]) for row in rates["rates"])
    numbers["level_error"] = max(abs(row["level"] - 1) for row in rates["rates"])
    numbers["counterexample_first"], *_, numbers["counterexample_last"] = rates["counterexample"]
    return Measured(numbers=numbers, tables={RATES: rates["rates"]})


def judge_theorem(summary: Measured) -> Judgement:
    """Decide ``kerg2022-B-theorem34``."""
    first, last = summary.numbers["counterexample_first"], summary.numbers["counterexample_last"]
    rows = [
        Row(
            "T times the norm at T = 800 over that at T = 50, eigenvalues -.5, -.3, -.8",
            last / first,
            "at least .95: bounded below",
            agrees=last / first >= 0.95,
        )
    ]
    right = [Row("largest difference of a slope from the exponent", summary.numbers["slope_error"], 0.0, SLOPE)]
    evidence = f"T times the norm falls from {first:.3f} to {last:.3f} between T = 50 and 800"
    says = "of the order of 1/T or more exactly if an eigenvalue has |lambda - 1/2| <= 1/2; else T^(-3/2) is the floor"
    return judge(evidence, rows, instead(says, right))


def judge_gap(summary: Measured) -> Judgement:
    """Decide ``kerg2022-B-remark29``."""
    short, long = summary.numbers["bound_gap_short"], summary.numbers["bound_gap_long"]
    rows = [
        Row(
            "gap at k = 10,000 over that at k = 100 (t = 1, s = 3)", long / short, "below .5", agrees=long / short < 0.5
        )
    ]
    right = [Row("the gap at k = 10,000 is larger", long, f"above {short:.3g}", agrees=long > short)]
    return judge(
        f"the bounds are {short:.2f} apart at k = 100 and {long:.2f} at k = 10,000",
        rows,
        instead("for s = 2 it tends to a constant, for s = 3 it grows like a logarithm", right),
    )


def judge_non_normal(summary: Measured) -> Judgement:
    """Decide ``kerg2022-B-remark35``."""
    ratio = summary.numbers["eigenvalues_over_norm"]
    name = "largest ratio of the root of sum |p(lambda_i)|^2 to the Frobenius norm"
    return judge(f"{name} {ratio:.3f}", [Row(name, ratio, "at most 1", agrees=ratio <= 1 + 1e-9)])


def claim(id: str, place: str, statement: str, test: str, **rest: Any) -> Claim:
    """A claim on one item of the appendix."""
    return Claim(
        id=f"kerg2022-B-{id}", statement=statement, measures="see the evidence", test=test, place=place, **rest
    )


EXPERIMENT = Experiment(
    name="kergB-theorems",
    title="Lemmas on gradients of attentive recurrent networks",
    document="kerg2022",
    place="appendix B.1",
    version=2,
    scales={
        "smoke": Settings(seeds=(0,), n_units=3, n_steps=5, longest_sum=5, n_long=20_000),
        "laptop": Settings(),
        "paper": Settings(seeds=tuple(range(10)), n_units=8, n_steps=9, longest_sum=9, n_long=1_000_000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        equality(
            "kerg2022-B-prop7",
            "Lemmas B.1.1, B.1.4, B.1.5, Proposition B.1.7",
            "The total derivative of s_{t+k} by h_t is the sum over all chains of products of F and E.",
            {"paths": "all chains, one by one", "degrees": "the same by a recursion over degrees"},
        ),
        zeros(
            "kerg2022-B-lemma2",
            "Lemma B.1.2",
            "The Jacobian in the recursion is J_k = ds_{k+1}/dh_k.",
            "relative error at most 1e-12",
            {"printed_jacobian": "sum over paths with the printed J, relative error"},
            "error {printed_jacobian:small} with the printed J, {paths:small} with the right one",
            right=Right(misprint, "J_k is dh_{k+1}/ds_k", {"paths": "with J = dh_{k+1}/ds_k"}),
            erratum="kerg2022-lemma-b12",
        ),
        equality(
            "kerg2022-B-lemma9",
            "Lemma B.1.9, Remarks B.1.13 and B.1.14",
            "The partial derivative of s_t by s_{t-1} is the sum of alpha Y.",
            {"by_state": "closed form against autodiff, all t"},
        ),
        equality(
            "kerg2022-B-lemma10",
            "Lemma B.1.10, Corollary B.1.11, Proposition B.1.12, Remarks B.1.13 and B.1.14",
            "The partial derivative of s_k by h_j is 1[k = j] I + alpha (I + X).",
            {"by_hidden": "closed form against autodiff, all pairs"},
        ),
        equality(
            "kerg2022-B-lemma15",
            "Lemma B.1.15",
            "The gradient by parameters of the alignment is a sum weighted by attention.",
            {"alignment": "by W_a, U_a and v_a against autograd"},
        ),
        zeros(
            "kerg2022-B-lemma16",
            "Lemma B.1.16, Eq. (B.1.101)",
            "The gradient by V, U and b is the sum of [s, x, 1] dL/dh diag(phi'(a_t)).",
            "relative error at most 1e-12",
            {"recurrence_printed": "relative error with the slope at a_t"},
            "error {recurrence_printed:small} as printed, {recurrence:small} with phi'(a_{{t-1}})",
            right=Right(
                misprint,
                "the slope is taken at a_{t-1}, which leads to h_t",
                {"recurrence": "with the slope at a_{t-1} and the outer product turned round"},
            ),
            erratum="kerg2022-lemma-b116",
        ),
        equality(
            "kerg2022-B-remark19",
            "Remarks B.1.18, B.1.19 and B.1.20",
            "Under even attention ds_{t+k}/dh_t is a polynomial in V with the coefficients chi.",
            {
                "even_jacobian": "derivative of the recurrence by autodiff against powers of V times all chains",
                "chi": "recursion against all chains in rational numbers",
            },
        ),
        zeros(
            "kerg2022-B-remark22",
            "Remark B.1.22, Eqs. (B.1.143) and (B.1.144)",
            "omega(4) by power sums.",
            "relative error at most 1e-12",
            {
                "omega4_first_print": "relative error of Eq. (B.1.143)",
                "omega4_second_print": "relative error of Eq. (B.1.144)",
            },
            "off by {omega4_first_print:.1%} and {omega4_second_print:.1%} (t = 2, k = 9)",
            right=Right(
                misprint,
                "the constant is -(2 S4 + S2^2)/8: pairs of pairs were counted twice",
                {"omega4": "with -(2 S4 + S2^2)/8"},
            ),
            erratum="kerg2022-omega-4",
        ),
        zeros(
            "kerg2022-B-prop25",
            "Lemma B.1.23, Remark B.1.24, Proposition B.1.25, Remark B.1.26",
            "omega(s) is a polynomial in S_1 whose coefficients psi are sums over partitions.",
            "error at most 1e-12",
            {"psi_unordered": "largest error of psi by sums over partitions"},
            "partitions give psi off by {psi_unordered:small}, compositions by {psi_ordered:small}",
            right=Right(
                misprint,
                "the sum is over ordered compositions",
                {"psi_ordered": "sums over ordered compositions", "omega_from_psi": "omega from these psi"},
            ),
            erratum="kerg2022-psi",
        ),
        zeros(
            "kerg2022-B-lemma28-31",
            "Lemmas B.1.28 and B.1.31",
            "theta and chi lie between two sums of binomial coefficients and omega.",
            "no case breaks them (t = 1, 2, 5, in rational numbers)",
            {
                "theta_bounds_broken": "cases that break Lemma B.1.28",
                "chi_bounds_broken": "cases that break Lemma B.1.31",
            },
            "{theta_bounds_broken:.0f} and {chi_bounds_broken:.0f} cases break the two bounds",
            within=0.0,
        ),
        claim(
            "remark29",
            "Remark B.1.29",
            "The difference of the two bounds of theta converges to zero.",
            "the gap for t = 1, s = 3 at least halves from k = 100 to 10,000",
            judge=judge_gap,
            counterfeit=put(bound_gap_short=1.0, bound_gap_long=5.0),
            genuine=put(bound_gap_short=1.0, bound_gap_long=0.01),
            erratum="kerg2022-bound-gap",
        ),
        zeros(
            "kerg2022-B-remark30",
            "Remark B.1.30, Eq. (B.1.215)",
            "chi is a sum of theta.",
            "no case fails (rational numbers)",
            {"composition_without_convention_broken": "cases of Eq. (B.1.215) that fail"},
            "{composition_without_convention_broken:.0f} cases fail as stated, {composition_broken:.0f} with "
            "theta_{{0:0}}(0) = 1",
            within=0.0,
            right=Right(
                condition,
                "theta_{0:0}(0) = 1 is adopted as well",
                {"composition_broken": "cases that fail with theta_{0:0}(0) = 1"},
                0.0,
            ),
            erratum="kerg2022-theta-00",
        ),
        zeros(
            "kerg2022-B-prop33",
            "Lemma B.1.32, Proposition B.1.33",
            "Under even attention each eigenvalue contributes c/T + c' T^(lambda - 1).",
            "slopes of the exact recursion within .002 of it",
            {"printed_slope_error": "largest difference of a measured slope from max(-1, Re lambda - 1)"},
            "slopes differ by up to {printed_slope_error:.2f} from the printed exponents and {slope_error:small} from "
            "ours",
            within=SLOPE,
            right=Right(
                instead,
                "p ~ A T^(mu - 1), mu = lambda/(1 - lambda), without a term c/T",
                {
                    "slope_error": "largest difference from Re lambda/(1 - lambda) - 1",
                    "level_error": "largest relative difference from the level A",
                },
                SLOPE,
            ),
            erratum="kerg2022-uniform-rate",
        ),
        claim(
            "theorem34",
            "Theorem B.1.34",
            "Under even attention, for every normal V with spectral radius below 1, gradients fall no faster than 1/T.",
            "T times the norm does not fall by more than a twentieth from T = 50 to 800 for one such V",
            judge=judge_theorem,
            counterfeit=put(counterexample_first=0.2, counterexample_last=0.1),
            genuine=put(counterexample_first=0.2, counterexample_last=0.2),
            erratum="kerg2022-uniform-rate",
        ),
        claim(
            "remark35",
            "Remark B.1.35",
            "For a V that is not normal the eigenvalues bound the Frobenius norm from below.",
            "no ratio above 1",
            judge=judge_non_normal,
            counterfeit=put(eigenvalues_over_norm=1.5),
        ),
        zeros(
            "kerg2022-B-remark40",
            "Remark B.1.40, Eq. (B.1.291)",
            "Where one state is attended to, p = lambda^d (1 - lambda^(c - d + 1))/(1 - lambda).",
            "relative error at most 1e-9",
            {"single_printed": "relative error of Eq. (B.1.291)"},
            "error up to {single_printed:small} as printed, {single:small} with the recurrent path",
            within=1e-9,
            right=Right(
                misprint, "plus lambda^k, the path of recurrent steps alone", {"single": "with lambda^k added"}
            ),
            erratum="kerg2022-single-attention",
        ),
    ),
)
