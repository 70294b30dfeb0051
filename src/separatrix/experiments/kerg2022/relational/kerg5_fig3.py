"""kerg2022, chapter 5, Fig. 3: five networks on the four basic tasks."""

from __future__ import annotations

from .judging import fall_claim, gap_claim, level_claim
from .scales import BASIC, FIVE, RELATIONAL, suite_scales
from .suite import EXTREME, suite_experiment

PAIRS = ("same_diff", "rmts")
"""The basic tasks with two answers."""

EXPERIMENT = suite_experiment(
    __name__,
    name="kerg5-fig3",
    title="Five networks on the four basic tasks, with and without held-out shapes",
    place="chapter 5, Fig. 3",
    scales=suite_scales(
        BASIC,
        FIVE,
        (0, EXTREME),
        smoke={"tasks": ("same_diff",), "models": ("CoRelNet", "PrediNet", "Transformer")},
        # 96,000 problems, as many as ESBN saw of match to sample in the work that made it
        laptop={"tasks": PAIRS, "holdouts": (EXTREME,), "n_steps": 1000, "n_measured": 10},
    ),
    claims=(
        level_claim(
            id="kerg2022-ch5-fig3-relational",
            statement="ESBN, CoRelNet and CoRelNet-T answer nearly every problem, however many shapes are held out.",
            models=RELATIONAL,
            tasks=BASIC,
            above=0.95,
            every=True,
            scale="paper",
        ),
        fall_claim(
            id="kerg2022-ch5-fig3-others-fall",
            statement="Transformer and PrediNet lose accuracy when shapes are held out.",
            models=("Transformer", "PrediNet"),
            tasks=BASIC,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-ch5-fig3-pairs",
            statement="ESBN, CoRelNet and CoRelNet-T answer nearly every problem of the tasks with two answers, with "
            "as many shapes held out as possible.",
            models=RELATIONAL,
            tasks=PAIRS,
            above=0.95,
        ),
        *(
            gap_claim(
                id=f"kerg2022-ch5-fig3-pairs-{other.lower()}",
                statement=f"With as many shapes held out as possible {other} falls behind CoRelNet on the tasks with "
                "two answers.",
                first=("CoRelNet",),
                second=(other,),
                tasks=PAIRS,
                above=0.05,
            )
            for other in ("Transformer", "PrediNet")
        ),
    ),
)
