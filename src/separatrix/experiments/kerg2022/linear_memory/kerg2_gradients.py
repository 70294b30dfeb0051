"""kerg2022, sections 2.1 and 2.2: gradients of deep and of recurrent networks, and when they explode or vanish."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from separatrix.lab import Cell, Claim, Judgement, Payload, Row, condition, judge, with_entry

from . import gradient_measures
from .parts import Measured, at_most, experiment_of_parts, rows_within, run_part, within

PARTS: dict[str, Callable[[int, Any], Payload]] = {
    "deep networks": gradient_measures.deep_gradients,
    "cross-entropy": gradient_measures.cross_entropy,
    "recurrent networks": gradient_measures.recurrent_gradients,
    "products": gradient_measures.products_of_jacobians,
}


def run(cell: Cell) -> Payload:
    """Measure one statement at random instances."""
    return run_part(cell, PARTS)


def judge_products(summary: Measured) -> Judgement:
    """Decide ``kerg2022-ch2-explodes-or-vanishes``."""
    found = summary.parts["products"]
    stated = [Row("products that neither explode nor vanish, not all eigenvalues on the circle", found["neither"], 0)]
    right = [
        Row("such products, no eigenvalue on the circle", found["neither, none on the circle"], 0),
        *rows_within(summary, "products", [at_most("error", 1e-9)]),
    ]
    says = "if no eigenvalue lies on the unit circle; one there and the others inside leave a projection"
    evidence = (
        f"{found['neither']:.0f} products of one seed stay between 1e-6 and 1e6, "
        f"{found['neither, none on the circle']:.0f} with no eigenvalue on the circle"
    )
    return judge(evidence, stated, condition(says, right))


_ERRORS = "central differences of the loss by every entry"

EXPERIMENT = experiment_of_parts(
    "kerg2-gradients",
    "Gradients of deep and of recurrent networks, and when they explode or vanish",
    "sections 2.1 and 2.2",
    PARTS,
    (
        Claim(
            id="kerg2022-ch2-backpropagation",
            place="Eqs. (2.1.1)-(2.1.10)",
            statement="Gradients of a deep network are products of transposed Jacobians, in the order printed.",
            measures=_ERRORS,
            test="1e-7",
            judge=within("deep networks", *(at_most(f"error, {of}", 1e-7) for of in ("states", "weights", "offsets"))),
            counterfeit=with_entry("parts", "deep networks", **{"error, weights": 0.1}),
        ),
        Claim(
            id="kerg2022-ch2-cross-entropy",
            place="Eqs. (2.2.4)-(2.2.7)",
            statement="The loss is a logarithm of summed exponentials less the mean output, and its gradient the "
            "difference of prediction and target.",
            measures="both forms of the loss for targets that sum to one; central differences",
            test="1e-12; 1e-8",
            judge=within("cross-entropy", at_most("error, loss", 1e-12), at_most("error, gradient", 1e-8)),
            counterfeit=with_entry("parts", "cross-entropy", **{"error, gradient": 0.1}),
        ),
        Claim(
            id="kerg2022-ch2-through-time",
            place="section 2.2.2, Eqs. (2.2.8)-(2.2.10)",
            statement="Gradients of a recurrent network are sums over later losses of products of Jacobians.",
            measures=_ERRORS + ", and by pushes of every state",
            test="1e-7",
            judge=within(
                "recurrent networks", *(at_most(f"error, {of}", 1e-7) for of in ("V", "U", "W", "b", "c", "states"))
            ),
            counterfeit=with_entry("parts", "recurrent networks", **{"error, V": 0.1}),
        ),
        Claim(
            id="kerg2022-ch2-explodes-or-vanishes",
            place="section 2.2.3",
            statement="Unless all eigenvalues lie on the unit circle, products of Jacobians of a linear network "
            "explode or vanish.",
            measures=f"norm of symmetric matrices to the power {gradient_measures.POWER}, eigenvalues inside, outside "
            "and on the circle",
            test="above 1e6 or below 1e-6, without exception",
            judge=judge_products,
            counterfeit=with_entry("parts", "products", **{"neither": 9, "neither, none on the circle": 9}),
            erratum="kerg2022-explodes-or-vanishes",
        ),
    ),
    run=run,
    rehearsed=3,
    seeds=(10, 11, 12),
)
