"""agarwala2022, statements without a figure: sections 2.1.1, 2.2, 3.2, 5.1 and appendices A to C."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
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
    condition,
    interval_row,
    judge,
    misprint,
    with_entry,
)

from ..worst_case import Measured, judge_limits, worst_of_all
from .statement_checks import CHECKS, DRAWS, LEAST, TOTALS

ONE_IN_A_THOUSAND = 1.95 / math.sqrt(DRAWS)
"""Kolmogorov's distance, which a sample of that many Gaussian numbers exceeds once in a thousand."""


class Settings(Params):
    """Width of sampled matrices; every statement is measured once per seed."""

    width: int = 150


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per statement and seed."""
    for seed in settings.seeds:
        for part in CHECKS:
            yield {"part": part, "width": settings.width, "seed": seed}


def run(cell: Cell) -> Payload:
    """One statement on one draw."""
    part = cell.args["part"]
    return CHECKS[part](spawn(cell.seed, "agarwala-appendix", part), cell.args["width"])


def judge_print(
    part: str, printed: str, corrected: str, tolerance: float, says: str
) -> Callable[[Measured], Judgement]:
    """A closed form as printed and as corrected, both against what was measured."""

    def judge_part(summary: Measured) -> Judgement:
        found = summary.parts[part]
        wrong, right = found[printed], found[corrected]
        return judge(
            f"errors {small(wrong)} as printed, {small(right)} as corrected",
            [Row("error as printed", wrong, 0.0, tolerance)],
            misprint(says, [Row("error as corrected", right, 0.0, tolerance)]),
        )

    return judge_part


def judge_divergence(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-divergence``."""
    from separatrix import dynamics

    found = summary.parts["divergence"]
    total, rows, words = int(found["matrices"]), [], []
    for kind, told in (("", "independent"), ("symmetric and ", "symmetric")):
        counts = [int(found[f"{kind}{name} that diverge"]) for name in ("narrow", "wide")]
        share, less = (count / total for count in counts)
        narrow, wide = (dynamics.wilson_interval(count, total) for count in counts)
        # Newcombe: the ends of both shares, added as independent errors
        low = less - share - math.hypot(less - wide[0], narrow[1] - share)
        high = less - share + math.hypot(wide[1] - less, share - narrow[0])
        rows.append(interval_row(f"share of narrow {told} matrices that diverge", share, narrow, above=0.01))
        rows.append(interval_row(f"share of wide {told} ones less that", less - share, (low, high), below=0.0))
        words.append(f"{share:.3f} (narrow) and {less:.3f} (wide) of {told} ones")
    return judge(f"shares that diverge at 0.9 of the critical V: {', '.join(words)}", rows)


def judge_disc(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-thm3.2-annulus``."""
    found = summary.parts["spectrum"]
    ratio, ring = found["independent"], found["orthogonal and linear"]
    whole = Row("orthogonal weights, linear layer", ring, "above 0.1", agrees=ring > 0.1)
    rows = [whole, Row("independent weights, tanh", ratio, "above 0.1", agrees=ratio > 0.1)]
    evidence = (
        f"smallest over largest modulus of an eigenvalue: independent {ratio:.3f}, orthogonal and linear {ring:.3f}"
    )
    return judge(evidence, rows, condition("for orthogonal weights and slopes that do not vanish", [whole]))


def judge_normal(summary: Measured) -> Judgement:
    """Decide ``agarwala2022-thmA.2``."""
    found = summary.parts["coordinates"]
    many, two = found["distance, many units"], found["distance, two units"]
    rows = [
        Row("distance of the distribution functions, many units", many, 0.0, ONE_IN_A_THOUSAND),
        Row("the same, two units", two, f"above {ONE_IN_A_THOUSAND:.3f}", agrees=two > ONE_IN_A_THOUSAND),
    ]
    return judge(
        f"largest distance from a Gaussian's distribution function: {two:.3f} with two units, {many:.3f}", rows
    )


_SAMPLED = "sampled matrices"

EXPERIMENT = Experiment(
    name="agarwala-appendix",
    title="Finite steps, divergence, length variance, spectra, gradients, kernels and free products",
    document="agarwala2022",
    place="sections 2.1.1, 2.2, 3.2 and 5.1; appendices A, B and C",
    version=4,
    scales={
        "smoke": Settings(width=80),
        "laptop": Settings(seeds=(0, 1, 2)),
        "paper": Settings(width=400, seeds=(0, 1, 2)),
    },
    expand=expand,
    run=run,
    summarise=functools.partial(worst_of_all, least=LEAST, totals=TOTALS),
    summary=Measured,
    claims=(
        Claim(
            id="agarwala2022-eq7",
            place="Eqs. (7), (48)",
            statement="variance of a coordinate after t steps with independent entries",
            measures="variance over 400 matrices after 3 and 5 steps, V = 0.5",
            test="10 percent",
            judge=judge_print(
                "finite steps", "relative error, printed", "relative error, corrected", 0.1,
                "the sum runs over V^k for k from 1 to t - 1",
            ),
            counterfeit=with_entry("parts", "finite steps", **{"relative error, corrected": 0.5}),
            erratum="agarwala2022-eq7",
        ),
        Claim(
            id="agarwala2022-divergence",
            place="section 2.1.1",
            statement=(
                "at finite width the iteration diverges with some probability below the critical V, for independent "
                "and for symmetric weights, less so if wide"
            ),
            measures="share of matrices at 0.9 of the critical V whose iteration grows without end, narrow and wide",
            test="95 % intervals above 0.01; those of wide less narrow (Newcombe) below zero",
            judge=judge_divergence,
            counterfeit=with_entry("parts", "divergence", **{"narrow that diverge": 0}),
            scale="laptop",  # matrices of eight units and of eighty are told apart by chance only
        ),
        Claim(
            id="agarwala2022-lemma2.2",
            place="Lemma 2.2, Eqs. (12), (13)",
            statement="the length variance is 2/N times the normalised trace of (M'M)^2",
            measures="variance of z.z over 40000 Gaussian inputs, divided by N as printed and by N^2",
            test="10 percent",
            judge=judge_print(
                "length variance", "relative error over N", "relative error over N^2", 0.1,
                "the variance of z.z is divided by N^2",
            ),
            counterfeit=with_entry("parts", "length variance", **{"relative error over N^2": 0.5}),
            erratum="agarwala2022-eq12",
        ),
        Claim(
            id="agarwala2022-thm3.2-annulus",
            place="Theorem 3.2, text around Eq. (30)",
            statement="the spectrum of the Jacobian is an annulus",
            measures="smallest over largest modulus of an eigenvalue",
            test="above 0.1",
            judge=judge_disc,
            counterfeit=with_entry("parts", "spectrum", **{"orthogonal and linear": 0.01}),
            genuine=with_entry("parts", "spectrum", independent=0.5),
            erratum="agarwala2022-eq30",
        ),
        Claim(
            id="agarwala2022-sec5.1",
            place="section 5.1",
            statement="traces of powers vanish for independent and orthogonal weights, which agree, not for symmetric",
            measures="normalised traces of W^2 and W^4 over V and V^2; second moments of the two families",
            test="symmetric: 1 and 2 within 10 percent; others below 0.1; moments within 10 percent",
            judge=judge_limits("powers", symmetric=0.1, others=0.1, gap_of_the_other_families=0.1),
            counterfeit=with_entry("parts", "powers", others=0.5),
        ),
        Claim(
            id="agarwala2022-thmA.2",
            place="Theorem A.2",
            statement="coordinates of the equilibrium become Gaussian as the width grows",
            measures="distance of the distribution functions of one coordinate over 4000 matrices and of a Gaussian",
            test="at most 0.031 (exceeded by one Gaussian sample in a thousand) at many units, more at two",
            judge=judge_normal,
            counterfeit=with_entry("parts", "coordinates", **{"distance, many units": 0.2}),
        ),
        *(
            Claim(
                id=f"agarwala2022-eq{number}",
                place=f"Eq. ({number})",
                statement=statement,
                measures=measures,
                test="1e-6, relative",
                judge=judge_print("gradients", f"({number}) printed", f"({number}) corrected", 1e-6, says),
                counterfeit=with_entry("parts", "gradients", **{f"({number}) corrected": 0.1}),
                erratum=f"agarwala2022-eq{number}",
            )
            for number, statement, measures, says in (
                (
                    93,
                    "gradient of a readout of the equilibrium with respect to W",
                    "closed form against differentiation through 150 iterations",
                    "the slopes act on the adjoint vector",
                ),
                (
                    94,
                    "the tangent kernel pairs gradients",
                    "closed form against what a step of descent on one input does to the output of another",
                    "it pairs the gradient at x with that at x'",
                ),
                (
                    95,
                    "the tangent kernel of the nonlinear layer, averaged over readouts",
                    "closed form against the sum over unit readouts of products of differentiated gradients",
                    "slopes stand between the responses, states outside",
                ),
            )
        ),
        Claim(
            id="agarwala2022-appendixC.1",
            place="appendix C.1, Eqs. (122)-(124)",
            statement="resolvent trace of a projection times a semicircular matrix",
            measures=_SAMPLED,
            test="0.02 at z = 1.2 + 0.3i",
            judge=judge_print("projection", "printed", "corrected", 0.02, "the last term is added, not subtracted"),
            counterfeit=with_entry("parts", "projection", corrected=0.3),
            erratum="agarwala2022-eq122",
        ),
        Claim(
            id="agarwala2022-eq128",
            place="appendix C.2, Eq. (128)",
            statement="the corner of the block resolvent is a trace of z + V P^-1 Q",
            measures="block traces of sampled matrices, mean of ten",
            test="1e-8",
            judge=judge_print("blocks", "(128) printed", "(128) corrected", 1e-8, "it is the trace of the inverse"),
            counterfeit=with_entry("parts", "blocks", **{"(128) corrected": 0.3}),
            erratum="agarwala2022-eq128",
        ),
        Claim(
            id="agarwala2022-eq180",
            place="appendix C.2, Eq. (180)",
            statement="the middle equation of the operator-valued system",
            measures="block traces of sampled matrices, mean of ten",
            test="0.02",
            judge=judge_print("blocks", "(180) printed", "(180) corrected", 0.02, "G_12 enters with a minus"),
            counterfeit=with_entry("parts", "blocks", **{"(180) corrected": 0.3}),
            erratum="agarwala2022-eq180",
            scale="laptop",
        ),
    ),
)  # fmt: skip
