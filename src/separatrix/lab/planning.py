"""What a run will cost, before it is spent: core-hours and memory with an interval, from what was measured so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, final

import numpy

from separatrix.core.errors import InvalidInput, MissingData
from separatrix.core.random import spawn_numpy
from separatrix.core.result import Result

from .experiment.cell import Cell
from .experiment.definition import Experiment, Params
from .experiment.limits import machine_memory
from .experiment.scales import require_scale
from .results.publication import Publication
from .store.costs import SECONDS_OF_SIZES, CostModel
from .store.records import Store

LEVELS = (0.05, 0.5, 0.95)
GUESS = 100.0
"""An interval whose ends are further apart than this factor (ten times either way) tells nothing to act on."""
ROUGH = 10.0
"""Beyond this factor (three times either way) cells that are nearer in size are worth measuring first."""
PUBLISHED_SPREAD = 1.0
"""A published file tells the sum of all cells' times, not each: a cell may be some times shorter or longer."""


@final
@dataclasses.dataclass(frozen=True, repr=False)
class Estimate(Result):
    """A positive number that is not known yet: nine times in ten between ``low`` and ``high``."""

    low: float
    typical: float
    high: float


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RunPlan(Result):
    """What a run will cost."""

    experiment: str
    scale: str
    n_cells: int
    n_done: int
    """Cells that have a record; the estimates are of the others."""
    seconds: Estimate | None
    """Computing time of all cells together, on one core; ``None`` when nothing is left to do."""
    longest: Estimate | None
    """Seconds of the longest cell."""
    memory: Estimate | None
    """Bytes that the largest cell takes; ``None`` if none was measured."""
    n_measured: int
    """Cells from whose times the estimates come."""
    source: str
    """Where these times come from, in words."""

    @property
    def core_hours(self) -> Estimate | None:
        """Computing time in hours of one core."""
        if self.seconds is None:
            return None
        return Estimate(*(value / 3600 for value in (self.seconds.low, self.seconds.typical, self.seconds.high)))

    @property
    def is_guess(self) -> bool:
        """Whether the cells that were measured are too unlike those to come to tell what these cost."""
        return self.seconds is not None and self.seconds.high > GUESS * self.seconds.low

    @property
    def is_rough(self) -> bool:
        """Whether the run may well take several times as long as is said, or as short."""
        return self.seconds is not None and self.seconds.high > ROUGH * self.seconds.low

    def wall_seconds(self, workers: int) -> float:
        """Time until the last cell ends on so many workers."""
        if self.seconds is None or self.longest is None:
            return 0.0
        return max(self.seconds.typical / workers, self.longest.typical)

    def memory_warning(self) -> str | None:
        """One sentence if the largest cell may not fit into this machine."""
        available = machine_memory()
        if self.memory is None or not available or self.memory.typical < available:
            return None
        return (
            f"the largest cell of {self.experiment} at scale {self.scale} takes about {self.memory.typical / 1e9:.3g} "
            f"GB, and this machine has {available / 1e9:.3g} GB."
        )


def plan_run(
    experiment: Experiment,
    params: Params,
    scale: str,
    store: Store | None,
    published: Publication | None = None,
) -> RunPlan:
    """What a run will cost, from the records of the store or, without any, from a published run.

    Args:
        experiment: which.
        params: its parameters.
        scale: from which they were taken.
        store: where records of smaller runs are.
        published: a published result of the experiment.

    Raises:
        MissingData: the experiment was never measured.
    """
    require_scale(scale)
    cells = experiment.cells(params)
    done = store.present([cell.key for cell in cells]) if store is not None else set()
    left = [cell for cell in cells if cell.key not in done]
    seconds, source = _seconds_model(experiment, scale, store, published)
    memory = CostModel.of_memory(store, experiment.name) if store is not None else None
    times = seconds.draws(left, spawn_numpy(0, "plan", experiment.name)) if left else None
    return RunPlan(
        experiment=experiment.name,
        scale=scale,
        n_cells=len(cells),
        n_done=len(done),
        seconds=_estimate(times.sum(1)) if times is not None else None,
        longest=_estimate(times.max(1)) if times is not None else None,
        memory=_largest(memory, left) if memory is not None and left else None,
        n_measured=seconds.n_measured,
        source=source,
    )


def _seconds_model(
    experiment: Experiment, scale: str, store: Store | None, published: Publication | None
) -> tuple[CostModel, str]:
    model = CostModel.of_seconds(store, experiment.name) if store is not None else None
    if model is not None:
        return model, f"{model.n_measured} records of the store"
    rows = _published_rows(experiment, published) if published is not None else []
    if published is not None and rows:
        each = published.provenance["seconds"] / len(rows)
        model = CostModel(rows, [each] * len(rows), SECONDS_OF_SIZES, PUBLISHED_SPREAD)
        return model, f"the published run at scale {published.scale}"
    raise MissingData(
        f"no cell of {experiment.name} was ever measured here or published; measure some for a minute: separatrix plan "
        f"{experiment.typed_name} --scale {scale} --measure 60s"
    )


def _published_rows(experiment: Experiment, published: Publication) -> list[dict[str, Any]]:
    """Arguments of the cells of a published run, from its records or else from its parameters; none if its time is not
    known, or the parameters are those of another version."""
    if not published.provenance.get("seconds"):
        return []
    if published.records:
        return [{**kept["args"], "seed": kept["seed"]} for kept in published.records.values()]
    try:
        cells = experiment.cells(experiment.params(published.scale, **published.params))
    except InvalidInput:
        return []
    return [{**cell.args, "seed": cell.seed} for cell in cells]


def _largest(model: CostModel, cells: Sequence[Cell]) -> Estimate:
    return _estimate(model.draws(cells, spawn_numpy(0, "plan", "memory")).max(1))


def _estimate(draws: numpy.ndarray) -> Estimate:
    return Estimate(*(float(value) for value in numpy.quantile(draws, LEVELS)))
