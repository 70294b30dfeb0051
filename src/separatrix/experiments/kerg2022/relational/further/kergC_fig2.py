"""kerg2022, appendix C, Fig. 2: the distribution of ten, with unseen permutations in either direction."""

from __future__ import annotations

from ..judging import gap_claim
from ..scales import FIVE, suite_scales
from ..suite import suite_experiment

TASKS = ("dist10", "dist_n_restricted:preserving", "dist_n_restricted:non_preserving")
LAPTOP = {"tasks": ("dist10",), "models": ("CoRelNet", "Transformer"), "n_steps": 1000, "n_measured": 10}

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig2",
    title="The distribution of ten, with unseen permutations in either direction",
    place="appendix C, Fig. 2",
    scales=suite_scales(TASKS, FIVE, smoke={"models": ("CoRelNet", "Transformer")}, laptop=LAPTOP),
    claims=(
        gap_claim(
            id="separatrix-relational-dist10",
            document="separatrix",
            statement="On the distribution of ten CoRelNet is more accurate than a transformer.",
            first=("CoRelNet",),
            second=("Transformer",),
            tasks=("dist10",),
            above=0.0,
        ),
    ),
)
