"""kerg2022, appendix C, Fig. 5: CoRelNet with as many parameters as ESBN."""

from __future__ import annotations

from ..judging import gap_claim
from ..scales import BASIC, UNSEEN, suite_scales
from ..suite import suite_experiment

MODELS = ("CoRelNet", "CoRelNet-nhid", "ESBN")

EXPERIMENT = suite_experiment(
    __name__,
    name="kergC-fig5",
    title="CoRelNet with as many parameters as ESBN",
    place="appendix C, Fig. 5",
    scales=suite_scales(
        (*BASIC, *UNSEEN),
        MODELS,
        smoke={"tasks": ("identity_rules4",), "models": ("CoRelNet", "CoRelNet-nhid")},
        laptop={
            "tasks": BASIC[:2],
            "models": ("CoRelNet", "CoRelNet-nhid"),
            "n_steps": 600,
            "n_measured": 6,
        },
    ),
    claims=(
        gap_claim(
            id="kerg2022-C-fig5-nhid",
            statement="More hidden units do not make CoRelNet less accurate.",
            first=("CoRelNet-nhid",),
            second=("CoRelNet",),
            tasks=(*BASIC, *UNSEEN),
            above=-0.02,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-C-fig5-nhid-basic",
            statement="More hidden units do not make CoRelNet less accurate on same or different and on matching to a "
            "sample.",
            first=("CoRelNet-nhid",),
            second=("CoRelNet",),
            tasks=BASIC[:2],
            above=-0.02,
        ),
    ),
)
