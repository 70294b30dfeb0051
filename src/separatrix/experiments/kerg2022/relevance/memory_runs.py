"""One training run on copy or denoise, and what its network answers at other delays."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.names import choose
from separatrix.core.random import spawn
from separatrix.lab import Cell, Payload, scratch_folder
from separatrix.sources.kerg2022.screening import ScreeningRow, screening_row

from .models import FULL, SCREENED, build_core, training_settings

if TYPE_CHECKING:
    from torch import Tensor

    from separatrix.tasks import SequenceTask
    from separatrix.training import TrainingRun

EVALUATED_AT_ONCE = 100
FULL_FROM, FULL_SHARE = 400, 20
"""Full attention takes T^2 time: beyond this delay it answers a twentieth of the problems."""


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained network and what was recorded of its training."""

    model: Any
    task: SequenceTask
    payload: Payload


def make_task(kind: str, delay: int, n_items: int = 10) -> SequenceTask:
    """Copy (ten symbols) or denoise at a delay."""
    from separatrix import tasks

    choose("task", kind, ("copy", "denoise"))
    return tasks.Copy(delay) if kind == "copy" else tasks.Denoise(delay, n_items=n_items)


def row_of(args: Any) -> ScreeningRow:
    """The row of hyperparameters of a cell, with its own sizes of memory where it has them."""
    row = screening_row(args["table"], args["model"])
    own = {name: args[name] for name in ("n_buffer", "n_relevant") if args.get(name) is not None}
    return dataclasses.replace(row, **own)


def train_cell(cell: Cell, **options: Any) -> Trained:
    """Train the model of a cell: ``n_steps`` updates, then ``tail_steps`` at half the rate.

    The checkpoints are in the cell's scratch folder, so that a killed run goes on where it was.
    """
    import torch

    from separatrix import nn, tasks
    from separatrix.training import train

    args = cell.args
    task = make_task(args["task"], args["delay"], args.get("n_items", 10))
    row = row_of(args)
    core = build_core(row, task.n_inputs, args["n_hidden"], spawn(cell.seed, "kerg4", "weights"), **options)
    model = nn.SequenceModel(core, task.n_outputs, generator=spawn(cell.seed, "kerg4", "read-out"))
    valid = tasks.StreamedBatches(task, args["n_valid"], cell.seed, "valid")(0)

    def measure(network: Any) -> dict[str, float]:
        with torch.no_grad():
            outputs = network(valid.inputs)
        return {"valid": float(task.loss(outputs, valid)), "accuracy": float(task.accuracy(outputs, valid))}

    runs: list[TrainingRun] = []
    for part, (n_steps, factor) in enumerate(((args["n_steps"], 1.0), (args["tail_steps"], 0.5))):
        if n_steps == 0 or (runs and runs[-1].ending == "diverged"):
            continue
        settings = training_settings(
            row, n_steps, clip=args["clip"], lr_factor=factor, measure_every=args["measure_every"]
        )
        folder = scratch_folder(cell)
        checkpoint = None if folder is None else folder / f"part{part}.pt"
        batches = tasks.StreamedBatches(task, args["batch_size"], cell.seed, "train", part)
        loss = lambda network, batch: task.loss(network(batch.inputs), batch)  # noqa: E731
        runs.append(train(model, batches, loss, settings, measure=measure, checkpoint=checkpoint))
    model.eval()
    return Trained(model, task, _recorded(runs, model, row, task))


def _recorded(runs: Sequence[TrainingRun], model: Any, row: ScreeningRow, task: SequenceTask) -> Payload:
    curve: dict[str, list[Any]] = {"steps": [], "valid": [], "accuracy": []}
    before = 0
    for run in runs:
        steps, losses = run.history.column("valid")
        curve["steps"] += [step + 1 + before for step in steps]
        curve["valid"] += losses
        curve["accuracy"] += run.history.column("accuracy")[1]
        before += run.n_done
    return {
        "ending": runs[-1].ending,
        "n_done": before,
        "lr": row.lr,
        "optimiser": row.optimiser,
        "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
        "baseline": task.baseline,
        "curve": curve,
    }


def updates_until(curve: Any, accuracy: float) -> float:
    """Updates after which a measured accuracy was first reached; infinite if never."""
    reached = [step for step, value in zip(curve["steps"], curve["accuracy"], strict=True) if value >= accuracy]
    return float(reached[0]) if reached else math.inf


def answers(model: Any, task: SequenceTask, n: int, seed: int) -> Iterator[tuple[Any, Tensor]]:
    """Fresh problems in parts and which of their symbols were answered rightly (problems, symbols)."""
    import torch

    from separatrix import tasks

    done = 0
    while done < n:
        size = min(EVALUATED_AT_ONCE, n - done)
        batch = tasks.StreamedBatches(task, size, seed, "test", done)(0)
        with torch.no_grad():
            outputs = model(batch.inputs)
        n_items = batch.oracle.shape[1]
        yield batch, outputs[:, -n_items:].argmax(-1) == batch.targets[:, -n_items:]
        done += size


def evaluate(trained: Trained, args: Any, seed: int) -> Payload:
    """Accuracy at each delay and the number of problems; for screened memories, what was kept and its worth."""
    import torch

    found: Payload = {"delays": [], "n_problems": [], "accuracy": [], "right": []}
    kept, right_all = [], []
    for delay in args["delays"]:
        task = make_task(args["task"], delay, args.get("n_items", 10))
        n = args["n_test"]
        if args["model"] in FULL and delay > FULL_FROM:
            n = max(2, n // FULL_SHARE if delay <= 5 * FULL_FROM else 2)
        rights = []
        for batch, right in answers(trained.model, task, n, seed):
            rights.append(right)
            if args["model"] in SCREENED and delay == args["delays"][0]:
                kept.append(in_memory(trained.model.core.last.trace, batch.oracle, task.length))
                right_all.append(right)
        right = torch.cat(rights).double()
        found["delays"].append(delay)
        found["n_problems"].append(n)
        found["accuracy"].append(float(right.mean()))
        found["right"].append(float((right.mean(1) == 1).double().mean()))
    if kept:
        found |= _worth_of_keeping(torch.cat(kept), torch.cat(right_all))
    return found


def in_memory(trace: Any, oracle: Tensor, length: int) -> Tensor:
    """Whether the state of each step that matters was in memory when the first answer was asked for."""
    there = trace.indices[:, length - oracle.shape[1]]
    return (there.unsqueeze(1) == oracle.unsqueeze(2)).any(-1)


def _worth_of_keeping(kept: Tensor, right: Tensor) -> Payload:
    """Retention by symbol, and how often an answer is right if its state was kept and if it was lost."""

    def share(where: Tensor) -> float | None:
        return float(right[where].double().mean()) if bool(where.any()) else None

    return {
        "retention": float(kept.double().mean()),
        "retention_by_symbol": kept.double().mean(0).tolist(),
        "accuracy_by_symbol": right.double().mean(0).tolist(),
        "right_if_kept": share(kept),
        "right_if_lost": share(~kept),
    }


def run_and_evaluate(cell: Cell) -> Payload:
    """Train, then answer at all delays of the cell."""
    trained = train_cell(cell)
    return {**trained.payload, **evaluate(trained, cell.args, cell.seed)}
