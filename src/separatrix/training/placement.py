"""A model on another device than its data: it answers where it is asked, so that losses and measures need not know."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from separatrix.core.errors import InvalidInput


def _known(device: object) -> torch.device:
    """A device that tensors can be put on here."""
    try:
        found = torch.device(device)  # type: ignore[call-overload]
        torch.empty(0, device=found)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError):
        raise InvalidInput(
            f"device must be one of this machine's, such as 'cpu' or 'cuda:0'; got {device!r}."
        ) from None
    return found


@contextlib.contextmanager
def placed(model: nn.Module, device: str | torch.device | None) -> Iterator[None]:
    """Inside the block the model lies on a device; afterwards it is where it was.

    What the model is called with is taken to the device, and its answer is brought back to where the question was, with
    gradients. Parts of the model that are called by themselves stay on the device and answer there.

    Args:
        model: moved in place.
        device: where to; ``None`` leaves it where it is.

    Raises:
        InvalidInput: torch knows no such device, or this machine has none.
    """
    device = None if device is None else _known(device)
    home = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    if device is None or device == home:
        yield
        return
    asked: list[torch.device] = []

    def enter(_: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        asked[:] = [tensor.device for tensor in _tensors((args, options))][:1]
        return moved(args, device), moved(options, device)

    def leave(_: nn.Module, args: Any, answer: Any) -> Any:
        return moved(answer, asked[0]) if asked else answer

    hooks = [model.register_forward_pre_hook(enter, with_kwargs=True), model.register_forward_hook(leave)]
    model.to(device)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        model.to(home)


def moved(value: Any, device: str | torch.device) -> Any:
    """A value with its tensors on a device, those inside tuples, lists and dictionaries too."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(item, device) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(moved(item, device) for item in value)
    if isinstance(value, Mapping):
        return {key: moved(item, device) for key, item in value.items()}
    return value


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, Mapping):
        yield from _tensors(tuple(value.values()))
