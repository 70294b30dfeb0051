"""Experiments of one cell whose steps can be watched from outside, to be stopped between two of them.

At two steps it leaves a mark in its scratch folder and waits until somebody has left another beside it. In a store that
is named ``whole`` it runs through. ``TRAINING`` is a training of torch; ``STEPS`` does the same without it.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from separatrix.core.stopping import WorkStopped, stop_was_asked
from separatrix.lab import Cell, Experiment, Params, Summary, scratch_folder

WAITS = (3, 6)


def expand(settings: Params) -> Iterable[Mapping[str, Any]]:
    yield {"n_steps": 9}


def own_folder(cell: Cell) -> Path:
    folder = scratch_folder(cell)
    assert folder is not None
    return folder


def wait_at(step: int, folder: Path) -> None:
    if step in WAITS and "whole" not in folder.parts:
        (folder / f"step-{step}").touch()
        while not (folder / f"seen-{step}").exists():
            time.sleep(0.01)


def train_by_torch(cell: Cell) -> dict[str, Any]:
    import torch

    from separatrix.core import spawn
    from separatrix.training import TrainingSettings, train

    folder = own_folder(cell)
    model = torch.nn.Linear(2, 1)
    for index, parameter in enumerate(model.parameters()):
        torch.nn.init.normal_(parameter, generator=spawn(cell.seed, "init", index))
    x = torch.randn(cell.args["n_steps"], 4, 2, generator=spawn(cell.seed, "x"))

    def loss(own: Any, step: int) -> Any:
        wait_at(step, folder)
        return (own(x[step]) - 1).square().mean()

    settings = TrainingSettings(n_steps=cell.args["n_steps"], lr=0.1, log_every=1)
    done = train(model, lambda step: step, loss, settings, checkpoint=folder / "run.pt")
    return {"history": done.history.records, "resumed_at": done.resumed_at or 0}


def step_by_step(cell: Cell) -> dict[str, Any]:
    """A walk that saves where it is when it is asked to stop, and goes on from there."""
    folder = own_folder(cell)
    saved, walk = folder / "walk.json", list[float]()
    if saved.exists():
        walk = json.loads(saved.read_text())
    resumed_at = len(walk)
    for step in range(resumed_at, cell.args["n_steps"]):
        wait_at(step, folder)
        walk.append((walk[-1] if walk else 0.0) + random.Random(f"{cell.seed} {step}").gauss(0, 1))
        if stop_was_asked():
            saved.write_text(json.dumps(walk))
            raise WorkStopped
    return {"history": walk, "resumed_at": resumed_at}


def summarise(results: Sequence[tuple[Cell, dict[str, Any]]]) -> Summary:
    return Summary()


def made(name: str, run: Any) -> Experiment:
    return Experiment(
        name=name,
        title="work that can be stopped",
        document="separatrix",
        place="",
        version=1,
        scales=dict.fromkeys(("smoke", "laptop", "paper"), Params()),  # type: ignore[arg-type]
        expand=expand,
        run=run,
        summarise=summarise,
    )


STEPS = made("steps", step_by_step)
TRAINING = made("training", train_by_torch)
