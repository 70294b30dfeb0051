"""Learned Schur forms: how much feeds forward, how the angles lie, and how large the moduli are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from separatrix.lab import Cell, Params, Payload, Summary, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS = "Learned Schur forms, means over seeds with 95 % intervals"
GAPS = "Differences between tasks, seed by seed, 95 % interval"
QUANTITIES = ("feedforward", "largest_singular_value", "angle_distance", "mean_modulus", "delay_line")
ORDER = ("copy", "pixels", "characters")


class Settings(Params):
    """An nnRNN on each task; a size or number of steps of 0 is that of the document."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    tasks: tuple[Literal["copy", "pixels", "characters"], ...] = ("copy", "characters")
    copy_rate: float = 1.0  # times the printed rates
    pixels_rate: float = 1.0
    characters_rate: float = 1.0
    n_hidden: int = 0
    clip: float = 10.0
    delay: int = 200
    copy_steps: int = 1500
    pixels_data: Literal["digits", "mnist-pooled", "mnist"] = "mnist"
    pixels_batch: int = 100
    pixels_epochs: int = 70
    n_images: int = 50_000
    characters_table: str = "ptb-150"
    text: str = "ptb-char"
    context: int = 150
    text_batch: int = 128
    text_steps: int = 0
    text_epochs: int = 100
    n_characters: int = 0


class Measured(Summary):
    """One form of each task to be drawn, and mean sizes along sub-diagonals."""

    forms: list[dict[str, Any]]
    sub_diagonals: dict[str, list[float]]


def expand(settings: Settings) -> Iterable[Mapping[str, Any]]:
    """One cell per task and seed."""
    for task in settings.tasks:
        for seed in settings.seeds:
            common = {"task": task, "model": "nnRNN", "seed": seed, "n_hidden": settings.n_hidden}
            yield {**common, "clip": settings.clip, **_of_task(settings, task)}


def _of_task(settings: Settings, task: str) -> dict[str, Any]:
    if task == "copy":
        own = {"table": "copy", "delay": settings.delay, "n_steps": settings.copy_steps, "batch_size": 10}
        return {**own, "lr_factor": settings.copy_rate, "measure_every": max(1, settings.copy_steps // 5)}
    if task == "pixels":
        own = {"table": "psmnist", "data": settings.pixels_data, "n_train": settings.n_images, "n_steps": 0}
        own |= {"n_epochs": settings.pixels_epochs, "batch_size": settings.pixels_batch}
        return {**own, "lr_factor": settings.pixels_rate, "measure_every": 0}
    own = {"table": settings.characters_table, "data": settings.text, "context": settings.context}
    own |= {"n_train": settings.n_characters, "n_steps": settings.text_steps, "n_epochs": settings.text_epochs}
    own |= {"batch_size": settings.text_batch, "lr_factor": settings.characters_rate}
    return {**own, "measure_every": max(1, settings.text_steps // 4)}


def run_form(cell: Cell) -> Payload:
    """Train, and read the form from the parameters: no decomposition is computed."""
    import torch

    from .sequence_runs import run_cell

    trained = run_cell(cell)
    matrix = trained.model.core.matrix
    with torch.no_grad():
        form = matrix.schur_form().to(torch.float64)
        below = form.clone()
        for start in range(0, matrix.n - 1, 2):  # without the rotation blocks
            below[start : start + 2, start : start + 2] = 0
        below = below.tril(-1)
        angles = matrix.theta.to(torch.float64)
        sizes = [float(torch.diagonal(form, -k).abs().mean()) for k in range(1, matrix.n)]
        found = {
            "feedforward": float(torch.linalg.matrix_norm(below) / torch.linalg.matrix_norm(form)),
            "largest_singular_value": float(torch.linalg.matrix_norm(form, 2)),
            "angle_distance": _distance_from_uniform(angles.tolist()),
            "mean_modulus": float(matrix.gamma.mean()),
            "delay_line": float(torch.diagonal(below, -1).abs().sum() / (matrix.n // 2)),
        }
    return {
        **found,
        "score": trained.payload["score"],
        "ending": trained.payload["ending"],
        "form": torch.round(form, decimals=3),  # to be drawn
        "angles": torch.round(angles, decimals=3),
        "sub_diagonals": sizes,
    }


def _distance_from_uniform(angles: Sequence[float]) -> float:
    """Kolmogorov's distance of the angles, folded to (0, pi), from the uniform law, times the root of their number:
    above 1.36 with five per cent of uniform draws."""
    folded = sorted(math.acos(math.cos(angle)) / math.pi for angle in angles)
    n = len(folded)
    gaps = [max((place + 1) / n - value, value - place / n) for place, value in enumerate(folded)]
    return max(gaps) * math.sqrt(n)


def summarise(results: Sequence[tuple[Cell, Payload]]) -> Measured:
    """Means by task and differences between tasks."""
    from separatrix.core import plain
    from separatrix.training import paired_difference, spread

    results = [(cell, plain(payload)) for cell, payload in results]
    by_task = {task: [p for c, p in results if c.args["task"] == task] for task in ORDER}
    by_task = {task: runs for task, runs in by_task.items() if runs}
    rows, gaps = [], []
    for task, runs in by_task.items():
        for quantity in QUANTITIES:
            found = spread([payload[quantity] for payload in runs])
            rows.append({"task": task, "quantity": quantity, "mean": found.mean, "low": found.low, "high": found.high})
    names = list(by_task)
    for less, more in itertools.pairwise(names):
        for quantity in QUANTITIES:
            gap = paired_difference([p[quantity] for p in by_task[more]], [p[quantity] for p in by_task[less]])
            ends = {"less": less, "more": more, "quantity": quantity}
            gaps.append({**ends, "gap": gap.mean, "low": gap.low, "high": gap.high})
    forms = [{"task": task, "form": runs[0]["form"], "angles": runs[0]["angles"]} for task, runs in by_task.items()]
    lines = {
        task: [sum(values) / len(runs) for values in zip(*(p["sub_diagonals"] for p in runs), strict=True)]
        for task, runs in by_task.items()
    }
    return Measured(forms=forms, sub_diagonals=lines, tables={FORMS: rows, GAPS: gaps})


def form_row(summary: Measured, task: str, quantity: str) -> Mapping[str, Any]:
    """Mean and interval of one quantity of one task."""
    (row,) = (row for row in summary.table(FORMS) if row["task"] == task and row["quantity"] == quantity)
    return row


def gap_row(summary: Measured, less: str, more: str, quantity: str) -> Mapping[str, Any]:
    """Difference of one quantity between two tasks."""
    ends = (less, more, quantity)
    (row,) = (row for row in summary.table(GAPS) if (row["less"], row["more"], row["quantity"]) == ends)
    return row


def moved(title: str, low: float, high: float, **keys: str) -> Any:
    """A counterfeit or a genuine summary: the intervals of the rows with these keys moved elsewhere."""
    return with_interval(title, low, high, keys)


def draw(summary: Measured) -> Mapping[str, Figure]:
    """The forms of the first seed, and mean sizes along sub-diagonals."""
    from separatrix.report.figures.recurrent.training import draw_over_steps, draw_schur_forms

    lines = [{"model": task, "curve": values} for task, values in summary.sub_diagonals.items()]
    return {
        "forms": draw_schur_forms(summary.forms),
        "sub-diagonals": draw_over_steps(
            lines,
            "mean size of an entry",
            across="sub-diagonal",
            caption="""Mean size of the entries of the learned Schur forms on each sub-diagonal; 0 is the diagonal
            itself. What lies right of it is the non-normal part, which feeds information forward.""",
        ),
    }
