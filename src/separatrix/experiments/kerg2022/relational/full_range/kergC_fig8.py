"""kerg2022, appendix C, Fig. 8: random encoders over the range of held-out shapes."""

from __future__ import annotations

from ..judging import gap_claim
from ..scales import BASIC, RANGE, RELATIONAL, suite_scales
from ..suite import suite_experiment

MODELS = (*RELATIONAL, *(f"random encoder {name}" for name in RELATIONAL))

OF_CORELNET = ("CoRelNet", "random encoder CoRelNet")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig8",
    title="Random encoders over the range of held-out shapes",
    place="appendix C, Fig. 8",
    scales=suite_scales(
        BASIC,
        MODELS,
        RANGE,
        smoke={"tasks": ("same_diff",), "models": OF_CORELNET},
        laptop={"tasks": ("rmts", "identity_rules"), "models": OF_CORELNET, "n_steps": 600, "n_measured": 6},
    ),
    claims=(
        gap_claim(
            id="kerg2022-C-fig8-random",
            statement="Random encoders are as good as trained ones, however many shapes are held out.",
            first=RELATIONAL,
            second=tuple(f"random encoder {name}" for name in RELATIONAL),
            tasks=BASIC,
            within=0.02,
            every=True,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig8-random-corelnet",
            statement="CoRelNet is as good with a random encoder as with a trained one on match to sample and on the "
            "identity rules, without held-out shapes and with as many as possible.",
            first=OF_CORELNET[:1],
            second=OF_CORELNET[1:],
            tasks=("rmts", "identity_rules"),
            within=0.02,
            every=True,
        ),
    ),
)
