"""What people type about where cells are computed, turned into an engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose
from separatrix.lab.experiment.limits import Limits, usual_limits
from separatrix.lab.experiment.scales import require_scale

from .parse import parse_duration

if TYPE_CHECKING:
    from separatrix.lab.engines.base import AbstractEngine

ENGINES = ("local", "dask")


def require_workers(jobs: int | None) -> None:
    """``--jobs`` of every command: not given, or a number of processes that there can be."""
    if jobs is not None and not 1 <= jobs <= 10_000:
        raise InvalidInput(f"--jobs must be an integer of at least 1 and at most 10000; got {jobs}.")


@final
@dataclasses.dataclass(frozen=True)
class EngineOptions:
    """The options of one command; what is wrong with them is known before any work."""

    name: str
    address: str | None
    jobs: int | None
    cell_timeout: str | None
    scale: str

    def __post_init__(self) -> None:
        choose("engine", self.name, ENGINES)
        require_scale(self.scale)
        parse_duration(self.cell_timeout, "--cell-timeout")
        require_workers(self.jobs)
        if self.address is not None and self.name != "dask":
            raise InvalidInput("--address is for --engine dask.")
        if self.address is not None and self.jobs is not None:
            raise InvalidInput("--jobs is for a cluster of this machine; the one at --address has its own workers.")

    @contextmanager
    def engine(self) -> Iterator[AbstractEngine]:
        """The engine, closed at the end."""
        limits, usual = Limits(parse_duration(self.cell_timeout, "--cell-timeout")), usual_limits(self.scale)
        if self.name == "local":
            from separatrix.lab.engines.local import LocalEngine

            yield LocalEngine(self.jobs, limits=limits, usual=usual)
            return
        from separatrix.lab.engines.dask_engine import DaskEngine

        yield DaskEngine(self.address, workers=self.jobs, limits=limits, usual=usual)

    def words(self) -> list[str]:
        """The options as they are typed, those that are usual left out."""
        words = ["--engine", self.name] if self.name != "local" else []
        for option, value in (
            ("--address", self.address),
            ("--jobs", self.jobs),
            ("--cell-timeout", self.cell_timeout),
        ):
            if value is not None:
                words += [option, str(value)]
        return words
