"""The claim ledger: each claim, what was measured, and the verdict that follows from stored records."""

from __future__ import annotations

import dataclasses
from typing import Any, final

from separatrix.core.result import plain

from .claim import Row, Verdict


@final
@dataclasses.dataclass(frozen=True)
class LedgerEntry:
    """One claim with its verdict, and the rows of measured and expected numbers behind it."""

    id: str
    document: str
    place: str
    statement: str
    measures: str
    test: str
    erratum: str | None
    experiment: str
    """Name of the experiment that measures it."""
    scale: str | None
    """Scale of the run that was judged; ``None`` when no run could be."""
    verdict: Verdict
    evidence: str
    rows: tuple[Row, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; the verdict by its label."""
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
