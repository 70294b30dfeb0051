"""A policy of somebody else's class, by what it can do."""

from __future__ import annotations

import dataclasses
from typing import Any, final

from .eviction import AbstractEviction, CacheSight


@final
@dataclasses.dataclass(frozen=True)
class BorrowedEviction(AbstractEviction):
    """An object with ``observe``, and with ``begin`` and ``name`` if it likes, that derives from no class of ours."""

    policy: Any

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its own, or that of its class."""
        return str(getattr(self.policy, "name", type(self.policy).__name__))

    def begin(self) -> Any:
        """What it makes itself, if it makes anything."""
        begin = getattr(self.policy, "begin", None)
        return begin() if callable(begin) else None

    def observe(self, sight: CacheSight) -> None:
        """Ask it."""
        self.policy.observe(sight)
