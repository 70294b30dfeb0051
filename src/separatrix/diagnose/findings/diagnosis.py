"""The result of ``separatrix.check``: findings in order, what was skipped, profiles; as text, JSON or a page."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Literal, NoReturn, final

from separatrix.core import InvalidInput, Result, SeparatrixError, choose
from separatrix.core.disk import require_place_for_file, write_text_whole
from separatrix.core.outlets import outlet
from separatrix.core.result import plain

from .finding import Finding, Skipped
from .markup import as_html
from .severity import SEVERITIES, Severity, rank
from .text import as_text

SCHEMA = 1
"""Version of the JSON form (``findings/schema.json``)."""


class FaultFound(SeparatrixError):
    """A diagnosis has findings of the severity that a caller asked to be told of; it is in ``diagnosis``."""

    def __init__(self, message: str, diagnosis: Diagnosis) -> None:
        super().__init__(message)
        self.diagnosis = diagnosis


@final
@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Diagnosis(Result):
    """What ``separatrix.check`` found: causes before consequences, the worst first."""

    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    profiles: dict[str, Any]
    """``depth``: a row for each weight in order of execution; ``time``; ``attention``: a row for each layer."""
    model: dict[str, Any]
    sample: dict[str, Any]
    seed: int
    seconds: float
    peak_bytes: int | None
    environment: dict[str, str]
    measures: dict[str, float]
    """Every number that was compared with a threshold, by the name of the measure."""
    ran: bool = True
    """False if the model could not be run."""

    @property
    def verdict(self) -> Literal["fault", "warning", "ok", "failed"]:
        """The worst severity; notes count as ``ok``; ``failed`` if the model could not be run."""
        if not self.ran:
            return "failed"
        worst = max((rank(finding.severity) for finding in self.findings), default=0)
        return "fault" if worst == 3 else "warning" if worst == 2 else "ok"

    @property
    def exit_status(self) -> int:
        """0 nothing but notes, 1 warnings, 2 faults, 3 could not run."""
        return {"ok": 0, "warning": 1, "fault": 2, "failed": 3}[self.verdict]

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def find(self, id: str) -> Finding | None:
        """The first finding of a name, or None."""
        return next((finding for finding in self.findings if finding.id == id), None)

    def to_dict(self) -> dict[str, Any]:
        """The versioned JSON form; NaN and infinity as strings."""
        return {
            "schema": SCHEMA,
            "product": "separatrix.check",
            "model": plain(self.model),
            "sample": plain(self.sample),
            "seed": self.seed,
            "seconds": self.seconds,
            "peak_bytes": self.peak_bytes,
            "verdict": self.verdict,
            "findings": [finding.to_dict() for finding in self.findings],
            "measures": plain(self.measures),
            "profiles": plain(self.profiles),
            "skipped": [plain(dataclasses.asdict(skip)) for skip in self.skipped],
            "environment": dict(self.environment),
        }

    def to_json(self, *, timing: bool = True) -> str:
        """``to_dict`` as JSON; without ``timing`` the same for every run of one seed on one machine."""
        content = self.to_dict()
        if not timing:
            content |= {"seconds": None, "peak_bytes": None}
            content["findings"] = [finding | {"cost_seconds": None} for finding in content["findings"]]
        return json.dumps(content, allow_nan=False, indent=1)

    def save(self, path: str | Path) -> Path:
        """Write it: ``.json``, ``.txt``, or ``.html`` and ``.pdf`` with the profiles drawn.

        Raises:
            InvalidInput: the name ends otherwise.
        """
        path = Path(path)
        kind = choose("ending of path", path.suffix.lower(), (".html", ".json", ".pdf", ".txt"))
        require_place_for_file(path, "path")
        if kind in (".json", ".txt"):
            content = self.to_json() if kind == ".json" else as_text(self, lines=None)
            write_text_whole(path, content + "\n")
        else:
            outlet(f"diagnosis{kind}")(self, path)
        return path

    def raise_if(self, severity: str = "fault") -> Diagnosis:
        """Itself, unless there are findings at least as bad, or the model could not be run; for tests and CI.

        Raises:
            FaultFound: there are; the sentence names the first three.
        """
        if severity not in ("note", "warning", "fault"):
            raise InvalidInput(f"severity must be 'note', 'warning' or 'fault'; got {severity!r}.")
        bad = [finding for finding in self.findings if rank(finding.severity) >= SEVERITIES.index(severity)]
        if bad or not self.ran:
            said = "; ".join(f"{finding.id} at {finding.where or 'the model'}" for finding in bad[:3])
            more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
            raise FaultFound(f"separatrix.check found {said or 'that the model could not be run'}{more}.", self)
        return self

    def __bool__(self) -> NoReturn:
        raise TypeError("a diagnosis is neither true nor false: ask for .verdict, .findings or .raise_if('fault').")

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)
