"""Found and accused, per fault and architecture, on one half of the seeds; the rules of other tools beside ours."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import torch

import separatrix
from separatrix.diagnose import Diagnosis

from . import faults, healthy
from .cases import RECIPES, Case, Recipe

CHOOSING, TESTING = (0, 1, 2, 3), (20, 21, 22, 23)
"""Seeds on which thresholds are chosen, and on which they are reported."""

_ = (faults, healthy)


@dataclasses.dataclass(frozen=True)
class Score:
    recipe: str
    architecture: str
    fault: str | None
    seed: int
    found: bool
    first: bool
    accused: tuple[str, ...]
    measures: dict[str, float]
    seconds: float
    rules: dict[str, bool]


def examine(case: Case) -> Diagnosis:
    return separatrix.check(
        case.model, case.sample, loss=case.loss, target=case.target, optimizer=case.optimizer, output=case.output
    )


def score(recipe: Recipe, seed: int) -> Score:
    case = recipe.case(seed)
    found = examine(case)
    bad = [finding for finding in found.findings if finding.severity in ("warning", "fault")]
    ids = tuple(dict.fromkeys(finding.id for finding in bad))
    return Score(
        recipe.name, recipe.architecture, recipe.fault, seed, recipe.fault in ids,
        bool(ids) and ids[0] == recipe.fault, ids, found.measures, found.seconds, published_rules(case),
    )  # fmt: skip


def scores(seeds: Iterable[int], names: Iterable[str] | None = None) -> list[Score]:
    chosen = list(RECIPES) if names is None else list(names)
    return [score(RECIPES[name], seed) for name in chosen for seed in seeds]


def published_rules(case: Case) -> dict[str, bool]:
    """AutoTrainer's three rules on one gradient, UMLAUT's rule on the input."""
    x = case.sample if isinstance(case.sample, torch.Tensor) else next(iter(case.sample.values()))
    rules = {"umlaut": bool(x.is_floating_point() and (float(x.max()) > 1 or float(x.min()) < -1))}
    try:
        gradients = _gradients(case)
    except Exception:
        return rules | {"autotrainer": True}
    sizes = [float(g.abs().mean()) for g in gradients]
    if not sizes:
        return rules | {"autotrainer": True}
    first, last = sizes[0], sizes[-1]
    ratio = first / last if last > 0 else math.inf
    zeros = sum(int((g == 0).sum()) for g in gradients) / sum(g.numel() for g in gradients)
    bad = not all(math.isfinite(size) for size in sizes)
    return rules | {"autotrainer": bad or (ratio < 1e-3 and first < 1e-4) or ratio > 70 or zeros >= 0.7}


def _gradients(case: Case) -> list[torch.Tensor]:
    from separatrix.diagnose.losses import loss_function
    from separatrix.diagnose.model_call import call_model, prediction

    loss: Any = loss_function(case.loss)
    f = (case.output or prediction)(call_model(case.model, case.sample))
    weights = [value for value in case.model.parameters() if value.requires_grad and value.ndim >= 2]
    found = torch.autograd.grad(loss(f, case.target), weights, allow_unused=True)
    return [g if g is not None else torch.zeros_like(w) for g, w in zip(found, weights, strict=True)]


def table(found: list[Score]) -> list[dict[str, Any]]:
    """Rows: fault, architecture, found of planted; healthy rows count accusations."""
    rows: dict[tuple[str, str], list[Score]] = collections.defaultdict(list)
    for one in found:
        rows[one.fault or "(healthy)", one.architecture].append(one)
    return [
        {
            "fault": fault, "architecture": architecture, "models": len(group),
            "found" if fault != "(healthy)" else "accused": sum(
                one.found if one.fault else bool(one.accused) for one in group
            ),
            "first": sum(one.first for one in group),
        }
        for (fault, architecture), group in sorted(rows.items())
    ]  # fmt: skip


def summary(found: list[Score]) -> dict[str, Any]:
    """Shares over a half."""
    planted, fine = [one for one in found if one.fault], [one for one in found if not one.fault]
    return {
        "planted": len(planted),
        "found": sum(one.found for one in planted),
        "first": sum(one.first for one in planted),
        "healthy": len(fine),
        "accused": sum(bool(one.accused) for one in fine),
        "autotrainer found": sum(one.rules["autotrainer"] for one in planted),
        "autotrainer accused": sum(one.rules["autotrainer"] for one in fine),
        "umlaut accused": sum(one.rules["umlaut"] for one in fine),
        "seconds": sum(one.seconds for one in found),
    }


def ranges(found: list[Score]) -> dict[str, tuple[float, float, int]]:
    """Least and largest value of every measure over healthy models."""
    values: dict[str, list[float]] = collections.defaultdict(list)
    for one in found:
        if one.fault is None:
            for name, value in one.measures.items():
                if math.isfinite(value):
                    values[name].append(value)
    return {name: (min(group), max(group), len(group)) for name, group in sorted(values.items())}
