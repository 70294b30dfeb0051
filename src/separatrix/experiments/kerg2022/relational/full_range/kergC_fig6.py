"""kerg2022, appendix C, Fig. 6: five networks on the four basic tasks over the range of held-out shapes."""

from __future__ import annotations

from ..judging import fall_claim, level_claim
from ..scales import BASIC, FIVE, RANGE, RELATIONAL, suite_scales
from ..suite import suite_experiment

SHORT = ("CoRelNet", "CoRelNet-T", "Transformer")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig6",
    title="Five networks on the four basic tasks over the range of held-out shapes",
    place="appendix C, Fig. 6",
    scales=suite_scales(
        BASIC,
        FIVE,
        RANGE,
        smoke={"tasks": ("same_diff",), "models": ("CoRelNet", "PrediNet", "Transformer")},
        laptop={"tasks": ("identity_rules",), "models": SHORT, "n_steps": 600, "n_measured": 6},
    ),
    claims=(
        level_claim(
            id="kerg2022-C-fig6-relational",
            statement="ESBN, CoRelNet and CoRelNet-T answer nearly every problem, however many shapes are held out.",
            models=RELATIONAL,
            tasks=BASIC,
            above=0.95,
            every=True,
            scale="paper",
        ),
        fall_claim(
            id="kerg2022-C-fig6-others-fall",
            statement="Transformer and PrediNet lose accuracy when shapes are held out.",
            models=("Transformer", "PrediNet"),
            tasks=BASIC,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-C-fig6-identity-rules",
            statement="CoRelNet and CoRelNet-T answer nearly every problem of the identity rules, without held-out "
            "shapes and with as many as possible.",
            models=SHORT[:2],
            tasks=("identity_rules",),
            above=0.95,
            every=True,
        ),
        fall_claim(
            id="kerg2022-C-fig6-identity-rules-fall",
            statement="A transformer loses accuracy on the identity rules when shapes are held out.",
            models=("Transformer",),
            tasks=("identity_rules",),
            learned=0.9,
        ),
    ),
)
