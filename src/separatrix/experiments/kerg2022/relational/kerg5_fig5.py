"""kerg2022, chapter 5, Fig. 5: tasks whose test asks relations that training does not show."""

from __future__ import annotations

from .judging import gap_claim, level_claim
from .scales import FIVE, RELATIONAL, UNSEEN, suite_scales
from .suite import suite_experiment

MODELS = (*FIVE, *(f"random encoder {name}" for name in RELATIONAL))

EXPERIMENT = suite_experiment(
    __name__,
    name="kerg5-fig5",
    title="Tasks whose test asks relations that training does not show",
    place="chapter 5, Fig. 5",
    scales=suite_scales(
        UNSEEN,
        MODELS,
        smoke={"tasks": ("rmts3", "identity_rules4_missing"), "models": (*FIVE, "random encoder CoRelNet")},
        laptop={"tasks": ("rmts3", "identity_rules4"), "models": ("CoRelNet",), "n_steps": 2500, "n_measured": 10},
    ),
    claims=(
        level_claim(
            id="kerg2022-ch5-fig5-near-perfect",
            statement="CoRelNet nearly solves match to sample of three and identity rules of four, with new relations.",
            models=("CoRelNet",),
            tasks=("rmts3", "identity_rules4"),
            above=0.95,
        ),
        gap_claim(
            id="kerg2022-ch5-fig5-better-than-corelnet-t",
            statement="On tasks with unseen relations CoRelNet is at least as accurate as CoRelNet-T.",
            first=("CoRelNet",),
            second=("CoRelNet-T",),
            tasks=UNSEEN[:3],
            above=-0.02,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-ch5-fig5-better-than-esbn",
            statement="On tasks with unseen relations CoRelNet is at least as accurate as ESBN.",
            first=("CoRelNet",),
            second=("ESBN",),
            tasks=UNSEEN[:3],
            above=-0.02,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-ch5-fig5-better-than-predinet",
            statement="On tasks with unseen relations CoRelNet is at least as accurate as PrediNet.",
            first=("CoRelNet",),
            second=("PrediNet",),
            tasks=UNSEEN[:3],
            above=-0.02,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-ch5-fig5-better-than-transformer",
            statement="On tasks with unseen relations CoRelNet is at least as accurate as Transformer.",
            first=("CoRelNet",),
            second=("Transformer",),
            tasks=UNSEEN[:3],
            above=-0.02,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-ch5-fig5-missing",
            statement="With words missing from training every network fails on a good part of identity rules of four.",
            models=FIVE,
            tasks=("identity_rules4_missing",),
            below=0.8,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-ch5-fig5-random",
            statement="On unseen relations random encoders are as good as trained ones.",
            first=RELATIONAL,
            second=tuple(f"random encoder {name}" for name in RELATIONAL),
            tasks=UNSEEN,
            within=0.02,
            scale="paper",
        ),
    ),
)
