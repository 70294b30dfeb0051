"""Gradients over time of trained networks: how the norm of dL/dh changes from the last step to the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from separatrix.lab import Cell, Payload, Summary, in_turn, interval_row, with_interval
from separatrix.lab.experiment.claim import Row

from ..models import arithmetic

if TYPE_CHECKING:
    from torch import Tensor

SLOPES = "Change of the gradient norm over the sequence, in factors of ten, 95 % interval over seeds"


def gradient_curve(cell: Cell) -> Payload:
    """Train the network of a cell, then log10 of the norm of dL/dh of each step, the last first."""
    from separatrix import tasks

    from ..memory_runs import train_cell

    with arithmetic(cell):
        trained = train_cell(cell, **({"log_attention": True} if cell.args["model"].startswith("Mem") else {}))
    batch = tasks.StreamedBatches(trained.task, cell.args["n_gradient"], cell.seed, "gradient")(0)
    norms = _norms(trained.model, trained.task, batch)
    before_answers = norms[: trained.task.length - batch.oracle.shape[1]]
    curve = before_answers.clamp_min(1e-30).log10().flip(0)
    return {
        "curve": [round(value, 4) for value in curve.tolist()],
        "change": _change(curve),
        "accuracy": trained.payload["curve"]["accuracy"][-1],
        "ending": trained.payload["ending"],
    }


def _change(curve: Tensor) -> float:
    """Mean of the last tenth of steps (the first of the sequence) minus that of the first tenth."""
    tenth = max(1, len(curve) // 10)
    return float(curve[-tenth:].mean() - curve[:tenth].mean())


def _norms(model: Any, task: Any, batch: Any) -> Tensor:
    """Norm over the batch of the total derivative by the hidden state of each step."""
    if hasattr(model.core, "attentive_steps"):
        from separatrix.diagnose import gradient_paths

        def loss(hidden: Tensor) -> Tensor:
            return task.loss(model.head(hidden), batch)

        return gradient_paths(model.core, batch.inputs, loss, n_degrees=1).log_norms.exp()
    return _step_by_step(model, task, batch)


def _step_by_step(model: Any, task: Any, batch: Any) -> Tensor:
    import torch

    hidden, outputs, state = [], [], None
    for x in batch.inputs.unbind(1):
        output, state = model.core(x.unsqueeze(1), state)
        first = state[0] if isinstance(state, tuple) else state
        first.retain_grad()
        hidden.append(first)
        outputs.append(output)
    task.loss(model.head(torch.cat(outputs, 1)), batch).backward()
    norms = [torch.zeros(()) if h.grad is None else h.grad.norm() for h in hidden]
    model.zero_grad()
    return torch.stack(norms)


def slope_rows(results: Sequence[tuple[Cell, Payload]], key: Callable[[Mapping[str, Any]], str]) -> list[dict]:
    """Mean change of each group of cells with its interval over seeds."""
    from separatrix.training import spread

    groups: dict[str, list[Payload]] = {}
    for cell, payload in results:
        groups.setdefault(key(cell.args), []).append(payload)
    rows = []
    for name, payloads in groups.items():
        found = spread([payload["change"] for payload in payloads])
        accuracy = sum(payload["accuracy"] for payload in payloads) / len(payloads)
        rows.append({"model": name, "change": found.mean, "low": found.low, "high": found.high, "accuracy": accuracy})
    return rows


def mean_curves(results: Sequence[tuple[Cell, Payload]], key: Callable[[Mapping[str, Any]], str]) -> list[dict]:
    """Mean curve of each group of cells over seeds."""
    groups: dict[str, list[list[float]]] = {}
    for cell, payload in results:
        groups.setdefault(key(cell.args), []).append(payload["curve"])
    return [
        {"model": name, "curve": [sum(values) / len(curves) for values in zip(*curves, strict=True)]}
        for name, curves in groups.items()
    ]


def within(summary: Summary, model: str, limit: float) -> list[Row]:
    """Rows: the change of one model lies between minus and plus a limit."""
    rows = []
    for row in summary.table(SLOPES):
        if row["model"] == model:
            ends = (row["low"], row["high"])
            rows.append(interval_row(f"change of {model}", row["change"], ends, above=-limit))
            rows.append(interval_row(f"change of {model}", row["change"], ends, below=limit))
    return rows


def beyond(summary: Summary, model: str, limit: float) -> list[Row]:
    """Rows: the change of one model lies beyond a limit, on the side of its sign."""
    side: dict[str, float] = {"below": limit} if limit < 0 else {"above": limit}
    return [
        interval_row(f"change of {model}", row["change"], (row["low"], row["high"]), **side)
        for row in summary.table(SLOPES)
        if row["model"] == model
    ]


def in_words(summary: Summary, models: Sequence[str]) -> str:
    """``RelLSTM 10^-0.2``."""
    return ", ".join(
        f"{row['model']} 10^{row['change']:+.2f}" for row in summary.table(SLOPES) if row["model"] in models
    )


def changed(changes: Mapping[str, float]) -> Any:
    """A counterfeit or a genuine summary: changes of models elsewhere."""
    return in_turn(
        *(
            with_interval(SLOPES, value - 0.05, value + 0.05, {"model": model}, middle="change")
            for model, value in changes.items()
        )
    )
