"""An experiment with one training whose steps can be watched from outside, to be stopped between two of them.

At two steps it leaves a mark in its scratch folder and waits until somebody has left another beside it. In a store that
is named ``whole`` it runs through.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from separatrix.lab import Cell, Experiment, Params, Summary, scratch_folder

WAITS = (3, 6)


def expand(settings: Params) -> Iterable[Mapping[str, Any]]:
    yield {"n_steps": 9}


def run(cell: Cell) -> dict[str, Any]:
    import torch

    from separatrix.core import spawn
    from separatrix.training import TrainingSettings, train

    folder = scratch_folder(cell)
    assert folder is not None
    model = torch.nn.Linear(2, 1)
    for index, parameter in enumerate(model.parameters()):
        torch.nn.init.normal_(parameter, generator=spawn(cell.seed, "init", index))
    x = torch.randn(cell.args["n_steps"], 4, 2, generator=spawn(cell.seed, "x"))

    def loss(own: Any, step: int) -> Any:
        if step in WAITS and "whole" not in folder.parts:
            (folder / f"step-{step}").touch()
            while not (folder / f"seen-{step}").exists():
                time.sleep(0.01)
        return (own(x[step]) - 1).square().mean()

    settings = TrainingSettings(n_steps=cell.args["n_steps"], lr=0.1, log_every=1)
    done = train(model, lambda step: step, loss, settings, checkpoint=folder / "run.pt")
    return {"history": done.history.records, "resumed_at": done.resumed_at or 0}


def summarise(results: Sequence[tuple[Cell, dict[str, Any]]]) -> Summary:
    return Summary()


STEPS = Experiment(
    name="steps",
    title="a training that can be stopped",
    document="separatrix",
    place="",
    version=1,
    scales=dict.fromkeys(("smoke", "laptop", "paper"), Params()),  # type: ignore[arg-type]
    expand=expand,
    run=run,
    summarise=summarise,
)
