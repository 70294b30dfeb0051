"""Ctrl-C during training: the first finishes the step and saves, the second stops at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, final

from separatrix.core.described import Described
from separatrix.core.names import suggest_options


@final
@suggest_options
class FinishStep(Described):
    """While entered, the first SIGINT only sets ``requested``; the second acts as it did before.

    Signals reach the main thread only; in another thread this watches nothing and changes nothing.

    Example:
        >>> with FinishStep() as interrupt:
        ...     interrupt.requested
        False
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None
        self._watching = False

    def __enter__(self) -> FinishStep:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._note)
            self._watching = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()  # a second Ctrl-C must not be swallowed

    def _restore(self) -> None:
        if self._watching:
            signal.signal(signal.SIGINT, self._previous)
            self._watching = False
