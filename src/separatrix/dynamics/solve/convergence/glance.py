"""``seen_stretch`` with less ado, on CPUs: what the last steps of a solve show of the stretch of (I - J)^-1.

A look is taken at most steps near the end of a solve, and on small states fifty calls of torch cost more than the map.
So the moves and what they changed are kept from look to look, of the whole batch, and only the new ones are made; torch
multiplies them with the others, for the new rows of two Gram matrices, which hold all that is asked of them, and NumPy
does the rest with five rows and columns of each sample.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy
import torch
from torch import Tensor

from ..methods.base import States
from .columns import Column
from .stretch import CONSTANTS

_FEW_NEW = 2
"""New pairs up to which their rows of the Gram matrices are made one by one: a row costs a quarter of a matrix."""


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
        self._both: Tensor | None = None
        """Moves and changes (2, batch, most, d), in slots that are used in turn."""
        self._grams: Column = None
        """Their inner products (2 batch, most, most)."""

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
        both = self._filled(window, n_steps)
        n_pairs = both.shape[2]
        grams = self._grams[:, :n_pairs, :n_pairs].reshape(2, -1, n_pairs * n_pairs)
        if len(index) < grams.shape[1]:
            grams = grams.take(index, 1)
        slots, entries = _oldest_first(self._slot(n_steps), n_pairs, self._most)
        found = _glance(grams.take(entries, 2), n_pairs, noise, unit, self._directed)
        if found is None or not self._directed:
            return found
        weights = numpy.empty_like(found.weights)
        weights[:, slots] = found.weights
        return found._replace(weights=weights)

    def _slot(self, step: int) -> int:
        """Where the move to a step is kept; the first is that of the second step."""
        return (step - 2) % self._most

    def write_directions(self, index: Column, weights: Column, kept: Tensor) -> None:
        """Write to ``kept`` (2, batch, d), for some samples, combinations of the moves, and of what they changed."""
        assert self._both is not None
        if len(index) == 0:
            return
        batch, n_pairs = kept.shape[1], weights.shape[1]
        both = self._both[:, :, :n_pairs]
        if 2 * len(index) > batch:  # of nearly all, all: a copy of their stacks would cost more
            whole = numpy.zeros((batch, n_pairs))
            whole[index] = weights
            combined = _combined(torch.from_numpy(whole), both)
            places = torch.from_numpy(index)
            if len(index) == batch:
                kept.copy_(combined)
            else:
                kept.index_copy_(1, places, combined.index_select(1, places))
            return
        places = torch.from_numpy(index)
        kept.index_copy_(1, places, _combined(torch.from_numpy(weights), both.index_select(1, places)))

    def _filled(self, window: Sequence[tuple[States, States]], n_steps: int) -> Tensor:
        """Moves and changes of all pairs of the window."""
        n_pairs = len(window) - 1
        if self._both is None:
            z = window[-1][0]
            self._both = z.new_empty(2, z.shape[0], self._most, z.shape[1])
            self._grams = numpy.empty((2 * z.shape[0], self._most, self._most), numpy.float64)
        new = [self._slot(n_steps - back) for back in range(min(n_pairs, n_steps - self._last))]
        for back, slot in enumerate(new):
            (z, f), (z_before, f_before) = window[-1 - back], window[-2 - back]
            moves, changes = self._both[:, :, slot]
            torch.sub(z, z_before, out=moves)
            torch.sub(f, f_before, out=changes)
            changes.sub_(moves)
        self._last = n_steps
        both = self._both[:, :, :n_pairs]
        self._multiply(both.flatten(0, 1), new)
        return both

    def _multiply(self, stacks: Tensor, new: Sequence[int]) -> None:
        """Inner products of the pairs of some slots with all others."""
        n_pairs = stacks.shape[1]
        if len(new) > _FEW_NEW:
            self._grams[:, :n_pairs, :n_pairs] = torch.bmm(stacks, stacks.mT).numpy()
            return
        for slot in new:
            row = torch.bmm(stacks[:, slot : slot + 1], stacks.mT).numpy()[:, 0]
            self._grams[:, slot, :n_pairs] = row
            self._grams[:, :n_pairs, slot] = row


def _combined(weights: Tensor, both: Tensor) -> Tensor:
    """Of two stacks (2, batch, k, d) for every sample the combinations with its weights (batch, k)."""
    wanted = weights.to(both.dtype).unsqueeze(1).repeat(2, 1, 1)
    return torch.bmm(wanted, both.flatten(0, 1)).view(2, -1, both.shape[3])


@functools.cache
def _oldest_first(newest: int, n_pairs: int, most: int) -> tuple[Column, Column]:
    """The slots in the order of their steps, and where the Gram matrix of the slots has that of the steps."""
    slots = numpy.array([(newest - back) % most for back in range(n_pairs - 1, -1, -1)])
    return slots, (n_pairs * slots[:, None] + slots).ravel()


def _glance(grams: Column, n_pairs: int, noise: Column, unit: Column, directed: bool) -> Glance | None:
    """From the Gram matrices of moves and of changes, (2, rows, k k), written over; as ``Pencil`` and what follows."""
    visible, standing_out, local, curvature = CONSTANTS
    squares = grams[:, :, :: n_pairs + 1]
    if not (numpy.isfinite(squares.sum()) and squares[0].min() > 0):
        return None
    moved, changed = numpy.sqrt(squares)
    noise, unit = noise[:, None], unit[:, None]
    slope = changed / moved
    doubt = numpy.maximum(noise / moved + curvature * numpy.minimum(moved / unit, 1.0) * slope, 1e-30)
    # over the length of the moves, and so that the lower one has ones on its diagonal
    root = 1 / (moved * numpy.sqrt(slope * slope + doubt * doubt))
    grams *= (root[:, :, None] * root[:, None, :]).reshape(len(root), -1)
    grams[1, :, :: n_pairs + 1] = 1.0
    upper, lower = grams.reshape(2, -1, n_pairs, n_pairs)
    try:
        inverse = numpy.linalg.inv(numpy.linalg.cholesky(lower))
    except numpy.linalg.LinAlgError:
        return None
    transposed = inverse.swapaxes(1, 2)
    quotient = inverse @ upper @ transposed
    weights = root[:, :0]
    if directed:
        values, vectors = (part.numpy() for part in torch.linalg.eigh(torch.from_numpy(quotient)))
    else:
        values, vectors = numpy.linalg.eigvalsh(quotient), quotient[:, :0]
    stretch = numpy.sqrt(numpy.maximum(values[:, -1], 0.0))
    if directed:
        combined = (transposed @ vectors.sum(-1, keepdims=True))[..., 0]
        weights = combined / numpy.maximum(stretch, 1e-300)[:, None] * root
    if not (numpy.isfinite(stretch.sum()) and numpy.isfinite(weights.sum())):
        return None
    # what was seen of dr may have been rounding
    hidden = noise[:, 0] / moved.max(-1)
    size = stretch / numpy.maximum(1 - stretch * hidden, 0.25)
    evidence = ((changed > visible * noise) & (moved < local * unit)).sum(-1)
    response = numpy.where(changed > standing_out * noise, slope, 0.0).max(-1)
    return Glance(size, evidence, response, weights)
