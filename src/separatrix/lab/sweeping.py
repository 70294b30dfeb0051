"""Sweeps: one experiment at many settings, as one run that can be stopped and continued.

Every point of a sweep is a run of its own, known by its parameters; what was computed for one sweep serves the next.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

from separatrix.core.errors import InvalidInput
from separatrix.core.names import choose, suggest_options
from separatrix.core.random import spawn_numpy
from separatrix.core.result import Result

from .campaign import RunReport
from .engines.base import AbstractEngine, Finished, RunInterrupted
from .engines.computation import counted_interrupts
from .experiment.cell import Cell
from .experiment.definition import Experiment, Params
from .experiment.scales import require_scale
from .store.records import Store

MOST_POINTS = 100_000


@final
@suggest_options
@dataclasses.dataclass(frozen=True)
class Span:
    """A range of a parameter from which random points are drawn, evenly or evenly in the logarithm."""

    low: float
    high: float
    logarithmic: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InvalidInput(f"a span must go from a smaller to a larger number; got {self.low:g} to {self.high:g}.")
        if self.logarithmic and self.low <= 0:
            raise InvalidInput(f"a logarithmic span must begin above 0; got {self.low:g}.")

    def drawn(self, share: float) -> float | int:
        """The value at a share of the span."""
        if self.logarithmic:
            value = math.exp(math.log(self.low) + share * math.log(self.high / self.low))
        else:
            value = self.low + share * (self.high - self.low)
        return round(value) if self.whole else value


Axis = Span | tuple[Any, ...]


def sweep_points(axes: Mapping[str, Axis], n_random: int | None = None, seed: int = 0) -> list[dict[str, Any]]:
    """Every combination of the values, or so many random ones.

    Args:
        axes: by parameter, its values, or a span to draw from.
        n_random: how many points to draw without repetition; all combinations if not given.
        seed: of the draw.

    Raises:
        InvalidInput: no axis, an empty one, a span without ``n_random``, or more points than can be written down.
    """
    if not axes:
        raise InvalidInput("axes must name at least one parameter to sweep over.")
    for name, axis in axes.items():
        if isinstance(axis, tuple) and not axis:
            raise InvalidInput(f"axes: {name} has no values.")
        if isinstance(axis, Span) and n_random is None:
            raise InvalidInput(f"axes: {name} is a span, from which only random points can be drawn; say how many.")
    if n_random is None:
        count = math.prod(len(axis) for axis in axes.values() if isinstance(axis, tuple))
        if count > MOST_POINTS:
            raise InvalidInput(f"axes give {count} points; at most {MOST_POINTS} can be swept. Draw random ones.")
        lists = [axis for axis in axes.values() if isinstance(axis, tuple)]
        return [dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)]
    if not 1 <= n_random <= MOST_POINTS:
        raise InvalidInput(f"n_random must be an integer between 1 and {MOST_POINTS}; got {n_random}.")
    return list(itertools.islice(_random_points(axes, seed), n_random))


def _random_points(axes: Mapping[str, Axis], seed: int) -> Iterator[dict[str, Any]]:
    """Random points without repetition; they end when it is plain that all were drawn."""
    generator, seen, in_vain = spawn_numpy(seed, "sweep"), set[str](), 0
    while in_vain < 10_000:
        shares = generator.random(len(axes))
        point = {
            name: axis.drawn(share) if isinstance(axis, Span) else axis[int(share * len(axis))]
            for (name, axis), share in zip(axes.items(), (float(x) for x in shares), strict=True)
        }
        in_vain = in_vain + 1 if repr(point) in seen else 0
        if repr(point) not in seen:
            seen.add(repr(point))
            yield point


def sweep_requests(
    experiment: Experiment, scale: str, points: Sequence[Mapping[str, Any]], seeds: Sequence[int] | None = None
) -> list[tuple[Experiment, Params, str]]:
    """The points as requests for ``run_experiments``.

    Raises:
        InvalidInput: a parameter that the experiment does not have, or a value that it does not take.
    """
    return [(experiment, experiment.params(scale, seeds, **point), scale) for point in points]


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Sweep(Result):
    """What a sweep found: for each point its values and the quantities of its summary."""

    experiment: str
    scale: str
    axes: tuple[str, ...]
    rows: list[dict[str, Any]]
    n_points: int
    """Points that were asked for; those without a row are not complete."""

    def quantity(self, name: str | None = None) -> str:
        """The quantity of this name, or the first number there is.

        Raises:
            InvalidInput: there is none of that name, or none at all.
        """
        names = [key for row in self.rows for key, value in row.items() if key not in self.axes and _is_number(value)]
        if name is not None:
            return choose("quantity", name, dict.fromkeys(names))
        if not names:
            raise InvalidInput(f"the summary of {self.experiment} holds no number to draw.")
        return names[0]


def swept(
    experiment: Experiment, scale: str, points: Sequence[Mapping[str, Any]], reports: Sequence[RunReport]
) -> Sweep:
    """The table of a sweep from the reports of its points."""
    require_scale(scale)
    rows = [
        {**point, **{name: value for name, value in report.summary.to_dict().items() if _is_plain(value)}}
        for point, report in zip(points, reports, strict=True)
        if report.summary is not None
    ]
    return Sweep(experiment.name, scale, tuple(points[0]), rows, len(points))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@final
@suggest_options
class WithinBudget(AbstractEngine):
    """Another engine that is stopped when the time is over, in the middle of a cell if need be.

    What was finished is kept, and cells that keep checkpoints go on from them the next time.

    Args:
        engine: which.
        seconds: how long it may run.
    """

    def __init__(self, engine: AbstractEngine, seconds: float) -> None:
        self._engine, self._seconds = engine, seconds

    def run(self, cells: Sequence[Cell], store: Store, data: Mapping[str, str]) -> Iterator[Finished]:
        """See ``AbstractEngine.run``.

        Raises:
            RunInterrupted: the time is over.
        """
        begun, over, n_done = time.monotonic(), threading.Event(), 0
        alarm = threading.Thread(target=self._interrupt, args=(over,), daemon=True)
        with counted_interrupts():
            if threading.current_thread() is threading.main_thread():  # which alone hears of interrupts
                alarm.start()
            try:
                for finished in (inner := self._engine.run(cells, store, data)):
                    yield finished
                    n_done += 1
                    if time.monotonic() - begun > self._seconds and n_done < len(cells):
                        inner.close()  # type: ignore[attr-defined]
                        raise RunInterrupted(n_done, len(cells), 0)
            except RunInterrupted as stopped:
                if time.monotonic() - begun < self._seconds:
                    raise  # by a person
                raise RunInterrupted(stopped.n_done, len(cells), 0) from None
            finally:
                over.set()
                if alarm.ident is not None:
                    alarm.join()

    def _interrupt(self, over: threading.Event) -> None:
        """When the time is over, interrupt the engine as a person does who will not wait for cells to end."""
        over.wait(self._seconds)
        while not over.wait(0.2):
            os.kill(os.getpid(), signal.SIGINT)
