"""kerg2022, section 5.6, learning a sensory encoder: CoRelNet with a trained and with a random encoder."""

from __future__ import annotations

from separatrix.core.wording import small
from separatrix.lab import Claim, Judgement, in_turn, interval_row, judge, with_column
from separatrix.tasks.relational.titles import task_title

from .judging import gap_claim, level_claim
from .scales import BASIC, suite_scales
from .suite import Measured, suite_experiment

LEARNED, FROZEN = "CoRelNet", "random encoder CoRelNet"
DEEP = ("rmts", "dist3", "identity_rules")
"""Tasks on which the encoder has a gradient at all: on same/different it is exactly zero."""


def judge_drift(summary: Measured) -> Judgement:
    """Gradients are tiny and weights move all the same: Adam divides the size of a gradient out."""
    rows = []
    for task in DEEP:
        own = [row for row in summary.runs if row["model"] == LEARNED and row["task"] == task]
        if not own:
            if summary.partial:
                continue
            return judge("", [])
        ratio = max(row["gradient_ratio"] for row in own)
        moved = min(row["encoder_movement"] for row in own)
        rows.append(interval_row(f"greatest gradient ratio on {task_title(task)}", ratio, (ratio, ratio), below=1e-4))
        rows.append(
            interval_row(f"least movement of the encoder on {task_title(task)}", moved, (moved, moved), above=0.01)
        )
    if not rows:
        return judge("", [])
    return judge("; ".join(f"{row.quantity} {small(float(row.measured))}" for row in rows), rows)


def _with(ratio: float, moved: float):  # type: ignore[no-untyped-def]
    def where(row):  # type: ignore[no-untyped-def]
        return row["model"] == LEARNED

    return in_turn(
        with_column("runs", "gradient_ratio", ratio, where), with_column("runs", "encoder_movement", moved, where)
    )


EXPERIMENT = suite_experiment(
    __name__,
    name="kerg5-encoders",
    title="CoRelNet with a trained and with a random encoder, ten seeds",
    place="section 5.6, Fig. 4 right",
    scales=suite_scales(
        BASIC,
        (LEARNED, FROZEN),
        smoke={"tasks": ("same_diff", "rmts")},
        laptop={"seeds": tuple(range(10)), "n_steps": 600, "n_test": 4000, "n_curve": 400, "n_measured": 6},
    ),
    claims=(
        level_claim(
            id="kerg2022-ch5-encoders-learned",
            statement="CoRelNet answers nearly every problem of the four basic tasks about shapes it never saw.",
            models=(LEARNED,),
            tasks=BASIC,
            above=0.95,
        ),
        level_claim(
            id="kerg2022-ch5-encoders-frozen",
            statement="CoRelNet needs no trained encoder for the four basic tasks.",
            models=(FROZEN,),
            tasks=BASIC,
            above=0.95,
        ),
        gap_claim(
            id="kerg2022-ch5-encoders-equal",
            statement="With a random encoder CoRelNet is as accurate as with a trained one.",
            first=(LEARNED,),
            second=(FROZEN,),
            tasks=BASIC,
            within=0.02,
        ),
        Claim(
            id="separatrix-relational-drift",
            statement="A trained encoder of CoRelNet moves although its gradient is next to nothing, "
            "by the rule of Adam.",
            measures="gradient of the encoder over that of the rest at the start; relative movement of its weights",
            test="every run: ratio below 1e-4 and movement above 1 %, on tasks of more than two positions",
            judge=judge_drift,
            counterfeit=_with(0.5, 1e-5),
            genuine=_with(1e-6, 0.05),
            document="separatrix",
            scale="laptop",
        ),
    ),
)
