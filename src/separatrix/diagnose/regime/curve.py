"""The regime as a curve over the training loss, with a band over several starts."""

from __future__ import annotations

import collections
import dataclasses
import statistics
from collections.abc import Sequence
from typing import Any, Literal, final

from torch import nn

from separatrix.core.arrays import require_integer
from separatrix.core.errors import InvalidInput
from separatrix.core.result import Result

from ..losses import Loss
from ..model_call import Pick, prediction
from .equal_loss import MakeOptimiser
from .measures import RegimePoint
from .rich_lazy import first_loss, rich_lazy

_AGREE = 0.8
"""Share of the starts that must say the same word for it to be the word of all."""
_MEASURES = ("kernel_change", "feature_change", "linearised_error")


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RegimeBand(Result):
    """All starts at one loss.

    Attributes:
        drop: fraction of the loss that had been removed, at least.
        points: the measures of each start.
        word: what at least four of five starts say, else ``starts disagree``.
    """

    drop: float
    points: tuple[RegimePoint, ...]
    word: str

    def band(self, measure: str) -> tuple[float, float, float]:
        """Smallest, median and largest value of a measure over the starts."""
        values = [float(getattr(point, measure)) for point in self.points]
        return min(values), statistics.median(values), max(values)


@final
@dataclasses.dataclass(frozen=True, repr=False)
class RegimeCurve(Result):
    """The measures of rich and lazy learning over the loss, for several starts of one network."""

    bands: tuple[RegimeBand, ...]
    n_starts: int

    def rows(self) -> list[dict[str, Any]]:
        """One flat dictionary per loss."""
        return [
            {
                "removed": band.drop,
                **{
                    f"{measure} {name}": value
                    for measure in _MEASURES
                    for name, value in zip(("low", "median", "high"), band.band(measure), strict=True)
                },
                "word": band.word,
            }
            for band in self.bands
        ]

    def __repr__(self) -> str:
        lines = [f"RegimeCurve over {self.n_starts} starts (median, lowest to highest)"]
        lines.append(f"  removed  {'kernel change':<20}  {'1-CKA':<20}  {'linearised error':<20}  word")
        for band in self.bands:
            cells = [f"{mid:.2f} ({low:.2f} to {high:.2f})" for low, mid, high in map(band.band, _MEASURES)]
            lines.append(f"  {band.drop:>7.2f}  {'  '.join(f'{cell:<20}' for cell in cells)}  {band.word}")
        return "\n".join(lines)


def regime_curve(
    starts: Any,
    data: Any,
    *,
    drops: Sequence[float] = (0.5, 0.75, 0.9),
    loss: Loss | None = None,
    optimiser: str | MakeOptimiser = "sgd",
    lr: float | Literal["auto"] = "auto",
    max_steps: int = 20_000,
    max_samples: int = 200,
    output: Pick = prediction,
) -> RegimeCurve:
    """Train several starts of one network and give the measures of rich and lazy learning at equal drops of the loss.

    Args:
        starts: a sequence of networks of one architecture with different weights, such as one per seed; unchanged.
        data: inputs and targets.
        drops: fractions of each start's own loss to remove, increasing.
        loss: as in ``rich_lazy``.
        optimiser: as in ``train_to_loss``.
        lr: as in ``train_to_loss``.
        max_steps: limit of steps per start.
        max_samples: as in ``rich_lazy``.
        output: takes the model's output and returns the prediction.

    Returns:
        One band per drop, with the measures of every start and the word that most of them say.

    Raises:
        InvalidInput: fewer than two starts, drops that do not increase inside (0, 1), a loss that was not reached.

    Cost: a training and ``rich_lazy`` per start.
    """
    if isinstance(starts, nn.Module) or not isinstance(starts, Sequence):
        raise InvalidInput(
            f"starts must be a sequence of networks, such as one per seed; got a {type(starts).__name__}."
        )
    require_integer(len(starts), "the number of starts", at_least=2)
    wanted = [float(drop) for drop in drops]
    if not wanted or sorted(set(wanted)) != wanted or not 0 < wanted[0] <= wanted[-1] < 1:
        raise InvalidInput(f"drops must increase inside (0, 1); got {tuple(drops)}.")
    curves = [
        rich_lazy(
            start,
            data,
            loss=loss,
            target_loss=(1 - wanted[-1]) * first_loss(start, data, loss, output),
            drops=wanted[:-1],
            optimiser=optimiser,
            lr=lr,
            max_steps=max_steps,
            max_samples=max_samples,
            output=output,
        ).curve
        for start in starts
    ]
    return RegimeCurve(tuple(_band(drop, curves) for drop in wanted), len(starts))


def _band(drop: float, curves: Sequence[Sequence[RegimePoint]]) -> RegimeBand:
    points = tuple(next((point for point in curve if point.drop >= drop), curve[-1]) for curve in curves)
    word, count = collections.Counter(point.word for point in points).most_common(1)[0]
    return RegimeBand(drop, points, word if count >= _AGREE * len(points) else "starts disagree")
