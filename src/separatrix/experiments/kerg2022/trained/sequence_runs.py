"""One training run on one sequence task: copy, pixels or characters, by a row of hyperparameters."""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.core.names import choose
from separatrix.core.random import spawn
from separatrix.lab import Cell, Payload, scratch_folder

from .models import build_core, find_row, training_settings, with_penalty

if TYPE_CHECKING:
    from torch import Tensor, nn

    from separatrix.sources.kerg2022.models import ModelRow
    from separatrix.tasks import PixelSequences, Text
    from separatrix.training import TrainingRun, TrainingSettings

N_TEST_BATCHES = 50


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained model and what was recorded."""

    model: Any
    run: TrainingRun
    row: Any
    payload: Payload


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How cells of a family of experiments are built and trained."""

    row: Callable[[Cell, int, int], Any]
    """Cell, numbers of inputs and outputs to a row of hyperparameters with ``n_hidden`` and ``lr``."""
    core: Callable[[Cell, Any, int], Any]
    settings: Callable[..., TrainingSettings]
    """Row, number of steps and options to the settings of the training."""
    penalty: Callable[[Any, Any, Any], Any]
    """Loss, model and row to what is descended on."""


def run_cell(cell: Cell, recipe: Recipe | None = None) -> Trained:
    """Train the model of a cell on its task, by the rows of chapter 3 if nothing else is said."""
    kinds = {"copy": _copy, "pixels": _pixels, "characters": _characters}
    own = recipe or Recipe(_row, _core, training_settings, with_penalty)
    return kinds[choose("task", cell.args["task"], kinds)](cell, own)


def _row(cell: Cell, n_inputs: int, n_outputs: int) -> ModelRow:
    args = cell.args
    sizes, match = (n_inputs, n_outputs), args.get("match", "units")
    row = find_row(args["table"], args["model"], sizes, args["n_hidden"], match, args["lr_factor"])
    if row.model == "RNN-orth" and "orth_start" in args:
        return dataclasses.replace(row, start=args["orth_start"])
    return row


def _core(cell: Cell, row: ModelRow, n_inputs: int) -> Any:
    gamma = cell.args.get("gamma", "learn")
    return build_core(row, n_inputs, spawn(cell.seed, "kerg3", "weights"), gamma=gamma)


def _checkpoint(cell: Cell) -> Path | None:
    folder = scratch_folder(cell)
    return None if folder is None else folder / "checkpoint.pt"


def _copy(cell: Cell, recipe: Recipe) -> Trained:
    import torch

    from separatrix import nn, tasks
    from separatrix.training import train

    args = cell.args
    task = tasks.Copy(args["delay"])
    row = recipe.row(cell, task.n_inputs, task.n_outputs)
    head = spawn(cell.seed, "kerg3", "read-out")
    model = nn.SequenceModel(recipe.core(cell, row, task.n_inputs), task.n_outputs, generator=head)

    def loss(m: Any, batch: Any) -> Tensor:
        return recipe.penalty(task.loss(m(batch.inputs), batch), m, row)

    def over(part: str, n_batches: int) -> list[tuple[float, float]]:
        stream = tasks.StreamedBatches(task, args["batch_size"], cell.seed, part)
        with torch.no_grad():
            answers = [(model(stream(k).inputs), stream(k)) for k in range(n_batches)]
        return [(float(task.loss(out, batch)), float(task.accuracy(out, batch))) for out, batch in answers]

    settings = recipe.settings(row, args["n_steps"], clip=args["clip"], measure_every=args["measure_every"])
    batches = tasks.StreamedBatches(task, args["batch_size"], cell.seed)
    run = train(
        model,
        batches,
        loss,
        settings,
        measure=lambda m: {"valid": over("valid", 1)[0][0]},
        checkpoint=_checkpoint(cell),
    )
    model.eval()
    valid, test = over("valid", 10), over("test", N_TEST_BATCHES)
    return Trained(
        model,
        run,
        row,
        {
            **_ending(run, row, model),
            "curve": _curve(run, "valid"),
            "valid": statistics.median(loss for loss, _ in valid),
            "test_loss": statistics.median(loss for loss, _ in test),
            "score": statistics.median(accuracy for _, accuracy in test),
            "baseline": task.baseline,
        },
    )


def _pixels(cell: Cell, recipe: Recipe) -> Trained:
    from torch.nn import functional

    from separatrix import nn, tasks
    from separatrix.training import train

    args = cell.args
    data = load_images(args["data"], args["n_train"])
    row = recipe.row(cell, 1, data.n_classes)
    head = spawn(cell.seed, "kerg3", "read-out")
    model = nn.SequenceModel(recipe.core(cell, row, 1), data.n_classes, "last", generator=head)
    batches = tasks.ShuffledBatches(len(data.train_y), args["batch_size"], cell.seed, "kerg3", "order")

    def loss(m: Any, chosen: Tensor) -> Tensor:
        return recipe.penalty(functional.cross_entropy(m(data.train_x[chosen]), data.train_y[chosen]), m, row)

    settings = recipe.settings(
        row,
        args["n_steps"] or args["n_epochs"] * batches.per_epoch,
        clip=args["clip"],
        measure_every=args["measure_every"] or batches.per_epoch,
        watch="valid",
        best="greatest",
    )
    run = train(
        model,
        batches,
        loss,
        settings,
        measure=lambda m: {"valid": _accuracy(m, data.valid_x, data.valid_y)},
        checkpoint=_checkpoint(cell),
    )
    _go_to_best(model, run)
    return Trained(
        model,
        run,
        row,
        {
            **_ending(run, row, model),
            "curve": _curve(run, "valid"),
            "valid": -_best(run),
            "score": _accuracy(model, data.test_x, data.test_y),
            "n_test": len(data.test_y),
        },
    )


def _characters(cell: Cell, recipe: Recipe) -> Trained:
    import torch
    from torch.nn import functional

    from separatrix import tasks
    from separatrix.training import train

    from .character_model import EMBEDDING, CharacterModel

    args = cell.args
    text = load_text(args["data"], args["n_train"])
    n_embedding = min(EMBEDDING, text.n_symbols) if args["n_hidden"] else EMBEDDING
    row = recipe.row(cell, n_embedding, text.n_symbols)
    model = CharacterModel(recipe.core(cell, row, n_embedding), text.n_symbols, spawn(cell.seed, "kerg3", "read-out"))
    batches = tasks.ContiguousBatches(text.train, args["batch_size"], args["context"])

    def loss(m: Any, batch: Any, state: Any) -> tuple[Tensor, Any]:
        logits, state = m(batch[0], state)
        value = functional.cross_entropy(logits.flatten(0, 1), batch[1].flatten())
        return recipe.penalty(value, m, row), state

    def evaluate(symbols: Tensor) -> tuple[float, float]:
        total = right = count = 0.0
        state: Any = None
        with torch.no_grad():
            for inputs, targets in tasks.evaluation_windows(symbols, 10, args["context"]):
                logits, state = model(inputs, state)
                total += float(functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum"))
                right += float((logits.argmax(-1) == targets).sum())
                count += targets.numel()
        return tasks.bits_per_symbol(total / count), right / count

    settings = recipe.settings(
        row,
        args["n_steps"] or args["n_epochs"] * batches.per_epoch,
        clip=args["clip"],
        measure_every=args["measure_every"] or batches.per_epoch,
        watch="valid",
        plateau_factor=0.5,
        reset_every=batches.per_epoch,
    )
    run = train(
        model,
        batches,
        loss,
        settings,
        measure=lambda m: {"valid": evaluate(text.valid)[0]},
        carries=True,
        checkpoint=_checkpoint(cell),
    )
    _go_to_best(model, run)
    bits, accuracy = evaluate(text.test)
    return Trained(
        model,
        run,
        row,
        {
            **_ending(run, row, model),
            "curve": _curve(run, "valid"),
            "valid": _best(run),
            "score": bits,
            "accuracy": accuracy,
            "gradients": run.history.column("gradient_norm"),
        },
    )


def _ending(run: TrainingRun, row: Any, model: nn.Module) -> dict[str, Any]:
    return {
        "ending": run.ending,
        "n_done": run.n_done,
        "n_hidden": row.n_hidden,
        "lr": row.lr,
        "n_parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def _curve(run: TrainingRun, name: str) -> dict[str, list[Any]]:
    steps, values = run.history.column(name)
    return {"steps": steps, "values": values}


def _best(run: TrainingRun) -> float:
    return math.inf if run.best is None else run.best.value


def _go_to_best(model: nn.Module, run: TrainingRun) -> None:
    if run.best is not None:
        model.load_state_dict(run.best.state)
    model.eval()


def _accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    import torch

    with torch.no_grad():
        right = sum(
            float((model(part).argmax(-1) == own).sum()) for part, own in zip(x.split(500), y.split(500), strict=True)
        )
    return right / len(y)


def first_window(cell: Cell) -> tuple[Tensor, Tensor]:
    """Symbols and targets of the first window of the test text of a cell."""
    from separatrix import tasks

    text = load_text(cell.args["data"], cell.args["n_train"])
    return next(tasks.evaluation_windows(text.test, 10, cell.args["context"]))


@functools.lru_cache(maxsize=1)
def load_images(data: str, n_train: int) -> PixelSequences:
    """``"digits"`` (64 steps), ``"mnist-pooled"`` (196) or ``"mnist"`` (784), permuted."""
    from separatrix import tasks

    choose("data", data, ("digits", "mnist-pooled", "mnist"))
    if data == "digits":
        return tasks.sequential_digits()
    return tasks.sequential_mnist(pool=2 if data == "mnist-pooled" else 1, n_train=n_train)


@functools.lru_cache(maxsize=1)
def load_text(data: str, n_train: int) -> Text:
    """A text by name or, if there is such a file, by path; ``"made-up"`` needs no file. Parts are cut at ``n_train``,
    a tenth of it and a tenth of it."""
    from separatrix import tasks

    if data == "made-up":
        parts = [tasks.made_up_text(n, generator=spawn(0, "made-up text", n)) for n in (20000, 2000, 4000)]
        text = tasks.make_text("made-up", parts)
    else:
        text = tasks.load_characters(Path(data) if Path(data).is_file() else data)
    if not n_train:
        return text
    sizes = {"train": n_train, "valid": n_train // 10, "test": n_train // 10}
    shorter: dict[str, Any] = {name: getattr(text, name)[:size] for name, size in sizes.items()}
    return dataclasses.replace(text, **shorter)
