"""Whether leases are alive, as one observer sees it.

A lease gives signs of life by counting up its beat. An observer notes when it first saw a count, on its own clock, and
takes a lease away whose count stands still for too long. So no two clocks are compared, a clock that is set forward or
back changes nothing, and an observer that was asleep itself grants everyone a new period. Of processes of its own
machine the observer knows more: one that lives is at work, however long it holds the interpreter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import final

from .process_names import is_gone, is_working

LOOKS = 6
"""An observer looks so often within the length of a lease; two looks further apart count as two looks."""


@dataclasses.dataclass
class _Seen:
    beat: int
    age: float = 0.0


@final
class LeaseWatch:
    """One observer of leases.

    Args:
        lease_seconds: how long a lease lasts without a sign of life.
        clock: seconds that only ever grow.
    """

    def __init__(self, lease_seconds: float, clock: Callable[[], float]) -> None:
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._looked = clock()
        self._seen: dict[tuple[str, int], _Seen] = {}

    def is_due(self) -> bool:
        """Whether it is time to look again."""
        return self._clock() - self._looked >= self._lease_seconds / LOOKS

    def lapsed(self, leases: Sequence[tuple[str, str, int, int]]) -> dict[str, str]:
        """Look once: workers that lost their leases, each with the reason.

        Args:
            leases: key, worker, start and beat of every lease there is.
        """
        now = self._clock()
        passed, self._looked = min(now - self._looked, 2 * self._lease_seconds / LOOKS), now
        working = {worker: is_working(worker) for worker in {worker for _, worker, _, _ in leases}}
        lost = {worker: "its process has ended" for worker, works in working.items() if not works and is_gone(worker)}
        seen = {}
        for key, worker, start, beat in leases:
            before = self._seen.get((key, start))
            still = before is not None and before.beat == beat and not working[worker]
            found = seen[key, start] = _Seen(beat, before.age + passed if before is not None and still else 0.0)
            if found.age > self._lease_seconds:
                lost.setdefault(worker, f"it gave no sign of life for {self._lease_seconds:g} s")
        self._seen = seen
        return lost
