"""kerg2022, section 5.6: identity rules of four with words left out, for CoRelNet with a random encoder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from separatrix.core.random import spawn
from separatrix.lab import Cell, Experiment, Params, Payload, scratch_folder

from ..arms import build
from .kerg5_missing import LEFT_OUT, draw, summarise, word_claim

ALONE = ("abaa", "abab")


class Settings(Params):
    """CoRelNet that sees glyphs through a random encoder."""

    seeds: tuple[int, ...] = (0, 1, 2)
    n_steps: int = 2500
    n_test: int = 3000


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per left-out word and seed."""
    for left_out in ALONE:
        for seed in settings.seeds:
            yield {"left_out": left_out, "n_steps": settings.n_steps, "n_test": settings.n_test, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train the network; accuracy by word."""
    from separatrix import tasks, training

    task = tasks.make_task(LEFT_OUT[cell.args["left_out"]], seed=cell.seed)
    n_steps = cell.args["n_steps"]
    settings = training.RelationalSettings(
        n_steps=n_steps, n_test=cell.args["n_test"], n_curve=300, measure_every=max(1, n_steps // 5)
    )
    network = build("random encoder CoRelNet", task, spawn(cell.seed, "kerg5", "missing"))
    folder = scratch_folder(cell)
    path = None if folder is None else folder / "checkpoint.pt"
    found = training.train_relational(network, task, settings, seed=cell.seed, checkpoint=path)
    return {"by_word": found.last.by_pattern}


EXPERIMENT = Experiment(
    name="kerg5-missing-frozen",
    title="Identity rules of four with a word left out, for CoRelNet with a random encoder",
    document="kerg2022",
    place="section 5.6, unseen relations",
    version=1,
    scales={
        "smoke": Settings(seeds=(0, 1), n_steps=3, n_test=60),
        "laptop": Settings(),
        "paper": Settings(seeds=tuple(range(10)), n_steps=5000, n_test=10_000),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=tuple(
        word_claim(
            word,
            id=f"kerg2022-ch5-missing-frozen-{word}",
            statement=f"Leaving out {word.upper()} alone does not keep CoRelNet with a random encoder from the words "
            "of the test.",
            measures="share of right answers by word",
        )
        for word in ALONE
    ),
    draw=draw,
)
