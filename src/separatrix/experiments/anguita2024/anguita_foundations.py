"""anguita2024, Theorems 2.2.2 to 2.2.5, 3.2.2, 3.4.2, 4.1.1 and 4.2.2, Algorithms 1 and 2, Figure 3.1, Table 3.3."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from separatrix.core import spawn
from separatrix.core.wording import small
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    instead,
    judge,
    misprint,
    with_entry,
)

from ..worst_case import Measured, highest, judge_limits, lowest, worst_of_all
from .theorem_checks import DRAWN, LEAST, SAMPLED


class Settings(Params):
    """Draws for each statement."""

    n_draws: int = 5
    n_samples: int = 2000  # random layers


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per statement and seed."""
    for seed in settings.seeds:
        for part in (*DRAWN, *SAMPLED):
            yield {"part": part, "seed": seed, "n_draws": settings.n_draws, "n_samples": settings.n_samples}


def run(cell: Cell) -> Payload:
    """The worst of several draws of one statement."""
    part, generator = cell.args["part"], spawn(cell.seed, "anguita-foundations", cell.args["part"])
    if part in SAMPLED:
        return SAMPLED[part](generator, cell.args["n_samples"])
    draws = [DRAWN[part](generator) for _ in range(cell.args["n_draws"])]
    return {name: (lowest if name in LEAST else highest)(*(draw[name] for draw in draws)) for name in draws[0]}


def judge_stable_form(summary: Measured) -> Judgement:
    """Decide ``anguita2024-thm2.2.5``."""
    found = summary.parts["stable form"]
    printed = [
        Row("relative error without the inverse", found["without the inverse"], 0.0, 1e-7),
        Row("relative error with the printed exponent", found["with the printed exponent"], 0.0, 1e-7),
    ]
    right = [Row("relative error with both corrected", found["corrected"], 0.0, 1e-7)]
    evidence = (
        f"relative errors {small(found['without the inverse'])} without the inverse, "
        f"{small(found['with the printed exponent'])} with the printed exponent, {small(found['corrected'])} with both "
        "right"
    )
    return judge(evidence, printed, misprint("the bracket is inverted, and its third term has e^(-2St)", right))


def judge_shapes(summary: Measured) -> Judgement:
    """Decide ``anguita2024-thm3.2.2``."""
    found, rows = summary.parts["shapes of learning"], []
    for where, near, far in (
        ("zero", "a sigmoid", "an exponential"),
        ("large", "an exponential", "a sigmoid"),
        ("large negative", "an exponential", "a sigmoid"),
    ):
        close, distant = found[f"distance from {near}, {where}"], found[f"distance from {far}, {where}"]
        rows.append(Row(f"distance from {near}, balance {where}", close, 0.0, 1e-3))
        rows.append(Row(f"distance from {far}, balance {where}", distant, "above 0.1", agrees=distant > 0.1))
    evidence = ", ".join(f"{name} {small(value)}" for name, value in found.items())
    return judge(evidence, rows)


def judge_representations(summary: Measured) -> Judgement:
    """Decide ``anguita2024-thm4.1.1-times``."""
    found = summary.parts["representations"]
    pairs = Row(
        "error of the eigenvalues on the modes of the product", found["error of the paired eigenvalues"], 0.0, 1e-8
    )
    printed = [
        pairs,
        Row("error of the others, |n_out - n_in| equal to |balance|", found["error as printed"], 0.0, 1e-8),
    ]
    right = [
        pairs,
        Row("error of the others, n_hidden - rank", found["error with n_hidden - rank extra ones"], 0.0, 1e-8),
    ]
    evidence = (
        f"both signs, four times: errors {small(found['error of the paired eigenvalues'])} on the modes; of the others "
        f"{small(found['error as printed'])} as printed, "
        f"{small(found['error with n_hidden - rank extra ones'])} as corrected"
    )
    truth = "of the eigenvalues of the heavy layer N_h minus the rank equal |balance|, at every time"
    return judge(evidence, printed, instead(truth, right))


def judge_limits_of_table(summary: Measured) -> Judgement:
    """Decide ``anguita2024-table3.3``."""
    found = summary.parts["extreme ratios"]
    printed = [Row("furthest sampled mean from the printed limits", found["printed"], 0.0, 1.0)]
    right = [Row("furthest sampled mean from the corrected limits", found["corrected"], 0.0, 1.0)]
    evidence = (
        f"sampled means are off by {found['printed']:.1f} (printed) and {found['corrected']:.2f} (corrected) times "
        "what sampling and the finite ratio leave open"
    )
    return judge(evidence, printed, misprint("the Glorot row of erratum anguita2024-table3.2-3.3", right))


_FLOW = "closed form as stated against an integration of the layers"

EXPERIMENT = Experiment(
    name="anguita-foundations",
    title="Closed forms, algorithms and limits as the first theorems state them",
    document="anguita2024",
    place="Theorems 2.2.2-2.2.5, 3.2.2, 3.4.2, 4.1.1, 4.2.2; Algorithms 1 and 2; Figure 3.1; Table 3.3",
    version=1,
    scales={
        "smoke": Settings(n_draws=1, n_samples=1000),
        "laptop": Settings(seeds=(0, 1, 2)),
        "paper": Settings(n_draws=30, n_samples=20_000, seeds=(0, 1, 2)),
    },
    expand=expand,
    run=run,
    summarise=functools.partial(worst_of_all, least=LEAST),
    summary=Measured,
    claims=(
        Claim(
            id="anguita2024-thm2.2.2",
            place="Theorem 2.2.2",
            statement="the modes of an aligned network of balance zero are sigmoids and do not mix",
            measures=_FLOW,
            test="1e-8",
            judge=judge_limits("sigmoids", error_of_the_sigmoids=1e-8, mixing_of_modes=1e-8),
            counterfeit=with_entry("parts", "sigmoids", error_of_the_sigmoids=0.1),
        ),
        Claim(
            id="anguita2024-thm2.2.3",
            place="Theorem 2.2.3",
            statement="a shallow network approaches the task exponentially from any start",
            measures=_FLOW,
            test="1e-8",
            judge=judge_limits("shallow", error_of_the_product=1e-8),
            counterfeit=with_entry("parts", "shallow", error_of_the_product=0.1),
        ),
        Claim(
            id="anguita2024-thm4.2.2",
            place="Theorem 4.2.2",
            statement="each singular value of a shallow network grows from zero as s (1 - e^-t)",
            measures=_FLOW,
            test="1e-8",
            judge=judge_limits("shallow", error_of_singular_values_from_zero=1e-8),
            counterfeit=with_entry("parts", "shallow", error_of_singular_values_from_zero=0.1),
        ),
        Claim(
            id="anguita2024-thm2.2.4",
            place="Theorem 2.2.4",
            statement="the Gram matrix of a network of balance zero solves a Riccati equation in closed form",
            measures="closed form against an integration: equal and unequal sizes, and a rank that is not full",
            test="1e-8",
            judge=judge_limits(
                "riccati",
                **{
                    "error, equal sizes": 1e-8,
                    "error, unequal sizes": 1e-8,
                    "error, empty hidden unit": 1e-8,
                },
            ),
            counterfeit=with_entry("parts", "riccati", **{"error, unequal sizes": 0.1}),
            erratum="anguita2024-2.2.4-F",
        ),
        Claim(
            id="anguita2024-thm2.2.5",
            place="Theorem 2.2.5",
            statement="a form of that solution without growing exponentials",
            measures="the printed and the corrected form against an integration",
            test="1e-7, relative",
            judge=judge_stable_form,
            counterfeit=with_entry("parts", "stable form", corrected=0.1),
            erratum="anguita2024-2.30",
        ),
        Claim(
            id="anguita2024-thm3.2.2",
            place="Theorem 3.2.2",
            statement="a mode is learnt along a sigmoid at balance zero and along an exponential at extreme balance",
            measures="largest distance of an integrated mode from either curve, balance 0 and +-300",
            test="below 1e-3 of s from the one, above 0.1 from the other",
            judge=judge_shapes,
            counterfeit=with_entry("parts", "shapes of learning", **{"distance from an exponential, large": 0.3}),
        ),
        Claim(
            id="anguita2024-thm3.4.2",
            place="Theorem 3.4.2",
            statement="eigenvalues of F for unequal sizes, with |n_out - n_in| of sgn(n_out - n_in) balance/2",
            measures="the list against a dense eigensolver, both signs, more inputs and more outputs",
            test="1e-10",
            judge=judge_limits("unequal field", error_of_the_eigenvalues=1e-10),
            counterfeit=with_entry("parts", "unequal field", error_of_the_eigenvalues=0.1),
            erratum="anguita2024-3.4.2",
        ),
        Claim(
            id="anguita2024-algorithm1",
            place="Algorithm 1",
            statement="weights drawn by factorising a random product are balanced",
            measures="largest entry of w2'w2 - w1w1' - balance I, five sizes and balances",
            test="1e-10",
            judge=judge_limits("algorithms", imbalance=1e-10),
            counterfeit=with_entry("parts", "algorithms", imbalance=0.1),
        ),
        Claim(
            id="anguita2024-algorithm2",
            place="Algorithm 2",
            statement="turned into the task's singular vectors they are balanced and aligned",
            measures="the same, and what of the product lies off the task's modes",
            test="1e-10",
            judge=judge_limits("algorithms", **{"imbalance, aligned": 1e-10, "off the task's modes": 1e-10}),
            counterfeit=with_entry("parts", "algorithms", **{"off the task's modes": 0.1}),
        ),
        Claim(
            id="anguita2024-thm4.1.1-times",
            place="Theorem 4.1.1",
            statement="representations at any time have eigenvalues given by the product and the balance",
            measures="eigenvalues of both representations along integrations, both signs, from time 0 to 6",
            test="1e-8",
            judge=judge_representations,
            counterfeit=with_entry("parts", "representations", error_of_the_paired_eigenvalues=0.1),
            genuine=with_entry("parts", "representations", error_as_printed=0.0),
            erratum="anguita2024-4.1-extra-block",
        ),
        Claim(
            id="anguita2024-fig3.1",
            place="Figure 3.1",
            statement="entry by entry the balance of random layers looks like a multiple of the identity",
            measures="root mean square off the diagonal over the mean on it, LeCun, He and Glorot, sizes 40-200-80",
            test="at most 0.5",
            judge=judge_limits("random layers", off_the_diagonal_over_the_diagonal=0.5),
            counterfeit=with_entry("parts", "random layers", off_the_diagonal_over_the_diagonal=1.0),
        ),
        Claim(
            id="anguita2024-table3.3",
            place="Table 3.3",
            statement="limits of the balance for extreme ratios of widths",
            measures="mean diagonal entry of sampled layers at ratios up to 400, three schemes",
            test="5 standard errors and 0.03",
            judge=judge_limits_of_table,
            counterfeit=with_entry("parts", "extreme ratios", corrected=9.0),
            erratum="anguita2024-table3.2-3.3",
        ),
    ),
)
