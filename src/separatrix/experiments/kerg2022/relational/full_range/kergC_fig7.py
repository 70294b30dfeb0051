"""kerg2022, appendix C, Fig. 7: sensory features beside relations over the range of held-out shapes."""

from __future__ import annotations

from ..judging import gap_claim
from ..scales import BASIC, RANGE, RELATIONAL, suite_scales
from ..suite import suite_experiment

MODELS = (*RELATIONAL, *(f"{name} cat" for name in RELATIONAL))

SHORT = ("dist3", "identity_rules")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig7",
    title="Sensory features beside relations, over the range of held-out shapes",
    place="appendix C, Fig. 7",
    scales=suite_scales(
        BASIC,
        MODELS,
        RANGE,
        smoke={"tasks": ("same_diff", "dist3"), "models": ("CoRelNet", "CoRelNet cat")},
        laptop={"tasks": SHORT, "models": ("CoRelNet", "CoRelNet cat"), "n_steps": 600, "n_measured": 6},
    ),
    claims=(
        gap_claim(
            id="kerg2022-C-fig7-sensory",
            statement="In the extreme case sensory features beside relations lower accuracy.",
            first=RELATIONAL,
            second=tuple(f"{name} cat" for name in RELATIONAL),
            tasks=BASIC,
            above=0.0,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig7-dist3",
            statement="On the distribution of three sensory features do little harm.",
            first=RELATIONAL,
            second=tuple(f"{name} cat" for name in RELATIONAL),
            tasks=("dist3",),
            within=0.1,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig7-identity-rules-corelnet",
            statement="In the extreme case sensory features make CoRelNet less accurate on the identity rules.",
            first=("CoRelNet",),
            second=("CoRelNet cat",),
            tasks=("identity_rules",),
            above=0.0,
        ),
        gap_claim(
            id="kerg2022-C-fig7-dist3-corelnet",
            statement="On the distribution of three sensory features do CoRelNet little harm.",
            first=("CoRelNet",),
            second=("CoRelNet cat",),
            tasks=("dist3",),
            within=0.1,
        ),
    ),
)
