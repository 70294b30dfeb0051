"""What the relational bottleneck owes to its parts: sensory features, the normalisation, and another in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from separatrix.lab import at_least, crossed

from ..judging import level_claim
from ..suite import EXTREME, Settings as SuiteSettings, suite_experiment, training_of

RULES = ("random encoder CoRelNet", "random encoder CoRelNet cat", "CoRelNet, no TCN")
COLOURS = ("CoRelNet", "CoRelNet, l2")


class Settings(SuiteSettings):
    """Identity rules with a frozen encoder, and colours that do not count with half of the shapes held out."""

    seeds: tuple[int, ...] = (0, 1, 2)
    n_steps: int = 400
    colour_steps: int = 250
    colour_batch: int = 64
    colour_holdout: int = 50
    n_test: int = 4000
    n_curve: int = 500
    n_measured: int = 5


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per network and seed."""
    kept = training_of(settings)
    colours = {"n_steps": settings.colour_steps, "batch_size": settings.batch_size or settings.colour_batch}
    for task, holdout, models, own in (
        ("identity_rules", EXTREME, RULES, {}),
        ("same_diff_colour", settings.colour_holdout, COLOURS, colours),
    ):
        for model in models:
            for seed in settings.seeds:
                yield {**kept, **own, "task": task, "holdout": holdout, "model": model, "seed": seed}


def runs_of(task: str) -> tuple[Any, ...]:
    """All runs of one task: each has networks of its own."""
    return crossed("runs", "model", "seed", task=task), at_least("runs", 3, "seed", task=task)


EXPERIMENT = suite_experiment(
    __name__,
    name="relational-controls",
    title="CoRelNet with sensory features, without its normalisation, and with another one",
    place="chapter 5, models",
    scales={
        "smoke": Settings(
            seeds=(0, 1), n_steps=2, colour_steps=2, batch_size=4, n_test=40, n_curve=10, n_measured=1, n_shapes=60
        ),
        "laptop": Settings(),
        "paper": Settings(seeds=tuple(range(10)), n_steps=5000, colour_steps=5000, colour_batch=96, n_test=10_000),
    },
    expand=expand,
    claims=(
        level_claim(
            id="separatrix-relational-sensory-frozen",
            document="separatrix",
            statement="With sensory features beside relations a frozen CoRelNet fails on the identity rules about "
            "unseen shapes after the 400 steps that relations alone need.",
            models=("random encoder CoRelNet cat",),
            tasks=("identity_rules",),
            below=0.85,
            control=("random encoder CoRelNet", 0.97),
            needs=runs_of("identity_rules"),
        ),
        level_claim(
            id="separatrix-relational-no-norm",
            document="separatrix",
            statement="Without the normalisation over positions a frozen CoRelNet fails there too: equal objects are "
            "not the most similar ones.",
            models=("CoRelNet, no TCN",),
            tasks=("identity_rules",),
            below=0.85,
            control=("random encoder CoRelNet", 0.97),
            needs=runs_of("identity_rules"),
        ),
        level_claim(
            id="separatrix-relational-colour-l2",
            document="separatrix",
            statement="Features of length 1 in place of the normalisation tell equal shapes of other colours within "
            "250 steps.",
            models=("CoRelNet, l2",),
            tasks=("same_diff_colour",),
            above=0.97,
            needs=runs_of("same_diff_colour"),
        ),
        level_claim(
            id="separatrix-relational-colour-tcn",
            document="separatrix",
            statement="With the normalisation over two positions CoRelNet is at chance there: any difference of colour "
            "counts as much as one of shape.",
            models=("CoRelNet",),
            tasks=("same_diff_colour",),
            below=0.6,
            needs=runs_of("same_diff_colour"),
        ),
    ),
)
