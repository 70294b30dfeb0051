"""Thresholds and the ranges of healthy models, read from the one file that holds them (``thresholds.toml``)."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from pathlib import Path
from typing import Any, final

_FILE = Path(__file__).with_name("thresholds.toml")


@final
@dataclasses.dataclass(frozen=True)
class Reference:
    """The range of a measure over the healthy models of the bench, on the half on which thresholds were chosen."""

    n: int
    min: float
    max: float
    version: str

    @property
    def sentence(self) -> str:
        """One phrase for a report."""
        return f"{self.n} healthy reference models: {self.min:.3g} to {self.max:.3g}"


@functools.cache
def _content() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def threshold(measure: str, name: str) -> float:
    """A threshold of a measure.

    Example:
        >>> threshold("dead_units", "fault")
        0.9
    """
    return float(_content()["thresholds"][measure][name])


def reference(measure: str) -> Reference | None:
    """The range over healthy models, or None for a measure without one."""
    found = _content().get("reference", {}).get(measure)
    if found is None:
        return None
    return Reference(int(found["n"]), float(found["min"]), float(found["max"]), str(_content()["version"]))
