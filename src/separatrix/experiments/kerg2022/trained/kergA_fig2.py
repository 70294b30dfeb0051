"""kerg2022, appendix A.5 and its Fig. 2: the learned Schur form of permuted pixels, between copy and characters."""

from __future__ import annotations

import itertools
from typing import Any

from separatrix.lab import Cell, Claim, Experiment, Judgement, Payload, in_turn, interval_row, judge

from .kerg3_fig3 import CRITICAL, LAPTOP, SMOKE
from .schur_forms import (
    FORMS,
    GAPS,
    ORDER,
    Measured,
    Settings,
    draw,
    expand,
    form_row,
    gap_row,
    moved,
    run_form,
    summarise,
)


def run(cell: Cell) -> Payload:
    """Train one nnRNN and read its form."""
    return run_form(cell)


def judge_order(summary: Measured) -> Judgement:
    """Decide ``kerg2022-A-fig2-order``."""
    rows = []
    for less, more in itertools.pairwise(ORDER):
        row = gap_row(summary, less, more, "feedforward")
        rows.append(interval_row(f"share of T, {more} minus {less}", row["gap"], (row["low"], row["high"]), above=0.0))
    means = [form_row(summary, task, "feedforward")["mean"] for task in ORDER]
    return judge(", ".join(f"{task} {mean:.3f}" for task, mean in zip(ORDER, means, strict=True)), rows)


def judge_flat(summary: Measured) -> Judgement:
    """Decide ``kerg2022-A-fig2-angles``."""
    row = form_row(summary, "pixels", "angle_distance")
    name = "distance of the angles from uniform, pixels"
    rows = [interval_row(name, row["mean"], (row["low"], row["high"]), below=CRITICAL)]
    return judge(f"distance from uniform {row['mean']:.2f}; 1.36 is critical", rows)


def _ordered(low: float, high: float) -> Any:
    ends = itertools.pairwise(ORDER)
    return in_turn(*(moved(GAPS, low, high, less=a, more=b, quantity="feedforward") for a, b in ends))


EXPERIMENT = Experiment(
    name="kergA-fig2",
    title="Learned Schur forms of copy, permuted pixels and characters",
    document="kerg2022",
    place="appendix A.5, Fig. 2",
    version=1,
    scales={
        "smoke": Settings(seeds=(0, 1), tasks=ORDER, **SMOKE),  # type: ignore[arg-type]
        "laptop": Settings(tasks=ORDER, **LAPTOP),  # type: ignore[arg-type]
        "paper": Settings(tasks=ORDER),  # type: ignore[arg-type]
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="kerg2022-A-fig2-order",
            statement="The lower triangle has least structure after copy, more after permuted pixels, most after text.",
            measures="share of T in the norm of the form, differences between tasks seed by seed",
            test="95 % intervals above 0",
            judge=judge_order,
            counterfeit=_ordered(-0.2, -0.1),
            genuine=_ordered(0.1, 0.2),
            scale="laptop",
        ),
        Claim(
            id="kerg2022-A-fig2-angles",
            statement="After permuted pixels the angles are close to uniform.",
            measures="Kolmogorov distance of the angles from the uniform law",
            test="95 % interval over seeds below 1.36",
            judge=judge_flat,
            counterfeit=moved(FORMS, 2.0, 3.0, task="pixels", quantity="angle_distance"),
            genuine=moved(FORMS, 0.5, 1.0, task="pixels", quantity="angle_distance"),
            scale="laptop",
        ),
    ),
    draw=draw,
    data=("tiny-shakespeare", "ptb-char", "mnist"),
)
