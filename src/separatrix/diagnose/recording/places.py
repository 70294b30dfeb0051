"""Where in somebody's model an operation stands: the stack of modules, and the line of source that called it."""

from __future__ import annotations

import contextlib
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

_OURS = str(Path(__file__).parents[2])
_TORCH = str(Path(torch.__file__).parent)
_STDLIB = sysconfig.get_paths()["stdlib"] + "/"


class ModuleStack:
    """Names of the modules that are being called, innermost last, and how often each was."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.calls: dict[str, int] = {}
        self.at_raise: tuple[str, ...] = ()

    @property
    def here(self) -> str:
        """The innermost module; empty at the root."""
        return self.names[-1] if self.names else ""


@contextlib.contextmanager
def following(model: nn.Module) -> Iterator[ModuleStack]:
    """Hooks on every module keep the stack; all of them are gone afterwards."""
    stack = ModuleStack()
    handles: list[Any] = []

    def enter(name: str) -> Any:
        def hook(*_: Any) -> None:
            stack.names.append(name)
            stack.calls[name] = stack.calls.get(name, 0) + 1

        return hook

    def leave(name: str) -> Any:
        def hook(*_: Any) -> None:
            if sys.exc_info()[0] is not None and not stack.at_raise:
                stack.at_raise = tuple(stack.names)
            while stack.names and stack.names.pop() != name:
                pass

        return hook

    try:
        for name, module in model.named_modules():
            if isinstance(module, torch.jit.ScriptModule):
                continue
            handles.append(module.register_forward_pre_hook(enter(name), prepend=True))
            handles.append(module.register_forward_hook(leave(name), always_call=True))
        yield stack
    finally:
        for handle in handles:
            handle.remove()


_CHECKERS = re.compile(r"[/\\](?:beartype|jaxtyping|typeguard)[/\\]")
"""Checkers of types wrap functions of a model; their frames, and those they compile (``<@``), are nobody's."""


def source_line() -> str:
    """File and line of the innermost frame of the model's own code; empty if everything on the way is torch's."""
    frame, inside = sys._getframe(1), True
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<@") and not _CHECKERS.search(name):
            ours = name.startswith(_OURS)
            if ours and not inside:
                return ""  # back at the one who called the model
            inside = inside and ours
            library = name.startswith((_TORCH, "<frozen")) or (name.startswith(_STDLIB) and "site-packages" not in name)
            if not ours and not library:
                return f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
