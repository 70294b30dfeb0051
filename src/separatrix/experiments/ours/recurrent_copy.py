"""The copy task at a delay of 200 by the printed settings: who learns it, and what training does to the matrices."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.core.random import spawn
from separatrix.core.wording import small
from separatrix.experiments.kerg2022.trained.models import build_core, find_row, training_settings, with_penalty
from separatrix.lab import (
    Cell,
    Claim,
    Experiment,
    Judgement,
    Params,
    Payload,
    Row,
    Summary,
    groups,
    judge,
    with_column,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

TABLE = "Copy after training, median of the last fifty steps"
LEARNERS = ("nnRNN", "expRNN")
LAST = 50


class Settings(Params):
    """Rows of kerg2022, appendix A, Table 1; a size of 0 is the printed one."""

    models: tuple[str, ...] = ("nnRNN", "expRNN", "LSTM")
    delay: int = 200
    n_hidden: int = 0
    n_steps: int = 1500
    batch_size: int = 10
    clip: float = 10.0


class Measured(Summary):
    """Losses against the step."""

    curves: list[dict[str, Any]]
    baseline: float


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per model and seed."""
    for model in settings.models:
        for seed in settings.seeds:
            yield {**settings.model_dump(exclude={"seeds", "models"}), "model": model, "seed": seed}


def run(cell: Cell) -> Payload:
    """Train; note loss and recall of every batch, and how far the basis is from orthogonal after every update."""
    from separatrix import nn, tasks
    from separatrix.training import train

    args = cell.args
    task = tasks.Copy(args["delay"])
    row = find_row("copy", args["model"], (task.n_inputs, task.n_outputs), args["n_hidden"], "units", 1.0)
    core = build_core(row, task.n_inputs, spawn(cell.seed, "recurrent-copy", "weights"))
    model = nn.SequenceModel(core, task.n_outputs, generator=spawn(cell.seed, "recurrent-copy", "read-out"))
    losses: list[float] = []
    recall: list[float] = []
    deviations: list[float] = []

    def loss(m: Any, batch: Any) -> Tensor:
        outputs = m(batch.inputs)
        value = task.loss(outputs, batch)
        losses.append(float(value.detach()))
        recall.append(float(task.accuracy(outputs.detach(), batch)))
        return with_penalty(value, m, row)

    settings = training_settings(row, args["n_steps"], clip=args["clip"])
    ended = train(
        model,
        tasks.StreamedBatches(task, args["batch_size"], cell.seed),
        loss,
        settings,
        after_update=lambda m: deviations.append(_deviation(m.core)),
    )
    model.eval()
    return {
        "ending": ended.ending,
        "loss": statistics.median(losses[-LAST:]),
        "recall": statistics.median(recall[-LAST:]),
        "baseline": task.baseline,
        "largest_deviation": max(deviations),
        "spectrum_error": _spectrum_error(core),
        "losses": losses[:: max(1, len(losses) // 150)],
    }


def _held(core: Any) -> Any:
    """The module that keeps an orthogonal matrix, if there is one."""
    matrix = getattr(core, "matrix", None)
    return getattr(matrix, "basis", matrix)


def _deviation(core: Any) -> float:
    from separatrix.nn import orthogonality_error

    held = _held(core)
    return 0.0 if held is None else float(orthogonality_error(held().detach()))


def _spectrum_error(core: Any) -> float:
    """Distance of the eigenvalues of V, computed from the matrix itself, from those the parameters name."""
    import torch

    from separatrix import matrices

    if not hasattr(core, "recurrent"):
        return 0.0
    with torch.no_grad():
        found = torch.linalg.eigvals(core.recurrent().to(torch.float64))
        if not hasattr(core.matrix, "schur_form"):  # orthogonal: all moduli are one
            return float((found.abs() - 1).abs().max())
        return float(matrices.spectral_distance(found, core.eigenvalues().to(found.dtype)))


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """One row per model and seed."""
    from separatrix.core import plain

    results = [(cell, plain(payload)) for cell, payload in results]
    rows = [
        {"model": cell.args["model"], "seed": cell.seed} | {k: v for k, v in p.items() if k != "losses"}
        for cell, p in results
    ]
    stride = [max(1, cell.args["n_steps"] // 150) for cell, _ in results]
    curves = [
        {"model": cell.args["model"], "steps": [k * step for k in range(len(p["losses"]))], "values": p["losses"]}
        for (cell, p), step in zip(results, stride, strict=True)
    ]
    return Measured(curves=curves, baseline=results[0][1]["baseline"] if results else 0.0, tables={TABLE: rows})


def _rows(summary: Measured, *models: str) -> list[dict[str, Any]]:
    return [dict(row) for row in summary.table(TABLE) if row["model"] in models]


def judge_learned(summary: Measured) -> Judgement:
    """Decide ``separatrix-copy-learned``."""
    found = _rows(summary, *LEARNERS)
    rows = [
        Row(f"recall, {row['model']}, seed {row['seed']}", row["recall"], "above .95", agrees=row["recall"] > 0.95)
        for row in found
    ]
    return judge(", ".join(f"{row['model']} {row['recall']:.3f}" for row in found), rows)


def judge_lstm(summary: Measured) -> Judgement:
    """Decide ``separatrix-copy-lstm``."""
    found = _rows(summary, "LSTM")
    rows = [Row(f"loss over baseline, seed {row['seed']}", row["loss"] / row["baseline"], 1.0, 0.2) for row in found]
    return judge(
        f"loss over that without memory {max((r['loss'] / r['baseline'] for r in found), default=0):.3f}", rows
    )


def judge_orthogonal(summary: Measured) -> Judgement:
    """Decide ``separatrix-copy-orthogonal``."""
    found = _rows(summary, *LEARNERS)
    rows = [
        Row(f"largest deviation, {row['model']}, seed {row['seed']}", row["largest_deviation"], 0.0, 2e-5)
        for row in found
    ]
    worst = max((row["largest_deviation"] for row in found), default=0.0)
    return judge(f"at most {small(worst)} at any step", rows)


def judge_spectrum(summary: Measured) -> Judgement:
    """Decide ``separatrix-copy-spectrum``."""
    found = _rows(summary, "nnRNN")
    rows = [Row(f"distance of spectra, seed {row['seed']}", row["spectrum_error"], 0.0, 1e-4) for row in found]
    return judge(f"at most {small(max((row['spectrum_error'] for row in found), default=0.0))}", rows)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """Losses of the batches against the step."""
    from separatrix.report.figures.recurrent.training import draw_model_curves

    label = "cross entropy of the batch"
    return {"copy": draw_model_curves(summary.curves, label=label, logarithmic=True, baseline=summary.baseline)}


def _for(model: Sequence[str]) -> Any:
    return lambda row: row["model"] in model


EXPERIMENT = Experiment(
    name="recurrent-copy",
    title="Copy at a delay of 200 by the printed settings",
    document="separatrix",
    place="after kerg2022, appendix A, Table 1",
    version=1,
    scales={
        "smoke": Settings(delay=5, n_hidden=16, n_steps=60),
        "laptop": Settings(),
        "paper": Settings(seeds=(0, 1, 2, 3, 4), models=("nnRNN", "expRNN", "RNN-orth", "LSTM", "RNN")),
    },
    expand=expand,
    run=run,
    summarise=summarise,
    claims=(
        Claim(
            id="separatrix-copy-learned",
            statement="nnRNN and expRNN learn the copy task at a delay of 200 within 1500 steps.",
            measures="median recall of the last fifty batches",
            test="above .95",
            needs=(groups(TABLE, "model", "nnRNN", "expRNN"),),
            judge=judge_learned,
            counterfeit=with_column(TABLE, "recall", 0.13, _for(LEARNERS)),
            genuine=with_column(TABLE, "recall", 0.99, _for(LEARNERS)),
            scale="laptop",
        ),
        Claim(
            id="separatrix-copy-lstm",
            statement="An LSTM of 128 units has not begun to learn it by then.",
            measures="median loss of the last fifty batches over the loss without memory",
            test="1 to within .2",
            judge=judge_lstm,
            counterfeit=with_column(TABLE, "loss", 0.001, _for(("LSTM",))),
            genuine=with_column(TABLE, "loss", lambda row: row["baseline"], _for(("LSTM",))),
            scale="laptop",
        ),
        Claim(
            id="separatrix-copy-orthogonal",
            statement="The orthogonal basis stays orthogonal at every step of training in single precision.",
            measures="largest entry of P'P - I after every update",
            test="2e-5",
            needs=(groups(TABLE, "model", "nnRNN", "expRNN"),),
            judge=judge_orthogonal,
            counterfeit=with_column(TABLE, "largest_deviation", 1e-3, _for(LEARNERS)),
        ),
        Claim(
            id="separatrix-copy-spectrum",
            statement="After training the eigenvalues are gamma exp(+-i theta), T and P notwithstanding.",
            measures="distance of the computed spectrum of V, a matrix in single precision, from the parameters",
            test="1e-4",
            judge=judge_spectrum,
            counterfeit=with_column(TABLE, "spectrum_error", 0.1, _for(("nnRNN",))),
        ),
    ),
    draw=draw,
)
