"""kerg2022, chapter 5, Fig. 6: colours that do not count."""

from __future__ import annotations

from .judging import gap_claim, level_claim
from .scales import COLOURED, suite_scales
from .suite import suite_experiment

MODELS = ("ESBN", "CoRelNet", "random encoder ESBN", "random encoder CoRelNet", "L1 ESBN", "L1 CoRelNet")
OF_CORELNET = ("CoRelNet", "random encoder CoRelNet", "L1 CoRelNet")

EXPERIMENT = suite_experiment(
    __name__,
    name="kerg5-fig6",
    title="Colours that do not count: random, trained and penalised encoders",
    place="chapter 5, Fig. 6",
    scales=suite_scales(
        COLOURED,
        MODELS,
        smoke={"tasks": ("same_diff_colour",)},
        # every picture of a batch is another one, so a step costs ten times that of the tasks without colours
        laptop={
            "tasks": COLOURED[:2],
            "models": OF_CORELNET,
            "n_steps": 600,
            "batch_size": 32,
            "n_measured": 6,
        },
    ),
    claims=(
        level_claim(
            id="kerg2022-ch5-fig6-random",
            statement="With colours that do not count random encoders of ESBN and CoRelNet do poorly.",
            models=("random encoder ESBN", "random encoder CoRelNet"),
            tasks=COLOURED,
            below=0.7,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-ch5-fig6-learned",
            statement="With colours that do not count trained encoders struggle too.",
            models=("ESBN", "CoRelNet"),
            tasks=COLOURED,
            below=0.9,
            scale="paper",
        ),
        gap_claim(
            id="kerg2022-ch5-fig6-l1",
            statement="A penalty on absolute values behind the encoder helps against colours that do not count.",
            first=("L1 ESBN", "L1 CoRelNet"),
            second=("ESBN", "CoRelNet"),
            tasks=COLOURED,
            above=0.0,
            together=True,
            scale="paper",
        ),
        level_claim(
            id="kerg2022-ch5-fig6-random-corelnet",
            statement="With colours that do not count CoRelNet does poorly with a random encoder on same or different "
            "and on matching to a sample.",
            models=("random encoder CoRelNet",),
            tasks=COLOURED[:2],
            below=0.7,
        ),
        level_claim(
            id="kerg2022-ch5-fig6-learned-corelnet",
            statement="With colours that do not count CoRelNet struggles with a trained encoder too, on same or "
            "different and on matching to a sample.",
            models=("CoRelNet",),
            tasks=COLOURED[:2],
            below=0.9,
        ),
        gap_claim(
            id="kerg2022-ch5-fig6-l1-corelnet",
            statement="A penalty on absolute values behind the encoder helps CoRelNet against colours that do not "
            "count, on same or different and on matching to a sample.",
            first=("L1 CoRelNet",),
            second=("CoRelNet",),
            tasks=COLOURED[:2],
            above=0.0,
            together=True,
        ),
    ),
)
