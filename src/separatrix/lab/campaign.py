"""A campaign: several experiments run as one, and the report of each, computed or read back from the store."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, final

from separatrix.core.result import plain

from .cell import Cell
from .claim import Judgement
from .experiment import Experiment, Params, Summary


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RunReport:
    """What one run of an experiment gave. ``summary`` and ``judgements`` exist only when every cell is done."""

    experiment: Experiment
    scale: str
    params: Params
    cells: tuple[Cell, ...]
    n_done: int
    summary: Summary | None
    judgements: Mapping[str, Judgement]
    """By claim id; claims that need a larger scale are left out."""
    seconds: float
    """Computing time: the sum over cells, wherever and whenever each was computed."""
    provenance: Mapping[str, Any]
    """Package version, code fingerprints, data digests, machines and times of all records."""
    command: str
    failures: Mapping[str, str]
    """Error text by cell key."""

    @property
    def complete(self) -> bool:
        """Whether every cell has a record."""
        return self.n_done == len(self.cells)

    def __repr__(self) -> str:
        return f"RunReport({self.experiment.name!r}, {self.scale}: {self.n_done} of {len(self.cells)} cells)"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "experiment": self.experiment.name,
            "version": self.experiment.version,
            "scale": self.scale,
            "params": plain(self.params.model_dump()),
            "n_cells": len(self.cells),
            "n_done": self.n_done,
            "summary": plain(self.summary),
            "judgements": plain(dict(self.judgements)),
            "seconds": self.seconds,
            "provenance": plain(dict(self.provenance)),
            "command": self.command,
            "failures": dict(self.failures),
        }
