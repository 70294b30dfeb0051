"""How far is a state from its equilibrium? An estimate from what the steps of a solve have shown.

A small residual |f(z) - z| says little by itself: along a direction in which the map hardly contracts the state may be
far from rest, and a map without equilibrium has a residual that is small next to a state that grows. To first order
z* - z = (I - J)^-1 (f(z) - z), and how much (I - J)^-1 stretches is seen in the steps (``Stretch``). Where they tell
too little, where the state came to rest, or where rounding is coarse, the map is probed beside the state.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import final

import numpy
import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true

from ..maps.compiled import loops, runs_compiled
from ..maps.stacks import Selection
from ..methods.base import States
from .columns import Column, tensor_of
from .glance import Glance, Pairs
from .stretch import (
    CONSTANTS,
    Stretch,
    largest_response,
    largest_stretch,
    newton_step,
    padded,
    pattern,
    probe,
    seen_stretch,
    unit_vector,
    unseen_stretch,
    unsolved,
)

_WINDOW = 5
"""Steps that are looked at together."""
_EVIDENCE = 3
"""Steps that tell something which it takes to believe an estimate, or as many as there are dimensions."""
_PATIENCE = 4
"""Steps after which a sample is looked at again though what was seen of it excludes a claim: no step may leave the
window unseen."""
_MEMORY, _MEMORY_OF_THE_PROBED = 0.9, 0.7
"""What is left of an observed stretch at the next step: accelerated methods remove a slow direction from view long
before they have removed it from the error."""
_FADED = numpy.array([*(_MEMORY**k for k in range(_PATIENCE)), 0.0])
"""What is left of it after some steps; nothing that would spare a look after too many."""
COARSE = 1e-3
"""Rounding error of a map from which on steps tell so little that it is always probed."""
_MANY = 8
"""Probes of coarse maps, and of states that grew much, for which slow directions are to be expected."""
_ONE_SIDED = 0.75
"""Stretch below which the steps went to and fro along what J reverses: what it keeps may be hidden behind that."""
_STRAINED = 2.0
"""Response |dr| / |dz| of a step beyond which the map is probed: |I - J| of a normal map that contracts is smaller."""
_STRAINED_IF_MANY = 4.0
"""Response of a probe beyond which more are made in many dimensions, where what was seen says nothing of the rest."""
_COMPLETE = 32
"""Probes of a map whose first ones betray slow directions among the others: all directions, if there are no more."""
_PROBE = 30
"""Least length of a probing step relative to the state, in units of rounding. It must also exceed the tolerance: where
rounding hides what a probe did, the estimate is the length of the probe."""
_HERE = 0.1
"""Distance, in lengths of its steps, from which on a probe no longer tells about a state at rest."""


@final
class ErrorEstimate:
    """|z - z*| of each sample, infinite as long as nothing is known of it."""

    def __init__(self, z: States, tolerance: Callable[[float], float], *, directed: bool = True) -> None:
        self._tolerance = tolerance
        """The relative tolerance for a map of a rounding error, which shows when the map is evaluated."""
        self._tol = 0.0
        self._directed = directed
        """Whether anybody will ask along which directions the stretch was seen."""
        self._window: collections.deque[tuple[Tensor, Tensor]] = collections.deque(maxlen=_WINDOW + 1)
        """The last states and their images."""
        self._n_steps = 0
        self._stretch = Stretch.unknown(z if directed else z[:, :0])
        self._noted = torch.zeros(z.shape[0], dtype=torch.int64, device=z.device)
        """The step at which the stretch of a sample was looked at last."""
        self._probed = self._stretch
        self._probed_at = z
        self.slowest = self._stretch
        """What the last errors were estimated with."""
        nothing = self._stretch.size  # not written to, nor are the next
        self._unseen = nothing
        """How much (I - J)^-1 must stretch in directions that the last probe did not see."""
        self._response = nothing
        """The largest response that it saw."""
        self._reach = nothing
        """How far from there a sample may be until a probe is out of date."""
        self._has_probed = False
        self._pairs = Pairs(_WINDOW, directed=directed)
        self._own = False
        """Whether the stretch lies in ``_kept``, to be written over."""
        self._told = False
        """Whether anything is known of it."""
        self._kept = z[:0]
        self._spare: Column | None = None
        self._arrays: collections.deque[tuple[Column, Column]] = collections.deque(maxlen=_WINDOW + 1)
        """The window for compiled loops, as far as they have looked at it."""
        self._n_arrays = 0
        """The last step that it holds."""

    def learn(self, z: States, f: States) -> None:
        """Take in one step: it is looked at when somebody asks."""
        self._window.append((z, f))
        self._n_steps += 1

    def excluded(self, size: Column, allowed: Column) -> Column | None:
        """Mask of those whose error is known to exceed what is allowed by what was seen a few steps ago, or None.

        An estimate is never below the residual times the stretch that is remembered, whatever else the last steps show:
        it need not be made.
        """
        if self._has_probed or not self._told or isinstance(size, Tensor):
            return None
        since = self._n_steps - self._noted.numpy()
        return (size * self._stretch.size.numpy() * _FADED[numpy.minimum(since, _PATIENCE)]) > allowed

    def errors(
        self,
        wanted: Column,
        size: Column,
        scale: Column,
        unit: Column,
        grown: Column,
        rested: Column,
        rounding: float,
        image: Callable[[Tensor], Tensor],
    ) -> Column:
        """Estimates for the wanted samples, infinite for the others.

        Args:
            wanted: mask of the samples.
            size: norm of the residual.
            scale: norm of the image, which its rounding error is relative to.
            unit: size of the state for which the tolerance was made, positive.
            grown: mask of the samples whose state grew much: what their steps told may be long out of date.
            rested: mask of the samples that no longer move but by rounding: what older steps told is forgotten, and the
                map is probed where they are.
            rounding: relative rounding error of the map.
            image: the map. It is evaluated a few times beside states that came to rest without having moved by steps
                which tell something.
        """
        if isinstance(size, Tensor):
            return self._errors(wanted, size, scale, unit, grown, rested, rounding, image)
        found = self._at_a_glance(wanted, size, scale, unit, grown | rested, rounding)
        if found is not None:
            return found
        wanted, size, scale, unit, grown, rested = map(tensor_of, (wanted, size, scale, unit, grown, rested))
        return self._errors(wanted, size, scale, unit, grown, rested, rounding, image).numpy()

    def _at_a_glance(
        self, wanted: Column, size: Column, scale: Column, unit: Column, strange: Column, rounding: float
    ) -> Column | None:
        """What ``_errors`` finds, with less ado, where the last steps tell everything of everybody; else None."""
        if self._has_probed or rounding >= COARSE or len(self._window) < 2:
            return None
        if not self._own:
            self._take_over()
        if runs_compiled(self._window[-1][0]):
            return self._by_loops(wanted, size, scale, unit, strange, rounding)
        index = wanted.nonzero()[0]
        found = self._pairs.seen(self._window, self._n_steps, index, rounding * unit[index], unit[index])
        if found is None:
            return None
        told = (found.evidence >= _required(self._window[-1][0], rounding)) & (found.size >= _ONE_SIDED)
        if not (told & (found.response <= _STRAINED) & ~strange[index]).all():
            return None
        slowest = self._updated(index, found)
        far = (size[index] + rounding * scale[index]) * slowest
        estimate = numpy.full_like(size, numpy.inf)
        estimate[index] = numpy.where(slowest > 0, far, numpy.inf)
        return estimate

    def _take_over(self) -> None:
        """Move the stretch to memory of its own; pages to which nothing is ever written cost nothing."""
        old = self._stretch
        self._kept = torch.from_numpy(numpy.zeros((2, *old.direction.shape), old.size.numpy().dtype))
        if self._told:
            self._kept[0], self._kept[1] = old.direction, old.response
        self._stretch, self._own = Stretch(old.size.clone(), *self._kept), True

    def _by_loops(
        self, wanted: Column, size: Column, scale: Column, unit: Column, strange: Column, rounding: float
    ) -> Column | None:
        """The same by compiled code."""
        if self._spare is None:
            self._spare = numpy.empty_like(self._kept.numpy())
        new = min(self._n_steps - self._n_arrays, len(self._window))
        self._n_arrays = self._n_steps
        for back in range(new, 0, -1):
            states, images = self._window[-back]
            self._arrays.append((states.contiguous().numpy(), images.contiguous().numpy()))
        z, f = map(padded, zip(*self._arrays, strict=True))
        limits = (_required(self._window[-1][0], rounding), _ONE_SIDED, _STRAINED, _MEMORY)
        tiny = float(numpy.finfo(size.dtype).tiny)
        known, noted, kept = self._stretch.size.numpy(), self._noted.numpy(), self._kept.numpy()
        estimate = numpy.empty_like(size)
        given = (wanted, size, scale, unit, strange, rounding, self._n_steps, CONSTANTS, limits, tiny)
        found = loops().glance(z, f, len(self._arrays) - 1, *given, known, noted, kept, self._spare, estimate)
        self.slowest, self._told = self._stretch, True
        return estimate if found else None

    def _updated(self, index: Column, found: Glance) -> Column:
        """The slower of what is seen of these samples now and what was seen before, put in its place; its size."""
        known, noted = self._stretch.size.numpy(), self._noted.numpy()
        faded = (_MEMORY ** (self._n_steps - noted[index]) * known[index]).astype(known.dtype)
        slower = found.size >= faded
        known[index] = newest = numpy.where(slower, found.size, faded)
        noted[index] = self._n_steps
        if self._directed:
            self._pairs.write_directions(index[slower], found.weights[slower], self._kept)
        self.slowest, self._told = self._stretch, True
        return newest

    def _errors(
        self,
        wanted: Tensor,
        size: Tensor,
        scale: Tensor,
        unit: Tensor,
        grown: Tensor,
        rested: Tensor,
        rounding: float,
        image: Callable[[Tensor], Tensor],
    ) -> Tensor:
        self._tol = self._tolerance(rounding)
        rows = Selection(wanted)  # few at most steps: samples arrive one after the other, and rest
        noise = rounding * unit
        stretch, evidence, response = self._seen(rows, rows.take(noise), rows.take(unit))
        rested, few = rows.take(rested), _required(self._window[-1][0], rounding)
        probed = self._still_probed(rows, rested)
        doubtful = ~probed
        if rounding < COARSE:
            strange = rows.take(grown) | rested | (response > _STRAINED)
            doubtful = doubtful & ((evidence < few) | (stretch.size < _ONE_SIDED) | strange)
        # inside vmap all rows are taken, also those that nobody asked about
        everybody = rows.put(doubtful, torch.zeros_like(wanted)) & wanted
        if any_true(everybody):
            self._probe(everybody, grown, noise, unit, rounding, image)
            probed = probed | rows.take(everybody)
        slowest = self._remembered(rows, stretch, probed, rested)
        known = slowest.size > 0  # no step, no probe: nothing is known
        far = (rows.take(size) + rounding * rows.take(scale)) * slowest.size
        if rounding >= COARSE:  # terms that cancel are rounded before they do: the error of a map grows with them
            far = far * torch.where(probed, rows.take(self._response), response).div(_STRAINED).clamp_min(1.0)
        estimate = rows.put(torch.where(known, far, torch.inf), torch.full_like(size, torch.inf))
        if not self._has_probed:
            return estimate
        betrayed = (size * self._unseen > self._tol * unit) | (self._response > self._strained(rounding))
        betrayed = betrayed & (estimate <= self._tol * unit)
        return self._resolved(estimate, betrayed, scale, noise, unit, rounding, image)

    def _remembered(self, rows: Selection, stretch: Stretch, probed: Tensor, rested: Tensor) -> Stretch:
        """The slowest of what is seen of these samples now, what was seen before, and what a probe has seen."""
        # a probe has looked at this very place: what older steps told is out of date
        fading = torch.where(probed, _MEMORY_OF_THE_PROBED, _MEMORY) ** (self._n_steps - rows.take(self._noted))
        faded = self._stretch.taken(rows).times(torch.where(rested, 0.0, fading))
        newest = stretch.where(stretch.size >= faded.size, faded)
        self._stretch = self._stretch.put(rows, newest)
        self._own, self._told = False, True
        self._noted = torch.where(rows.mask, self._n_steps, self._noted)
        if not self._has_probed:
            self.slowest = self._stretch
            return newest
        told = self._probed.taken(rows)
        slowest = told.where(probed & (told.size > newest.size), newest)
        self.slowest = self.slowest.put(rows, slowest)
        return slowest

    def _resolved(
        self,
        far: Tensor,
        betrayed: Tensor,
        scale: Tensor,
        noise: Tensor,
        unit: Tensor,
        rounding: float,
        image: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """The estimates, from (I - J)^-1 itself where those who would claim convergence are betrayed by what was seen.

        A claim of theirs rests on a stretch that others, which no probe has seen, must exceed (``unseen_stretch``), or
        on a map so strained that few probes tell little. The error is then |(I - J)^-1 (f(z) - z)|, and what rounding
        adds to it at worst. In many dimensions the inverse is that on the space of ``_COMPLETE`` probes, and what it
        leaves of the residual counts with the largest stretch seen there.
        """
        z, f = self._window[-1]
        if not any_true(betrayed):
            return far
        length, direction = self._steps(unit, rounding)
        length = torch.maximum(length, 2 * rounding ** (1 / 3) * unit)  # steps go both ways: curvature cancels
        most = min(z.shape[-1], _COMPLETE)
        counts = torch.where(betrayed, most, 0)
        moves, changes = probe(z, f, counts, most, length, direction, image, noise=noise)
        step, norm = newton_step(moves, changes, noise, f - z)
        slow, _ = largest_stretch(moves, changes, noise, unit, directed=self._directed)
        self.slowest = dataclasses.replace(slow, size=norm).where(betrayed & (norm > self.slowest.size), self.slowest)
        solved = torch.linalg.vector_norm(step, dim=-1) + rounding * scale * self.slowest.size
        if most < z.shape[-1]:
            solved = solved + unsolved(moves, changes, step, f - z) * self.slowest.size
        return torch.where(betrayed, torch.maximum(solved, far), far)

    def _strained(self, rounding: float) -> float:
        """Largest response of a probe that makes no suspicion by itself."""
        return _STRAINED if rounding >= COARSE or self._probed_at.shape[-1] <= _COMPLETE else _STRAINED_IF_MANY

    def _still_probed(self, rows: Selection, rested: Tensor) -> Tensor:
        """Whether a probe has looked at about this place."""
        if not self._has_probed:
            return torch.zeros_like(rested)
        away = torch.linalg.vector_norm(rows.take(self._window[-1][0]) - rows.take(self._probed_at), dim=-1)
        return away < torch.where(rested, _HERE, 1.0) * rows.take(self._reach)

    def _seen(self, rows: Selection, noise: Tensor, unit: Tensor) -> tuple[Stretch, Tensor, Tensor]:
        """The stretch over the steps of the window, how many of them tell something, and the largest response."""
        if len(self._window) < 2:
            z = rows.take(self._window[-1][0])
            none = Stretch.unknown(z if self._directed else z[:, :0])
            return none, torch.zeros_like(unit, dtype=torch.int64), torch.zeros_like(unit)
        return seen_stretch(self._window, rows, noise, unit, directed=self._directed)

    def _probe(
        self,
        wanted: Tensor,
        grown: Tensor,
        noise: Tensor,
        unit: Tensor,
        rounding: float,
        image: Callable[[Tensor], Tensor],
    ) -> None:
        """Look at the map beside the present state."""
        z, f = self._window[-1]
        length, direction = self._steps(unit, rounding)
        few, many = _required(z, rounding), min(_MANY, 2 * z.shape[-1])
        counts = torch.where(wanted, torch.where(grown, many, few), 0)
        most = max(few, many) if any_true(wanted & grown) else few
        moves, changes = probe(z, f, counts, most, length, direction, image)
        stretch, _ = largest_stretch(moves, changes, noise, unit, directed=self._directed)
        unseen = unseen_stretch(moves, changes, noise, unit)
        self._unseen = torch.where(wanted, unseen, self._unseen)
        self._response = torch.where(wanted, largest_response(moves, changes, noise), self._response)
        self._probed_at = torch.where(wanted.unsqueeze(-1), z, self._probed_at)
        self._reach = torch.where(wanted, length, self._reach)
        self._probed = stretch.where(wanted, self._probed)
        self._has_probed = True

    def _steps(self, unit: Tensor, rounding: float) -> tuple[Tensor, States]:
        """Length of probing steps, and the direction of the first."""
        z, f = self._window[-1]
        length = unit * max(rounding**0.5, _PROBE * rounding, min(10 * self._tol, 1e-2))
        direction = pattern(z) + unit_vector(f - z)
        return length, direction + unit_vector(z - self._window[-2][0]) if len(self._window) > 1 else direction


def _required(z: States, rounding: float) -> int:
    """How many steps must tell something."""
    dim = z.shape[-1]
    return min(_EVIDENCE, dim) if rounding < COARSE else min(_MANY, 2 * dim)
