"""What advice brought in paired experiments: read from ``evidence.toml``, which is made from the published result of
the experiment ``check-advice`` (``python benchmarks/check.py evidence``) and never written by hand."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

FILE = Path(__file__).with_name("evidence.toml")
_MOST = 2
_KEPT = ("pair", "finding", "change", "optimiser", "before", "after", "better", "seeds", "result")


@final
@dataclasses.dataclass(frozen=True)
class Tested:
    """One pair of trainings, with and without a change."""

    pair: str
    finding: str
    change: str
    optimiser: str
    before: float
    after: float
    better: int
    seeds: int
    result: str

    @property
    def sentence(self) -> str:
        """Accuracy without and with the change, and in how many seeds it was better."""
        numbers = f"accuracy {self.before:.2f} -> {self.after:.2f}, better in {self.better} of {self.seeds} seeds"
        under = f", {self.optimiser}" if self.optimiser != "none" else ""
        shown = {"helps": "", "harms": "it did harm; ", "no gain shown": "no gain shown; "}[self.result]
        return f"our tests, {self.change}: {shown}{numbers}{under}"


@functools.cache
def paired_runs() -> tuple[Tested, ...]:
    """Every pair, in the order of the experiment."""
    return tuple(Tested(**row) for row in tomllib.loads(FILE.read_text(encoding="utf-8"))["row"])


def evidence(finding: str, optimiser: str = "") -> str:
    """What tests say of the advice for a finding: pairs under the same kind of optimiser if there are any.

    Example:
        >>> evidence("dead_units").startswith("our tests, biases of zero: accuracy")
        True
        >>> evidence("forward_raises")
        ''
    """
    rows = [row for row in paired_runs() if row.finding == finding]
    same = [row for row in rows if row.optimiser.lower() in optimiser.lower()] if optimiser else []
    return "; ".join(row.sentence for row in (same or rows)[-_MOST:])


def as_toml(rows: Sequence[Mapping[str, Any]], version: int) -> str:
    """The file, from the rows of the experiment's table."""
    lines = [
        "# Made by `python benchmarks/check.py evidence` from results/check-advice.json; do not edit.",
        f"version = {version}",
    ]
    for row in rows:
        lines.append("\n[[row]]")
        for name in _KEPT:
            value = row[name]
            lines.append(f"{name} = {round(value, 4)!r}" if isinstance(value, float) else f"{name} = {_quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    return str(value) if isinstance(value, int) else '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
