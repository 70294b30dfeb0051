"""kerg2022, appendix C, Fig. 9: symmetric and asymmetric similarities over the range of held-out shapes."""

from __future__ import annotations

from ..judging import gap_claim
from ..scales import BASIC, RANGE, RELATIONAL, suite_scales
from ..suite import EXTREME, suite_experiment

MODELS = (*RELATIONAL, *(f"asymmetric {name}" for name in RELATIONAL), "Transformer", "symmetric Transformer")

SHORT = ("CoRelNet", "asymmetric CoRelNet", "Transformer", "symmetric Transformer")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig9",
    title="Symmetric and asymmetric similarities over the range of held-out shapes",
    place="appendix C, Fig. 9",
    scales=suite_scales(
        BASIC,
        MODELS,
        RANGE,
        smoke={
            "tasks": ("same_diff",),
            "models": SHORT,
        },
        laptop={
            "tasks": ("rmts", "identity_rules"),
            "models": SHORT,
            "holdouts": (EXTREME,),
            "n_steps": 600,
            "n_measured": 6,
        },
    ),
    claims=(
        gap_claim(
            id="kerg2022-C-fig9-symmetry",
            statement="In the extreme case a symmetric similarity is more accurate than an asymmetric one.",
            first=RELATIONAL,
            second=tuple(f"asymmetric {name}" for name in RELATIONAL),
            tasks=BASIC,
            above=0.0,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig9-symmetry-corelnet",
            statement="In the extreme case CoRelNet is more accurate with a symmetric similarity on match to sample "
            "and on the identity rules.",
            first=SHORT[:1],
            second=SHORT[1:2],
            tasks=("rmts", "identity_rules"),
            above=0.0,
        ),
    ),
)
