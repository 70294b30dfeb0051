"""When compiled code is worth having: after so much work by torch, and sooner if it lies on disk already."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import final


@final
class Readiness:
    """How much work this process has made by torch, and for which kinds of number there is code by now.

    Args:
        is_cached: whether code for a kind lies on disk; asking takes an import of numba.
        import_after: work after which the cache is looked into.
        compile_after: work after which it is worth compiling.
    """

    def __init__(self, is_cached: Callable[[Hashable], bool], import_after: float, compile_after: float) -> None:
        self.is_cached, self.import_after, self.compile_after = is_cached, import_after, compile_after
        self.work = 0.0
        self.ready: dict[Hashable, bool] = {}
        self.lock = threading.Lock()

    def after(self, work: float, kind: Hashable) -> bool:
        """Count a job, and say whether it should be run by compiled code."""
        if self.ready.get(kind):
            return True
        with self.lock:
            self.work += work
            if self.work >= self.compile_after:
                self.ready[kind] = True
            elif self.work >= self.import_after and kind not in self.ready:
                self.ready[kind] = self.is_cached(kind)
        return self.ready.get(kind, False)
