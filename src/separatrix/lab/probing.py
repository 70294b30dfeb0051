"""Measuring what a run will cost: cells between the smallest scale and the one that is planned, computed for a while.

Every setting is taken part of the way, in the logarithm, from its value at the smallest scale to that of the plan, so
that the cells which are measured grow in the direction in which the plan lies. What they cost is then a line in the
logarithms of the settings (``store.costs``), and its end is near.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from separatrix.core.errors import InvalidInput
from separatrix.core.scalars import require_positive

from .engines.base import AbstractEngine, RunInterrupted
from .engines.first_step import largest_cell
from .experiment.cell import Cell
from .experiment.definition import Experiment, Params
from .experiment.scales import require_scale
from .store.records import Store
from .sweeping import WithinBudget

SHARES = (0.25, 0.5, 0.75)
"""How far the rungs are from the smallest scale to the plan."""
MOST_GROUPS = 8
"""Combinations of words of which a rung has cells."""


def measure_towards(
    experiment: Experiment, params: Params, scale: str, store: Store, engine: AbstractEngine, seconds: float
) -> int:
    """Compute cells on the way to a plan until the time is over; says how many more records there are.

    Args:
        experiment: of the plan.
        params: its parameters.
        scale: from which they were taken.
        store: where the records go; ``plan_run`` learns from them.
        engine: runs the cells.
        seconds: how long it may take.

    A cell that fails, or settings that the experiment does not take, tell nothing and are passed over.
    """
    require_scale(scale)
    require_positive(seconds, "seconds")
    cells = {cell.key: cell for share in SHARES for cell in rung(experiment, params, scale, share)}
    wanted = [cell for key, cell in cells.items() if store.read(key) is None]
    before = len(store.keys())
    if wanted:
        with contextlib.suppress(RunInterrupted):
            for _ in WithinBudget(engine, seconds).run(wanted, store, {}):
                pass
    return len(store.keys()) - before


def rung(experiment: Experiment, params: Params, scale: str, share: float) -> list[Cell]:
    """The cells to measure a share of the way from the smallest scale: of every combination of words among the
    arguments, since a cost differs between models, and there of the first, the middle and the last of the numbers that
    are no sizes, since it may differ forty times between them (iterations beside a transition)."""
    small, large = experiment.params("smoke").model_dump(), params.model_dump()
    between = {name: part_way(small.get(name), value, share) for name, value in large.items() if name != "seeds"}
    changed = {name: value for name, value in between.items() if value != large[name]}
    try:
        cells = experiment.cells(experiment.params(scale, large["seeds"][:1], **changed))
    except InvalidInput:
        return []
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(_words(cell.args), []).append(cell)
    kept = list(groups.values())[:: max(1, math.ceil(len(groups) / MOST_GROUPS))]
    return [cell for group in kept for cell in _along_numbers(group)]


def _along_numbers(group: Sequence[Cell]) -> list[Cell]:
    """The largest cells of a group: the first, the middle and the last by their numbers, if these differ."""
    by_numbers: dict[tuple[float, ...], list[Cell]] = {}
    for cell in group:
        numbers = tuple(value for value in cell.args.values() if isinstance(value, float))
        by_numbers.setdefault(numbers, []).append(cell)
    order = sorted(by_numbers)
    places = sorted({0, len(order) // 2, len(order) - 1})
    return [largest_cell(by_numbers[order[place]]) for place in places]


def part_way(small: Any, large: Any, share: float) -> Any:
    """A value a share of the way from one to another: numbers in the logarithm, lists of them in length and, where they
    are counts, in size. A list of other numbers is a grid: it gets fewer points, not others.

    Example:
        >>> part_way(1, 100, 0.5), part_way("a", "b", 0.5), part_way([2], [200, 400], 0.5), part_way(4, 4, 0.5)
        (10, 'b', [14], 4)
        >>> part_way([0.5], [0.1, 0.4, 0.7, 1.0], 0.5)
        [0.1, 1.0]
    """
    if isinstance(large, list | tuple) and isinstance(small, list | tuple) and small and large:
        return _list_part_way(small, large, share)
    if not (_is_positive(small) and _is_positive(large)) or small == large:
        return large
    value = math.exp((1 - share) * math.log(small) + share * math.log(large))
    return round(value) if isinstance(large, int) else value


def _list_part_way(small: Sequence[Any], large: Sequence[Any], share: float) -> Any:
    if not all(map(_is_positive, [*small, *large])):
        return large  # words: a cost differs between them
    count = part_way(len(small), len(large), share)
    if not all(isinstance(value, int) for value in large):
        kept = [large[round(place * (len(large) - 1) / max(1, count - 1))] for place in range(count)]
        return tuple(kept) if isinstance(large, tuple) else kept
    factor = part_way(float(max(small)), float(max(large)), share) / max(large)
    kept = [large[place * len(large) // count] for place in range(count)]
    distinct = list(dict.fromkeys(max(1, round(value * factor)) for value in kept))
    return tuple(distinct) if isinstance(large, tuple) else distinct


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _words(args: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(value) for value in args.values() if isinstance(value, str | bool))
