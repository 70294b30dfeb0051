"""When compiled code is worth having: after so much work by torch, and sooner if it lies on disk already."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, final


@final
class Readiness:
    """How much work this process has made by torch, and for which kinds of number there is code by now.

    Args:
        is_cached: whether code for a kind lies on disk; asking takes an import of numba.
        import_after: work after which the cache is looked into.
        compile_after: work after which it is worth compiling.
    """

    def __init__(self, is_cached: Callable[[Any], bool], import_after: float | int, compile_after: float | int) -> None:
        self.is_cached, self.import_after, self.compile_after = is_cached, import_after, compile_after
        self.work = 0.0
        self.usable = True
        self.ready: dict[Hashable, bool] = {}
        self.lock = threading.Lock()

    def after(self, work: float | int, kind: Hashable) -> bool:
        """Count a job, and say whether it should be run by compiled code."""
        if self.ready.get(kind):
            return True
        with self.lock:
            self.work += work
            if self.work >= self.import_after and kind not in self.ready and self.usable:
                self.ready[kind] = self._is_cached(kind)
            if self.work >= self.compile_after and self.usable:
                self.ready[kind] = True
        return self.ready.get(kind, False)

    def _is_cached(self, kind: Hashable) -> bool:
        """An installation of numba that cannot be imported counts as none: nobody asked for it."""
        try:
            return self.is_cached(kind)
        except ImportError:
            self.usable = False
            return False
