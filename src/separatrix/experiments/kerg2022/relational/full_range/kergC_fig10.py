"""kerg2022, appendix C, Fig. 10: unseen relations over the range of held-out shapes."""

from __future__ import annotations

from ..judging import level_claim
from ..scales import FIVE, RANGE, UNSEEN, suite_scales
from ..suite import suite_experiment

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig10",
    title="Unseen relations over the range of held-out shapes",
    place="appendix C, Fig. 10",
    scales=suite_scales(
        UNSEEN,
        FIVE,
        RANGE,
        smoke={"tasks": ("rmts3",), "models": ("CoRelNet", "CoRelNet-T", "Transformer")},
        laptop={"tasks": ("rmts3", "identity_rules4"), "models": ("CoRelNet",), "n_measured": 10},
    ),
    claims=(
        level_claim(
            id="kerg2022-C-fig10-corelnet",
            statement="CoRelNet nearly solves match to sample of three and identity rules of four at every holdout.",
            models=("CoRelNet",),
            tasks=("rmts3", "identity_rules4"),
            above=0.95,
            every=True,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-C-fig10-corelnet-ends",
            statement="CoRelNet nearly solves match to sample of three and identity rules of four without held-out "
            "shapes and with as many as possible.",
            models=("CoRelNet",),
            tasks=("rmts3", "identity_rules4"),
            above=0.95,
            every=True,
        ),
    ),
)
