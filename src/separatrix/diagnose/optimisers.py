"""What can be told of somebody's optimiser: whose step it takes, whether anything stands around it, and its rates."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

_READ_BY_STEPS = frozenset({"param_groups", "state", "__getattr__", "__getattribute__"})


def torch_class(optimiser: torch.optim.Optimizer) -> type[torch.optim.Optimizer] | None:
    """The class of torch whose step an optimiser takes; None if it takes one of its own, or alters what that one uses.

    A subclass may have a constructor and attributes of its own. Wrappers around the step must be torch's as well: a
    stranger's may clip gradients first, whatever name ``functools.wraps`` gave it.
    """
    lineage = type(optimiser).__mro__
    place = next((at for at, kind in enumerate(lineage) if _torchs(kind.__module__)), len(lineage) - 1)
    kind = lineage[place]
    if kind is torch.optim.Optimizer or not issubclass(kind, torch.optim.Optimizer):
        return None
    altered = {name for stranger in lineage[:place] for name in vars(stranger)}
    if any(name in _READ_BY_STEPS or _is_inner(name, kind) for name in altered):
        return None
    step = bare_step(type(optimiser).step)
    return kind if step is not None and step is bare_step(kind.step) else None


def changed_from_outside(optimiser: torch.optim.Optimizer) -> bool:
    """Whether hooks stand around the step, or another one in its place (a wrapper of torch's schedulers is none)."""
    for hooks in (
        optimiser._optimizer_step_pre_hooks,
        optimiser._optimizer_step_post_hooks,
        _global_optimizer_pre_hooks,
        _global_optimizer_post_hooks,
    ):
        if not all(_only_counts(hook) for hook in hooks.values()):
            return True
    own = vars(optimiser)
    if any(_is_inner(name, type(optimiser)) for name in own if callable(own[name])):
        return True
    return "step" in own and (bare_step(own["step"]) or own["step"]) is not bare_step(type(optimiser).step)


def _only_counts(hook: Any) -> bool:
    """Whether a hook notes that a step was made and nothing else: those of this package, and of torch's profiler."""
    module = str(getattr(hook, "__globals__", {}).get("__name__", ""))
    return module.split(".")[0] == "separatrix" or module.split(".")[:2] == ["torch", "profiler"]


def bare_step(step: Any) -> Any:
    """The function behind a method and torch's own wrappers; None where something else is wrapped around it."""
    links = list(_links(step))
    return links[-1] if all(_torchs(getattr(link, "__globals__", {}).get("__name__", "")) for link in links) else None


def _links(step: Any) -> Iterator[Any]:
    """A method's function, what that wraps, and so on."""
    seen: set[int] = set()
    while step is not None and id(step) not in seen:
        seen.add(id(step))
        step = getattr(step, "__func__", step)
        yield step
        step = getattr(step, "__wrapped__", None)


def _torchs(module: str) -> bool:
    return module == "torch" or module.startswith("torch.")


def _is_inner(name: str, kind: type) -> bool:
    """Whether a name is one of the methods that steps are made of."""
    inner = name.startswith("_") and not name.startswith("__")
    return inner and inspect.isroutine(inspect.getattr_static(kind, name, None))


def learning_rates(optimiser: torch.optim.Optimizer) -> list[float]:
    """The rates of all groups, ascending, each once; of a stranger without one number a group, none."""
    rates = [learning_rate(group) for group in optimiser.param_groups]
    return sorted({rate for rate in rates if rate is not None})


def learning_rate(group: dict[str, Any]) -> float | None:
    """The rate of one group; None where it has none, or one for every weight."""
    rate = group.get("lr")
    if isinstance(rate, Tensor):
        rate = rate.detach().reshape(-1)
        return float(rate[0]) if rate.numel() == 1 else None
    try:
        return float(rate)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
