"""kerg2022, appendix C, Fig. 11: unseen relations with random encoders over the range of held-out shapes."""

from __future__ import annotations

from ..judging import gap_claim
from ..scales import RANGE, RELATIONAL, UNSEEN, suite_scales
from ..suite import suite_experiment

MODELS = (*RELATIONAL, *(f"random encoder {name}" for name in RELATIONAL))

OF_CORELNET = ("CoRelNet", "random encoder CoRelNet")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig11",
    title="Unseen relations with random encoders over the range of held-out shapes",
    place="appendix C, Fig. 11",
    scales=suite_scales(
        UNSEEN,
        MODELS,
        RANGE,
        smoke={"tasks": ("rmts3",), "models": OF_CORELNET},
        laptop={
            "tasks": ("rmts3",),
            "models": OF_CORELNET,
            "n_steps": 1000,
            "n_measured": 10,
            "seeds": tuple(range(6)),
        },
    ),
    claims=(
        gap_claim(
            id="kerg2022-C-fig11-random",
            statement="On unseen relations random encoders are as good as trained ones at every holdout.",
            first=RELATIONAL,
            second=tuple(f"random encoder {name}" for name in RELATIONAL),
            tasks=UNSEEN,
            within=0.02,
            every=True,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig11-random-rmts3",
            statement="On match to sample of three CoRelNet is as good with a random encoder as with a trained one, "
            "without held-out shapes and with as many as possible.",
            first=OF_CORELNET[:1],
            second=OF_CORELNET[1:],
            tasks=("rmts3",),
            within=0.02,
            every=True,
        ),
    ),
)
