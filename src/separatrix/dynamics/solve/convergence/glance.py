"""``seen_stretch`` with less ado, on CPUs: what the last steps of a solve show of the stretch of (I - J)^-1.

A look is taken at most steps near the end of a solve, and on small states fifty calls of torch cost more than the map.
So the moves and what they changed are kept from look to look, of the whole batch, and only the new ones are made; torch
multiplies them into two Gram matrices, which hold all that is asked of them, and NumPy does the rest with five rows and
columns of each sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy
import torch
from torch import Tensor

from ..methods.base import States
from .columns import Column
from .stretch import CONSTANTS


class Glance(NamedTuple):
    """What was seen of some samples."""

    size: Column
    """The largest stretch."""
    evidence: Column
    """How many pairs tell something."""
    response: Column
    """The largest |dr| / |dz|."""
    weights: Column
    """Of the pairs, (rows, k), in the direction of ``Stretch``; none, (rows, 0), where nobody asks for it."""


@final
class Pairs:
    """The last moves dz of a batch, and the changes dr of the residual that they made.

    Args:
        most: how many are kept.
        directed: whether anybody will ask for directions.
    """

    def __init__(self, most: int, *, directed: bool) -> None:
        self._most = most
        self._directed = directed
        self._last = 0
        """The step whose move was kept last."""
        self._moves: Tensor | None = None
        self._changes: Tensor | None = None

    def seen(
        self, window: Sequence[tuple[States, States]], n_steps: int, index: Column, noise: Column, unit: Column
    ) -> Glance | None:
        """What the window, whose last entry is step ``n_steps``, shows of some samples; None if it shows no numbers.

        Args:
            window: states and images of the last steps, oldest first, one more than pairs are kept.
            n_steps: as said.
            index: the samples.
            noise: size of the rounding error of the map, of these samples.
            unit: size of their states.
        """
        moves, changes = self._filled(window, n_steps)
        order = [self._slot(n_steps - back) for back in range(moves.shape[1] - 1, -1, -1)]  # oldest first
        rows, columns = numpy.ix_(order, order)
        lower, upper = (
            torch.bmm(part, part.mT).numpy()[index][:, rows, columns].astype(numpy.float64) for part in (changes, moves)
        )
        found = _glance(lower, upper, noise, unit, self._directed)
        if found is None or not self._directed:
            return found
        weights = numpy.empty_like(found.weights)
        weights[:, order] = found.weights
        return found._replace(weights=weights)

    def _slot(self, step: int) -> int:
        """Where the move to a step is kept; the first is that of the second step."""
        return (step - 2) % self._most

    def write_directions(self, index: Column, weights: Column, kept: Tensor) -> None:
        """Write to ``kept`` (2, batch, d), for some samples, combinations of the moves, and of what they changed."""
        assert self._moves is not None
        assert self._changes is not None
        every = len(index) == kept.shape[1]
        places = torch.from_numpy(index)
        wanted = torch.from_numpy(weights).to(kept.dtype).unsqueeze(1)
        for whole, stack in zip(kept, (self._moves, self._changes), strict=True):
            stack = stack[:, : wanted.shape[2]]
            if every:
                torch.bmm(wanted, stack, out=whole.unsqueeze(1))
            else:
                whole.index_copy_(0, places, torch.bmm(wanted, stack.index_select(0, places)).squeeze(1))

    def _filled(self, window: Sequence[tuple[States, States]], n_steps: int) -> tuple[Tensor, Tensor]:
        """Moves and changes of all pairs of the window, in slots that are used in turn."""
        n_pairs = len(window) - 1
        if self._moves is None or self._changes is None:
            z = window[-1][0]
            self._moves, self._changes = (z.new_empty(z.shape[0], self._most, z.shape[1]) for _ in range(2))
        for back in range(min(n_pairs, n_steps - self._last) - 1, -1, -1):
            (z, f), (z_before, f_before) = window[-1 - back], window[-2 - back]
            slot = self._slot(n_steps - back)
            torch.sub(z, z_before, out=self._moves[:, slot])
            torch.sub(f, f_before, out=self._changes[:, slot])
            self._changes[:, slot].sub_(self._moves[:, slot])
        self._last = n_steps
        return self._moves[:, :n_pairs], self._changes[:, :n_pairs]


def _glance(lower: Column, upper: Column, noise: Column, unit: Column, directed: bool) -> Glance | None:
    """From the Gram matrices of changes and of moves; as ``Pencil`` and what is made of it."""
    visible, standing_out, local, curvature = CONSTANTS
    squares = [numpy.diagonal(gram, axis1=1, axis2=2) for gram in (lower, upper)]
    if not (numpy.isfinite(squares[0]).all() and numpy.isfinite(squares[1]).all() and (squares[1] > 0).all()):
        return None
    changed, moved = (numpy.sqrt(square) for square in squares)
    noise, unit = noise[:, None], unit[:, None]
    slope = changed / moved
    doubt = numpy.maximum(noise / moved + curvature * numpy.minimum(moved / unit, 1.0) * slope, 1e-30)
    # over the length of the moves, and so that the lower one has ones on its diagonal
    root = 1 / (moved * numpy.sqrt(slope * slope + doubt * doubt))
    both = root[:, :, None] * root[:, None, :]
    upper, lower = upper * both, lower * both
    lower[:, range(lower.shape[1]), range(lower.shape[1])] = 1.0
    try:
        inverse = numpy.linalg.inv(numpy.linalg.cholesky(lower))
    except numpy.linalg.LinAlgError:
        return None
    quotient = inverse @ upper @ inverse.swapaxes(1, 2)
    if directed:
        values, vectors = (part.numpy() for part in torch.linalg.eigh(torch.from_numpy(quotient)))
    else:
        values, vectors = numpy.linalg.eigvalsh(quotient), quotient[:, :0]
    stretch = numpy.sqrt(numpy.maximum(values[:, -1], 0.0))
    weights = root[:, :0]
    if directed:
        combined = (inverse.swapaxes(1, 2) @ vectors.sum(-1, keepdims=True))[..., 0]
        weights = combined / numpy.maximum(stretch, 1e-300)[:, None] * root
    if not (numpy.isfinite(stretch).all() and numpy.isfinite(weights).all()):
        return None
    # what was seen of dr may have been rounding
    hidden = noise[:, 0] / moved.max(-1)
    size = stretch / numpy.maximum(1 - stretch * hidden, 0.25)
    evidence = ((changed > visible * noise) & (moved < local * unit)).sum(-1)
    response = numpy.where(changed > standing_out * noise, slope, 0.0).max(-1)
    return Glance(size, evidence, response, weights)
