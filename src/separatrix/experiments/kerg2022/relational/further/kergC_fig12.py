"""kerg2022, appendix C, Fig. 12: relations alone against relations and sensory features, harder tasks and games."""

from __future__ import annotations

from ..judging import gap_claim
from ..scales import GAMES, RELATIONAL, UNSEEN, suite_scales
from ..suite import suite_experiment

MODELS = (*RELATIONAL, *(f"{name} cat" for name in RELATIONAL))

OF_CORELNET = ("CoRelNet", "CoRelNet cat")
SHORT = ("game_same", "game_row_matching")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig12",
    title="Relations alone against relations and sensory features, harder tasks and games",
    place="appendix C, Fig. 12",
    scales=suite_scales(
        (*UNSEEN[:3], *GAMES),
        MODELS,
        smoke={"tasks": ("rmts3", "game_same"), "models": OF_CORELNET},
        laptop={
            "tasks": ("rmts3", *SHORT),
            "models": OF_CORELNET,
            "n_steps": 1000,
            "game_steps": 1500,
            "n_measured": 5,
        },
    ),
    claims=(
        gap_claim(
            id="kerg2022-C-fig12-cognitive",
            statement="On unseen relations, on average, networks are more accurate without sensory features.",
            first=RELATIONAL,
            second=tuple(f"{name} cat" for name in RELATIONAL),
            tasks=UNSEEN[:3],
            above=0.0,
            together=True,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig12-games",
            statement="On the relational games, on average, networks are more accurate without sensory features.",
            first=RELATIONAL,
            second=tuple(f"{name} cat" for name in RELATIONAL),
            tasks=GAMES,
            above=0.0,
            together=True,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig12-rmts3-corelnet",
            statement="On match to sample of three CoRelNet is more accurate without sensory features.",
            first=OF_CORELNET[:1],
            second=OF_CORELNET[1:],
            tasks=("rmts3",),
            above=0.0,
        ),
        gap_claim(
            id="kerg2022-C-fig12-games-corelnet",
            statement="On the games of equal objects and of equal rows, on average, CoRelNet is more accurate without "
            "sensory features.",
            first=OF_CORELNET[:1],
            second=OF_CORELNET[1:],
            tasks=SHORT,
            above=0.0,
            together=True,
        ),
    ),
)
