"""kerg2022, appendix C, Fig. 12: relations alone against relations and sensory features, harder tasks and games."""

from __future__ import annotations

from separatrix.lab import Cell, Experiment, Payload

from ..judging import gap_claim
from ..scales import GAMES, RELATIONAL, UNSEEN, suite_scales
from ..suite import draw, expand, run_suite, summarise


def run(cell: Cell) -> Payload:
    """Train one network on one task."""
    return run_suite(cell)


MODELS = (*RELATIONAL, *(f"{name} cat" for name in RELATIONAL))

EXPERIMENT = Experiment(
    name="kergC-fig12",
    title="Relations alone against relations and sensory features, harder tasks and games",
    document="kerg2022",
    place="appendix C, Fig. 12",
    version=1,
    scales=suite_scales(
        (*UNSEEN[:3], *GAMES), MODELS, smoke={"tasks": ("rmts3", "game_same"), "models": ("CoRelNet", "CoRelNet cat")}
    ),
    expand=expand,
    run=run,
    summarise=summarise,
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
    ),
    draw=draw,
)
