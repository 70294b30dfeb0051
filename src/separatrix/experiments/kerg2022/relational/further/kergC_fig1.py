"""kerg2022, appendix C, Fig. 1: identity rules of four with training and test exchanged."""

from __future__ import annotations

from ..judging import level_claim
from ..scales import FIVE, suite_scales
from ..suite import suite_experiment

TASKS = ("identity_rules4_flipped", "identity_rules4_flipped_missing")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig1",
    title="Identity rules of four with training and test exchanged",
    place="appendix C, Fig. 1",
    scales=suite_scales(
        TASKS,
        FIVE,
        smoke={"tasks": ("identity_rules4_flipped_missing", "identity_rules4_flipped"), "models": ("CoRelNet",)},
        laptop={"models": ("CoRelNet",), "n_steps": 2500, "n_measured": 10},
    ),
    claims=(
        level_claim(
            id="separatrix-relational-flipped",
            document="separatrix",
            statement="CoRelNet solves identity rules of four after training on three objects a word.",
            models=("CoRelNet",),
            tasks=("identity_rules4_flipped",),
            above=0.95,
        ),
        level_claim(
            id="separatrix-relational-flipped-missing",
            document="separatrix",
            statement="Without the word abca it does not: what the other two show leaves a relation open.",
            models=("CoRelNet",),
            tasks=("identity_rules4_flipped_missing",),
            below=0.8,
        ),
    ),
)
