"""One finding: what was measured, where, how sure that is, what it means, what to do."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, final

from separatrix.core import Result
from separatrix.core.names import suggest_options
from separatrix.core.result import plain

from .severity import Severity
from .thresholds import Reference


class Place(str):
    """Where a finding is: readable as text, with the path of the module, the operation and the line of source apart."""

    module: str
    op: str
    source: str

    def __new__(cls, module: str = "", op: str = "", source: str = "") -> Place:
        """The text names what is known of the three."""
        module, op, source = str(module), str(op), str(source)
        inner = ", ".join(part for part in (op, source) if part)
        text = f"{module} ({inner})" if module and inner else module or inner
        place = super().__new__(cls, text)
        place.module, place.op, place.source = module, op, source
        return place

    def to_dict(self) -> dict[str, str]:
        """The three parts, empty where nothing is known."""
        return {"module": self.module, "op": self.op, "source": self.source}


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Certainty:
    """How sure a value is, in one of four forms; never a made-up probability.

    ``exact`` is a fact (no gradient, equal rows); ``se`` a mean with its standard error over ``n``; ``null`` a value
    beyond those of healthy reference models; ``none`` could not be told without what ``needs`` names.
    """

    kind: Literal["exact", "se", "null", "none"]
    se: float | None = None
    n: int | None = None
    reference: Reference | None = None
    needs: str = ""

    def __str__(self) -> str:
        if self.kind == "exact":
            return "exact"
        if self.kind == "se":
            return f"+- {self.se:.2g} (n = {self.n})"
        if self.kind == "null" and self.reference is not None:
            return self.reference.sentence
        return f"needs {self.needs}" if self.needs else "not calibrated"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; ``reference`` is None unless the certainty is empirical."""
        reference = None if self.reference is None else dataclasses.asdict(self.reference)
        return {"kind": self.kind, "se": plain(self.se), "n": self.n, "reference": plain(reference)}


EXACT = Certainty("exact")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Finding(Result):
    """What one detector has to say."""

    id: str
    severity: Severity
    where: Place
    value: float | None
    meaning: str
    """One sentence: what was measured, and what follows."""
    advice: str = ""
    """One sentence: what to do."""
    code: str = ""
    """A line of code that does it, where there is one."""
    evidence: str = ""
    """What the advice brought in paired experiments, or what is not certain about it."""
    theory: str = ""
    """Document and equation that the finding rests on."""
    unit: str = ""
    certainty: Certainty = EXACT
    threshold: float | None = None
    follows: str = ""
    """The finding that this one is a consequence of."""
    consequences: tuple[str, ...] = ()
    cost_seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The form of ``findings`` in the JSON of a diagnosis."""
        return {
            "id": self.id,
            "severity": self.severity,
            "where": self.where.to_dict(),
            "value": plain(self.value),
            "unit": self.unit,
            "uncertainty": self.certainty.to_dict(),
            "threshold": plain(self.threshold),
            "meaning": self.meaning,
            "advice": {"text": self.advice, "code": self.code, "evidence": self.evidence},
            "theory": self.theory,
            "follows": self.follows,
            "consequences": list(self.consequences),
            "cost_seconds": self.cost_seconds,
        }

    def __repr__(self) -> str:
        head = f"{self.severity} {self.id}" + (f" at {self.where}" if self.where else "")
        return f"{head}: {self.meaning}" + (f" {self.advice}" if self.advice else "")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Skipped(Result):
    """What was not measured, and why."""

    id: str
    reason: str
    needs: str = ""
    """What to pass, or how many seconds it would take."""

    def __repr__(self) -> str:
        return f"{self.id} ({self.reason}" + (f"; {self.needs})" if self.needs else ")")
