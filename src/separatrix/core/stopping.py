"""Work that somebody else may ask to stop: it saves where it is and says so, instead of handing over half of itself.

A worker of the lab lets a training know that its run is being stopped. The loop saves its checkpoint after the step and
raises ``WorkStopped``; nothing between it and the worker may take what was computed so far for a result.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator

_asked: contextvars.ContextVar[Callable[[], bool] | None] = contextvars.ContextVar("stop was asked", default=None)


class WorkStopped(BaseException):
    """The work was stopped before its end and can go on from what it saved; no experiment may catch it."""


@contextlib.contextmanager
def stoppable(asked: Callable[[], bool]) -> Iterator[None]:
    """Inside, loops that can go on later stop soon after ``asked()`` is true, by raising ``WorkStopped``."""
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


def stop_was_asked() -> bool:
    """Whether the work should stop where it can."""
    asked = _asked.get()
    return asked is not None and asked()


def is_stoppable() -> bool:
    """Whether somebody is told that the work was stopped, so that half of it is not to be returned."""
    return _asked.get() is not None
