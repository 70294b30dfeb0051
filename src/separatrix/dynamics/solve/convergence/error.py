"""How far is a state from its equilibrium? An estimate from what the steps of a solve have shown.

A small residual |f(z) - z| says little by itself: along a direction in which the map hardly contracts the state may be
far from rest, and a map without equilibrium has a residual that is small next to a state that grows. To first order
z* - z = (I - J)^-1 (f(z) - z), and how much (I - J)^-1 stretches is seen in the steps: one that moved the state by dz
changed the residual by dr = (J - I) dz. Over all combinations of the last steps, the largest |sum c dz| / |sum c dr| is
a bound from below on |(I - J)^-1|, and a good one: a slow direction that hides in every single step behind faster ones
is exposed by the combination that removes them. Rounding and curvature enter as noise in dr, so that no combination
can pretend to have removed more than it could.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from separatrix.core.transforms import any_true

from ..maps.stacks import combination
from ..methods.base import States

_WINDOW = 5
"""Steps that are looked at together."""
_EVIDENCE = 3
"""Steps that tell something which it takes to believe an estimate, or as many as there are dimensions."""
_VISIBLE = 2.0
"""Change of a residual, in units of its rounding error, from which on it tells something."""
_LOCAL = 0.5
"""Largest step, relative to the state, that tells something about the map near its end."""
_MEMORY, _MEMORY_OF_THE_PROBED = 0.9, 0.7
"""What is left of an observed stretch at the next step: accelerated methods remove a slow direction from view long
before they have removed it from the error."""
_CURVATURE = 0.3
"""Error of dr = (J - I) dz in units of |dr| |dz| / |z|."""
_COARSE = 1e-3
"""Rounding error of a map from which on steps tell so little that it is always probed."""
_MANY = 8
"""Probes of coarse maps, and of states that grew much, for which slow directions are to be expected."""
_ONE_SIDED = 0.75
"""Stretch below which the steps went to and fro along what J reverses: what it keeps may be hidden behind that."""
_PROBE = 30
"""Least length of a probing step relative to the state, in units of rounding. It must also exceed the tolerance: where
rounding hides what a probe did, the estimate is the length of the probe."""


@final
@dataclasses.dataclass(frozen=True)
class Stretch:
    """How much (I - J)^-1 stretches at most, and along which directions, per sample."""

    size: Float[Tensor, " batch"]
    direction: Float[Tensor, "batch d"]
    """The slowest direction and the others seen, each as long as it is slow: in the sum they change the residual by
    amounts of one size. The slowest has length one; zero where nothing is known."""
    response: Float[Tensor, "batch d"]
    """(J - I) times that sum, as observed."""

    @classmethod
    def unknown(cls, z: States) -> Stretch:
        """Before the first step."""
        return cls(z.new_zeros(z.shape[0]), torch.zeros_like(z), torch.zeros_like(z))

    def where(self, rows: Tensor, other: Stretch) -> Stretch:
        """This one in the rows of a mask, the other elsewhere."""
        row = rows.unsqueeze(-1)
        return Stretch(
            torch.where(rows, self.size, other.size),
            torch.where(row, self.direction, other.direction),
            torch.where(row, self.response, other.response),
        )

    def times(self, factor: Tensor) -> Stretch:
        """Believed less."""
        return dataclasses.replace(self, size=factor * self.size)


@final
class ErrorEstimate:
    """|z - z*| of each sample, infinite as long as nothing is known of it."""

    def __init__(self, z: States, tol: float) -> None:
        self._tol = tol
        self._last: tuple[Tensor, Tensor] | None = None
        self._moves: collections.deque[Tensor] = collections.deque(maxlen=_WINDOW)
        self._changes: collections.deque[Tensor] = collections.deque(maxlen=_WINDOW)
        self._n_steps = 0
        self._stretch = Stretch.unknown(z)
        self._noted = torch.zeros(z.shape[0], dtype=torch.int64, device=z.device)
        """The step at which the stretch of a sample was looked at last."""
        self._probed = self._stretch
        self._probed_at = z
        self.slowest = self._stretch
        """What the last errors were estimated with."""
        self._reach = z.new_zeros(z.shape[0])
        """How far from there a sample may be until a probe is out of date."""

    def learn(self, z: States, f: States) -> None:
        """Take in one step."""
        if self._last is not None:
            move = z - self._last[0]
            self._moves.append(move)
            self._changes.append((f - self._last[1]) - move)
        self._last = (z, f)
        self._n_steps += 1

    def errors(
        self,
        wanted: Tensor,
        size: Tensor,
        scale: Tensor,
        unit: Tensor,
        grown: Tensor,
        rounding: float,
        image: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, " batch"]:
        """Estimates for the wanted samples, infinite for the others.

        Args:
            wanted: mask of the samples.
            size: norm of the residual.
            scale: norm of the image, which its rounding error is relative to.
            unit: size of the state for which the tolerance was made, positive.
            grown: mask of the samples whose state grew much: what their steps told may be long out of date.
            rounding: relative rounding error of the map.
            image: the map. It is evaluated a few times beside states that came to rest without having moved by steps
                which tell something.
        """
        noise = rounding * unit
        stretch, evidence = self._seen(noise, unit)
        assert self._last is not None
        probed = torch.linalg.vector_norm(self._last[0] - self._probed_at, dim=-1) < self._reach
        doubtful = wanted & ~probed
        if rounding < _COARSE:
            doubtful &= (evidence < _required(self._last, rounding)) | grown | (stretch.size < _ONE_SIDED)
        if any_true(doubtful):
            self._probe(doubtful, grown, noise, unit, rounding, image)
        probed = probed | doubtful
        # a probe has looked at this very place: what older steps told is out of date
        fading = torch.where(probed, _MEMORY_OF_THE_PROBED, _MEMORY) ** (self._n_steps - self._noted)
        faded = self._stretch.times(fading)
        newest = stretch.where(stretch.size >= faded.size, faded)
        self._stretch = newest.where(wanted, self._stretch)
        self._noted = torch.where(wanted, self._n_steps, self._noted)
        self.slowest = self._probed.where(probed & (self._probed.size > self._stretch.size), self._stretch)
        known = wanted & (self.slowest.size > 0)  # no step, no probe: nothing is known
        return torch.where(known, (size + rounding * scale) * self.slowest.size, torch.inf)

    def _seen(self, noise: Tensor, unit: Tensor) -> tuple[Stretch, Tensor]:
        """The stretch over the steps of the window, and how many of them tell something."""
        assert self._last is not None
        if not self._moves:
            return Stretch.unknown(self._last[0]), torch.zeros_like(unit, dtype=torch.int64)
        moves, changes = (torch.stack(tuple(parts), dim=1) for parts in (self._moves, self._changes))
        return _largest_stretch(moves, changes, noise, unit)

    def _probe(
        self,
        wanted: Tensor,
        grown: Tensor,
        noise: Tensor,
        unit: Tensor,
        rounding: float,
        image: Callable[[Tensor], Tensor],
    ) -> None:
        """Steps from the present state and back, along a start and its images under I + J."""
        assert self._last is not None
        z, f = self._last
        length = unit * max(rounding**0.5, _PROBE * rounding, min(10 * self._tol, 1e-2))
        pattern = torch.cos(1.0 + 12.9898 * torch.arange(z.shape[-1], dtype=z.dtype, device=z.device)).expand_as(z)
        direction = functional.normalize(pattern, dim=-1) + functional.normalize(f - z, dim=-1)
        if self._moves:
            direction = direction + functional.normalize(self._moves[-1], dim=-1)
        # the parts may cancel, as in one dimension they often do
        cancelled = torch.linalg.vector_norm(direction, dim=-1, keepdim=True) < 0.1
        direction = torch.where(cancelled, pattern, direction)
        moves, changes = [], []
        few, many = _required(self._last, rounding), min(_MANY, 2 * z.shape[-1])
        for k in range(max(few, many) if any_true(wanted & grown) else few):
            shift = length.unsqueeze(-1) * functional.normalize(direction, dim=-1)
            asked = wanted & torch.where(grown, k < many, k < few)
            shift = torch.where(asked.unsqueeze(-1), shift, 0.0)
            change = (image(z + shift) - f) - shift
            moves.append(shift)
            changes.append(change)
            direction = 2 * shift + change  # (I + J) u: what J nearly keeps comes forward, what it reverses goes
        stretch, _ = _largest_stretch(torch.stack(moves, dim=1), torch.stack(changes, dim=1), noise, unit)
        self._probed_at = torch.where(wanted.unsqueeze(-1), z, self._probed_at)
        self._reach = torch.where(wanted, length, self._reach)
        self._probed = stretch.where(wanted, self._probed)


def _required(state: tuple[Tensor, Tensor] | None, rounding: float) -> int:
    """How many steps must tell something."""
    assert state is not None
    dim = state[0].shape[-1]
    return min(_EVIDENCE, dim) if rounding < _COARSE else min(_MANY, 2 * dim)


def _largest_stretch(
    moves: Float[Tensor, "batch k d"], changes: Float[Tensor, "batch k d"], noise: Tensor, unit: Tensor
) -> tuple[Stretch, Tensor]:
    """sup |sum c dz| / (|sum c dr| + noise of the combination) over c, and how many pairs tell something.

    The largest generalised eigenvalue of two Gram matrices. Cost: two batched products (k, d) (d, k).
    """
    moved = torch.linalg.vector_norm(moves, dim=-1)
    changed = torch.linalg.vector_norm(changes, dim=-1)
    usable = torch.isfinite(moved) & torch.isfinite(changed) & (moved > 0)
    scale = torch.where(usable, 1 / moved.clamp_min(torch.finfo(moved.dtype).tiny), 0.0).unsqueeze(-1)
    moves, changes = (torch.where(usable.unsqueeze(-1), part, 0.0) * scale for part in (moves, changes))
    share = _CURVATURE * (moved / unit.unsqueeze(-1)).clamp_max(1.0)
    doubt = noise.unsqueeze(-1) * scale.squeeze(-1) + share * torch.linalg.vector_norm(changes, dim=-1)
    doubt = torch.where(usable, doubt.clamp_min(1e-30), 1.0)
    lower = torch.bmm(changes, changes.mT).double() + torch.diag_embed(doubt.double().square())
    upper = torch.bmm(moves, moves.mT).double()
    diagonal = lower.diagonal(dim1=-2, dim2=-1).rsqrt()
    lower = lower * diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
    upper = upper * diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
    factor, failed = torch.linalg.cholesky_ex(lower)
    half = torch.linalg.solve_triangular(factor, upper, upper=False)
    quotient = torch.linalg.solve_triangular(factor, half.mT, upper=False)
    values, vectors = torch.linalg.eigh(quotient.nan_to_num(0.0, 0.0, 0.0))
    largest = values[:, -1]
    single, best = upper.diagonal(dim1=-2, dim2=-1).max(-1)  # where the steps are too much alike to be combined
    combined = (failed == 0) & torch.isfinite(largest)
    stretch = torch.where(combined, largest, single).clamp_min(0).sqrt()
    weights = torch.linalg.solve_triangular(factor.mT, vectors.sum(-1, keepdim=True), upper=True).squeeze(-1)
    weights = weights / stretch.clamp_min(1e-300).unsqueeze(-1)
    places = torch.arange(weights.shape[-1], device=weights.device)
    alone = (places == best.unsqueeze(-1)).to(weights) / diagonal  # one_hot does not work inside vmap
    weights = (torch.where(combined.unsqueeze(-1), weights, alone) * diagonal).nan_to_num(0.0, 0.0, 0.0)
    # what was seen of dr may have been rounding
    hidden = (noise / torch.where(usable, moved, 0.0).amax(-1).clamp_min(torch.finfo(moved.dtype).tiny)).double()
    stretch = stretch / (1 - stretch * hidden).clamp_min(0.25)
    telling = usable & (changed > _VISIBLE * noise.unsqueeze(-1)) & (moved < _LOCAL * unit.unsqueeze(-1))
    weights = weights.to(moved.dtype)
    return Stretch(stretch.to(moved.dtype), combination(weights, moves), combination(weights, changes)), telling.sum(-1)
