"""What an equilibrium layer refuses, or keeps at a distance: batch statistics, lost gradients, the compiler."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, final

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.utils import parametrize

from separatrix.core.arithmetic.transforms import transforms_active
from separatrix.core.errors import InvalidInput, SeparatrixError

Called = TypeVar("Called", bound=Callable[..., Any])


@contextlib.contextmanager
def refused_batch_norm(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Raise before normalisation by batch statistics is used, as long as this context lasts.

    Only modules that are called are refused: a method's object may have others.
    """
    parts = {id(part): part for module in modules for part in module.modules() if _uses_the_batch(part)}
    hooks = [part.register_forward_pre_hook(_refuse) for part in parts.values()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _uses_the_batch(part: nn.Module) -> bool:
    if isinstance(part, _InstanceNorm):
        return part.training and part.track_running_stats
    return isinstance(part, _BatchNorm) and (part.training or not part.track_running_stats)


def _refuse(part: nn.Module, inputs: Any) -> None:
    raise InvalidInput(
        f"the cell uses {type(part).__name__} with statistics of the batch: its samples depend on each other, and the "
        "running statistics would move at every evaluation of the solver. Call eval() on it, or use nn.LayerNorm or "
        "nn.GroupNorm."
    )


def require_gradients(modules: Sequence[nn.Module]) -> None:
    """Raise if a parametrised weight that has a gradient is cached without one: its parameters would not learn."""
    if not torch.is_grad_enabled() or transforms_active():
        return
    for part in (part for module in modules for part in module.modules()):
        for name, free in getattr(part, "parametrizations", {}).items():
            value = parametrize._cache.get((id(part), name))
            if value is not None and not value.requires_grad and any(p.requires_grad for p in free.parameters()):
                raise SeparatrixError(
                    f"the parametrised weight {name!r} of {type(part).__name__} was cached without its gradient before "
                    "this layer was called. Call the layer outside of torch.no_grad() and parametrize.cached()."
                )


def require_no_recording() -> None:
    """Refuse torch.export and torch.jit.trace: a recording would repeat the number of steps of its example for ever.

    Raises:
        InvalidInput: one of them is at work.
    """
    exporting = getattr(torch.compiler, "is_exporting", torch.jit.is_tracing)  # since torch 2.7
    if exporting() or torch.jit.is_tracing():
        raise not_recordable()


def not_recordable() -> InvalidInput:
    """What is said to whoever wants a recording, or TorchScript, of an equilibrium layer."""
    return InvalidInput(
        "an equilibrium layer takes as many steps as its input asks for, which torch.export, torch.jit and the ONNX "
        "exporter cannot record; record its cell and solve outside, or use torch.compile."
    )


@final
@dataclasses.dataclass
class SurveySchedule:
    """Which solves of a layer look for slow directions that nothing excites.

    The first, the second, the fourth and so on, and from the 1024th on every 1024th: what a cell has at one input it
    mostly has at the next, and training changes it little by little. So if the search refused a claim, all solves after
    it look too, until one of those scheduled finds nothing to refuse.
    """

    n_solves: int = 0
    hidden: bool = False
    """Whether a search refused a claim."""

    def next(self) -> bool:
        """Whether the next solve looks."""
        self.n_solves += 1
        scheduled = self.n_solves % 1024 == 0 or self.n_solves & (self.n_solves - 1) == 0
        looks = scheduled or self.hidden
        if scheduled:
            self.hidden = False  # until this search says otherwise
        return looks

    def note_hidden(self) -> None:
        """A search refused a claim."""
        self.hidden = True


def outside_the_compiler(function: Called) -> Called:
    """The function itself, for torch.compile a black box: loops that depend on numbers cannot be traced."""
    if "torch._dynamo" not in sys.modules:
        return function
    disabled: Called = torch._dynamo.disable(function)
    return disabled
