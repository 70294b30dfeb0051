"""kerg2022, appendix C, Fig. 13: further baselines."""

from __future__ import annotations

from ..judging import gap_claim
from ..scales import BASIC, UNSEEN, suite_scales
from ..suite import suite_experiment

MODELS = ("CoRelNet", "MNM", "NTM", "LSTM", "RN")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig13",
    title="MNM, NTM, LSTM and relation networks on tasks with held-out shapes",
    place="appendix C, Fig. 13",
    scales=suite_scales(
        (*BASIC, *UNSEEN),
        MODELS,
        smoke={"tasks": ("same_diff",), "models": ("CoRelNet", "MNM", "NTM")},
        laptop={"tasks": BASIC[:2], "models": ("CoRelNet", "LSTM", "RN"), "n_steps": 600, "n_measured": 6},
    ),
    claims=(
        gap_claim(
            id="kerg2022-C-fig13-baselines",
            statement="CoRelNet is more accurate about unseen shapes than MNM, NTM, LSTM and relation networks.",
            first=("CoRelNet",),
            second=("MNM", "NTM", "LSTM", "RN"),
            tasks=(*BASIC, *UNSEEN[:3]),
            above=0.0,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig13-pairs",
            statement="On the tasks with two answers CoRelNet is more accurate about unseen shapes than LSTM and "
            "relation networks after 600 steps each.",
            first=("CoRelNet",),
            second=("LSTM", "RN"),
            tasks=BASIC[:2],
            above=0.0,
        ),
    ),
)
