"""kerg2022, chapter 5, Fig. 4: sensory features, asymmetry and random encoders on the four basic tasks."""

from __future__ import annotations

from .judging import gap_claim
from .scales import BASIC, RELATIONAL, suite_scales
from .suite import suite_experiment

MODELS = (
    *RELATIONAL,
    *(f"{name} cat" for name in RELATIONAL),
    *(f"asymmetric {name}" for name in RELATIONAL),
    *(f"random encoder {name}" for name in RELATIONAL),
)
OF_CORELNET = ("CoRelNet", "CoRelNet cat", "asymmetric CoRelNet", "random encoder CoRelNet")

EXPERIMENT = suite_experiment(
    __name__,
    name="kerg5-fig4",
    title="Sensory features, asymmetry and random encoders on the four basic tasks",
    place="chapter 5, Fig. 4",
    scales=suite_scales(
        BASIC,
        MODELS,
        smoke={
            "tasks": ("same_diff",),
            "models": OF_CORELNET,
        },
        laptop={"models": OF_CORELNET, "n_measured": 10},
    ),
    claims=(
        gap_claim(
            id="kerg2022-ch5-fig4-random-encoders",
            statement="With random encoders ESBN, CoRelNet and CoRelNet-T are as accurate as with trained ones.",
            first=RELATIONAL,
            second=tuple(f"random encoder {name}" for name in RELATIONAL),
            tasks=BASIC,
            within=0.02,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-ch5-fig4-sensory",
            statement="Sensory features beside relations lower the accuracy about unseen shapes.",
            first=RELATIONAL,
            second=tuple(f"{name} cat" for name in RELATIONAL),
            tasks=BASIC,
            above=0.0,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-ch5-fig4-symmetry",
            statement="A symmetric similarity is more accurate about unseen shapes than an asymmetric one.",
            first=RELATIONAL,
            second=tuple(f"asymmetric {name}" for name in RELATIONAL),
            tasks=BASIC,
            above=0.0,
            scale="paper",
        ),
        *(
            gap_claim(
                id=f"kerg2022-ch5-fig4-{key}-corelnet",
                statement=statement,
                first=("CoRelNet",),
                second=(other,),
                tasks=BASIC,
                above=0.0,
            )
            for key, other, statement in (
                ("sensory", "CoRelNet cat", "Sensory features make CoRelNet less accurate about unseen shapes."),
                ("symmetry", "asymmetric CoRelNet", "CoRelNet is more accurate with a symmetric similarity."),
            )
        ),
    ),
)
