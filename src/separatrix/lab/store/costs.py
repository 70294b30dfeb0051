"""What cells cost, learned from the records of earlier ones.

A cell costs something whatever its size, and beyond that an amount whose logarithm is linear in the logarithms of its
numeric arguments, with an offset for every word among them. The second part is fitted by Bayesian least squares for
several values of the first, which count by how well they explain what was measured. Where the records do not vary an
argument, a broad prior stands in: a count or size costs in proportion to itself, give or take a power of 0.6, other
numbers little. Sizes that the records never vary count together, as the one that changed most and a little of the
others: a cell that trains longer, is tested on more and is looked at more often pays for each of them once, one that
takes more steps with larger matrices for their product. What the others may add widens the interval. Of a cell that
took no longer than calling functions does, only that much is known: how its time changes from one size to the next says
nothing of large ones. So a forecast far from what was measured says by its interval how far.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy

from separatrix.core.described import Described
from separatrix.core.names import suggest_options

from ..experiment.cell import Cell
from .records import Store, spent

LEAST_SPREAD = 0.05
"""Least relative scatter of repeated measurements that a fit may claim."""
CALLS = 0.05
"""Seconds that a cell may spend on anything but its work: calls, first uses, allocation. The logarithm of a shorter
time is uncertain by the ratio of the two."""
WORD_SPREAD = 0.7
"""Prior scatter of the logarithm of a cost between two words."""
IMPORTS = 3.0
"""The same for a cell that was the first of its process."""
FEW = 20
LEAST_KNOWN = 5.0
"""Largest uncertainty of a logarithm that is taken from a short cell: a factor of 150 either way."""
STANDING = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95)
"""Shares of the least measured cost that may not depend on the size of a cell."""
MOST_RECORDS = 2000
DRAWS = 400


@dataclasses.dataclass(frozen=True)
class _Prior:
    mean: float
    spread: float


SECONDS_OF_SIZES, MEMORY_OF_SIZES = _Prior(1.0, 0.6), _Prior(0.3, 0.4)
OF_NUMBERS = _Prior(0.0, 0.4)
OF_OTHERS = _Prior(0.2, 0.3)
TOGETHER, OTHERS = "size that never varied and changed most", "other sizes that never varied"


def longest_first(cells: Sequence[Cell], store: Store) -> list[Cell]:
    """The cells in descending order of their expected seconds, so that none is left running alone at the end.

    Cells of which nothing is known keep their order and come first: they may be long.
    """
    expected = expected_seconds(cells, store)
    return sorted(cells, key=lambda cell: -expected.get(cell.key, math.inf))


def expected_seconds(cells: Sequence[Cell], store: Store) -> dict[str, float]:
    """By key, how long a cell will take; those of experiments that were never measured are left out."""
    expected: dict[str, float] = {}
    for name in {cell.experiment for cell in cells}:
        model = CostModel.of_seconds(store, name)
        if model is not None:
            own = [cell for cell in cells if cell.experiment == name]
            expected.update(zip((cell.key for cell in own), model.typical(own), strict=True))
    return expected


@dataclasses.dataclass(frozen=True)
class _Fit:
    """What is known of costs if so much of each does not depend on the size of a cell."""

    standing: float
    mean: numpy.ndarray
    covariance: numpy.ndarray
    scatter: float
    evidence: float


@final
@suggest_options
class CostModel(Described):
    """The cost of cells of one experiment.

    Args:
        rows: arguments of measured cells.
        costs: what each cost, positive.
        sizes: prior power of a count or size among the arguments.
        spread: scatter of the logarithm of a cost where the costs were not measured one by one.
        fixed: part of each cost that may have nothing to do with the arguments.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        costs: Sequence[float],
        sizes: _Prior,
        spread: float = LEAST_SPREAD,
        fixed: float = 0.0,
    ) -> None:
        self.n_measured = len(rows)
        features = [_features(row) for row in rows]
        self._constant = _never_varied(features)
        features = [self._joined(found) for found in features]
        self._names = sorted({name for found in features for name in found})
        self._priors = [_prior(name, sizes) for name in self._names]
        values = self._matrix(features)
        known = numpy.maximum(numpy.asarray(costs, dtype=float), 1e-9)
        self._centre = values.mean(0) * [name.startswith(("size ", "number ")) for name in self._names]
        doubts = numpy.minimum(fixed / known, LEAST_KNOWN)
        shares = STANDING if len(set(known.tolist())) > 2 else STANDING[:1]
        self._parts = [self._fit(values - self._centre, known, share * known.min(), spread, doubts) for share in shares]
        evidence = numpy.array([part.evidence for part in self._parts])
        weights = numpy.exp(evidence - evidence.max())
        self._weights = weights / weights.sum()

    @classmethod
    def of_seconds(cls, store: Store, experiment: str) -> CostModel | None:
        """Learned from the times of an experiment's records, of whatever version; ``None`` without any."""
        return cls._learned(store, experiment, "seconds", SECONDS_OF_SIZES, CALLS)

    @classmethod
    def of_memory(cls, store: Store, experiment: str) -> CostModel | None:
        """The same for the memory they took."""
        return cls._learned(store, experiment, "memory", MEMORY_OF_SIZES, 0.0)

    @classmethod
    def _learned(cls, store: Store, experiment: str, column: str, sizes: _Prior, fixed: float) -> CostModel | None:
        found = store.database.query(
            f"""SELECT args, {column} FROM records WHERE experiment = ? AND json_valid(args)
                AND typeof({column}) = 'real' AND {column} > 0 ORDER BY key LIMIT {MOST_RECORDS}""",
            (experiment,),
        )
        if not found:
            return cls._from_first_cells(store, experiment, sizes) if column == "seconds" else None
        return cls([json.loads(args) for args, _ in found], [cost for _, cost in found], sizes, fixed=fixed)

    @classmethod
    def _from_first_cells(cls, store: Store, experiment: str, sizes: _Prior) -> CostModel | None:
        """From cells that were the first of their process, when there are no others: much of it may be imports."""
        keys = store.database.query(
            "SELECT key FROM records WHERE experiment = ? ORDER BY key LIMIT ?", (experiment, FEW)
        )
        read = [record for (key,) in keys if (record := store.read(key)) is not None]
        known = [(record.cell.args, cost) for record in read if (cost := spent(record.provenance))]
        return cls([args for args, _ in known], [cost for _, cost in known], sizes, fixed=IMPORTS) if known else None

    def _joined(self, features: Mapping[str, float]) -> dict[str, float]:
        """The features, with one in place of the sizes that no record varies: how far they are from what it was."""
        changes = [features[name] - usual for name, usual in self._constant.items() if name in features]
        rest = {name: value for name, value in features.items() if name not in self._constant}
        if not self._constant:
            return rest
        most = max([0.0, *changes]) + min([0.0, *changes])
        return {**rest, TOGETHER: most, OTHERS: sum(changes) - most}

    def _matrix(self, features: Sequence[Mapping[str, float]]) -> numpy.ndarray:
        return numpy.array([[found.get(name, 0.0) for name in self._names] for found in features], dtype=float).reshape(
            len(features), len(self._names)
        )

    def _fit(
        self, values: numpy.ndarray, costs: numpy.ndarray, standing: float, spread: float, doubts: numpy.ndarray
    ) -> _Fit:
        """Posterior of offset and powers beyond a standing cost; the scatter is estimated in turn with them.

        ``doubts`` is how uncertain each logarithm is by itself, in common to all that are: a fixed part is the same in
        each, so that many short cells know no more than one. What is left beside a standing cost is known the worse the
        less it is.
        """
        logs, left = numpy.log(costs - standing), (costs - standing) / costs
        design = numpy.column_stack([numpy.ones(len(logs)), values])
        mean = numpy.array([logs.mean(), *(prior.mean for prior in self._priors)])
        precision = numpy.diag([1e-4, *(prior.spread**-2 for prior in self._priors)])
        own = len(logs) * doubts**2 + (LEAST_SPREAD * (1 / left - 1)) ** 2
        scatter = max(spread, 0.3)
        for _ in range(20):
            weights = 1 / (scatter**2 + own)
            total = precision + design.T * weights @ design
            found = numpy.linalg.solve(total, precision @ mean + design.T * weights @ logs)
            residuals = logs - design @ found
            free = max(1.0, len(logs) - numpy.trace(numpy.linalg.solve(total, design.T * weights @ design)))
            scatter = max(spread, scatter * float(numpy.sqrt(weights @ residuals**2 / free)))
        away = found - mean
        misfit = weights @ residuals**2 - numpy.log(weights).sum() + away @ precision @ away
        evidence = -0.5 * (misfit + numpy.linalg.slogdet(total)[1]) - logs.sum()
        return _Fit(standing, found, numpy.linalg.inv(total), scatter, float(evidence))

    def typical(self, cells: Sequence[Cell]) -> list[float]:
        """The middle cost of each cell."""
        design = self._design(cells)
        costs = [part.standing + numpy.exp(numpy.clip(design @ part.mean, -50, 50)) for part in self._parts]
        return [float(cost) for cost in self._weights @ numpy.array(costs)]

    def draws(self, cells: Sequence[Cell], generator: numpy.random.Generator) -> numpy.ndarray:
        """Possible costs of every cell (draws, cells): what is not known of the powers is shared by all of them."""
        design, found = self._design(cells), []
        for part, weight in zip(self._parts, self._weights, strict=True):
            pairs = round(weight * DRAWS / 2)
            if pairs:
                found.append(part.standing + self._drawn(part, design, pairs, generator))
        return numpy.concatenate(found)

    def _drawn(self, part: _Fit, design: numpy.ndarray, pairs: int, generator: numpy.random.Generator) -> numpy.ndarray:
        nothing = numpy.zeros_like(part.mean)
        half = generator.multivariate_normal(nothing, part.covariance, size=pairs, method="eigh")
        powers = part.mean + numpy.concatenate([half, -half])  # in pairs, so that the middle does not hang on chance
        logs = powers @ design.T
        return numpy.exp(numpy.clip(logs + part.scatter * generator.standard_normal(logs.shape), -50, 50))

    def _design(self, cells: Sequence[Cell]) -> numpy.ndarray:
        known = set(self._names)
        features = [self._joined(_features({**cell.args, "seed": cell.seed})) for cell in cells]
        values = self._matrix([{name: x for name, x in found.items() if name in known} for found in features])
        return numpy.column_stack([numpy.ones(len(cells)), values - self._centre])


def _features(args: Mapping[str, Any]) -> dict[str, float]:
    """Logarithms of sizes and numbers, and one for every word; the seed says nothing of the cost."""
    found: dict[str, float] = {}
    for name, value in args.items():
        if name == "seed" or value is None:
            continue
        if isinstance(value, bool | str):
            found[f"word {name}={value}"] = 1.0
        elif isinstance(value, int) and value > 0:
            found[f"size {name}"] = math.log(value)
        elif isinstance(value, float) and 0 < value < math.inf:
            found[f"number {name}"] = math.log(value)
        elif isinstance(value, list) and value:
            found[f"size {name}"] = math.log(len(value))
    return found


def _never_varied(features: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Sizes that are the same in all records that have them, if there are two or more; one alone stays by itself."""
    sizes = {name for found in features for name in found if name.startswith("size ")}
    values = {name: {found[name] for found in features if name in found} for name in sorted(sizes)}
    same = {name: next(iter(seen)) for name, seen in values.items() if len(seen) == 1}
    return same if len(same) > 1 else {}


def _prior(name: str, sizes: _Prior) -> _Prior:
    if name.startswith("size "):
        return sizes
    if name == OTHERS:
        return OF_OTHERS
    return OF_NUMBERS if name.startswith("number ") else _Prior(0.0, WORD_SPREAD)
