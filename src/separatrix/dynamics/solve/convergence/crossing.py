"""Is there an equilibrium where the estimate of the error says that one is? A look beyond it tells.

The estimate is of first order: beside a fold through which a map just fails to have an equilibrium (a *ghost*, as in
z + gap + z^2) the residual falls to a positive minimum, and the estimated distance may fall below any tolerance. An
equilibrium differs by what lies behind it: there the residual has changed its sign.

First look. The map is evaluated once more, four estimated errors away, through the place where the estimate puts the
equilibrium: in the slowest direction seen, and at once in the others, each by so much that the residual changes as
much. If the residual there is what the steps predict, and points back, the claim stands.

Second look, where it is not, where a claim was refused before, where a direction was seen that is slow enough for a
fold, or where rounding is so coarse that it could be by chance. The map is probed beside the state, and looked at on
both sides along one direction at a time: that of Newton's step, the slowest two, and where rounding is coarse the unit
that moves most by its own measure. The residuals of both sides must point against each other, at some distance up to
four times the tolerance. Along one direction, and for a continuous map, this is the intermediate value theorem. A ghost
has the same sign on both sides, however small its gap; several directions at once would hide it behind one that does
change its sign.

A unit by itself. The first look is one of the whole state, and what many units do in it hides what one does not. But
it also tells how slow every unit is by itself: of those that still move and are slow enough for a fold on the scale of
a unit, |z| / sqrt(d), the one with the farthest to go is looked at by itself. One side is mostly enough, that to which
it moves: if its residual points back there, and at neither end can be rounding, it has a zero in between. The whole
residual must be such that the opposite side would pass as well if the map were straight. Where one side does not tell,
the other is looked at too, as in the second look. So one side is believed where two would be, but for the bend; and a
ghost is one by its bend, which does not let its own residual turn.

Slow directions that nothing moved along. Neither look shows what no step has excited; ``neighbourhood`` does in few
dimensions, and ``survey`` in many.

Slow enough for a fold: a map that bends on the scale of its state has, within the tolerance of a fold, a slope 1 - J of
the order of that tolerance. So a ghost can only be claimed where (I - J)^-1 stretches by about 1 / tol, and most
equilibria are never suspected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true

from ..maps.compiled import loops, runs_compiled
from ..maps.stacks import Selection
from ..methods.base import States
from .error import COARSE
from .neighbourhood import FEW, slow_along_some_unit, slow_along_the_state
from .stretch import Stretch, inverse_of, probe, telling_directions, unit_vector
from .survey import has_room, slow_somewhere

_BEYOND = 4.0
"""Length of the look in estimated errors: to first order the residual behind is then three times that at the state."""
_SHARE = 0.25
"""Least part of the predicted change of the residual by which it must have come out on the other side."""
_OFF_BY = 0.5
"""Largest deviation from the predicted residual, in units of the change predicted for one of them, beyond rounding."""
_OPPOSITE = 0.5
"""Least cosine between the residual of one side and the negative of that of the other."""
_DISTANCES = (4.0, 1.0, 1 / 4, 1 / 16, 1 / 64)
"""Of the second look, in units of the tolerance: beside a fold the other equilibrium of a pair may be that near."""
_PROBES, _MANY_PROBES = 4, 8
"""Probes before the second look, of fine and of coarse maps."""
_PROBE = 30
"""Least length of these in units of rounding."""
_ENTRY = 2.0
"""Entry of a residual, in units of its own rounding, from which on it is a motion."""
_STEEP = 100.0
"""Change of a residual per length of the look beyond which the map is taken for discontinuous."""
_FOLD = 0.03
"""Stretch of (I - J)^-1, times the relative tolerance, from which on a claim may lie beside a fold."""
_PROGRESS = 0.5
"""A refused state is not looked at again before its residual has fallen to this part."""
_PROGRESS_IF_SLOW = 1e-3
"""The least such part where a slow direction was found, whose error is known."""


@final
class Crossing:
    """Claims of convergence that wait for their examination, one per sample.

    Args:
        z: states like those that will be examined.
        survey: whether slow directions are looked for by a ``survey`` in many dimensions; if not, along the state.
    """

    def __init__(self, z: States, *, survey: bool = True) -> None:
        self._surveys = survey and has_room(z)
        self._look = torch.zeros_like(z)
        self._predicted = torch.zeros_like(z)
        self._residual = torch.zeros_like(z)
        self._noise = z.new_zeros(z.shape[0])
        self._allowed = z.new_zeros(z.shape[0])
        self._bend = z.new_zeros(z.shape[0])
        """How slow, times the tolerance, a single unit must be for a fold."""
        self._folds = torch.zeros(z.shape[0], dtype=torch.bool, device=z.device)
        """Whether a direction was seen that is slow enough for a fold."""
        self._grown = self._folds
        """Whether the state grew far beyond its first image."""
        self.waiting = torch.zeros(z.shape[0], dtype=torch.bool, device=z.device)
        self.looks = torch.zeros(z.shape[0], dtype=torch.int64, device=z.device)
        """Evaluations that the last examination of each sample took, for itself."""
        self.surveyed = torch.zeros_like(self.waiting)
        """Whether slow directions that nothing excites were looked for."""
        self.hidden = False
        """Whether somebody was refused by what that search found."""
        self.ceiling = torch.full_like(self._noise, torch.inf)
        """Residual above which a sample that was refused is not examined again."""
        self._progress = torch.full_like(self._noise, _PROGRESS)

    def claim(
        self,
        rows: Tensor,
        residual: States,
        error: Tensor,
        allowed: Tensor,
        noise: Tensor,
        unit: Tensor,
        grown: Tensor,
        slowest: Stretch,
    ) -> None:
        """Remember where to look for the samples of a mask.

        Args:
            rows: the mask.
            residual: f(z) - z at the states that claim to have converged.
            error: their estimated distance from an equilibrium.
            allowed: the largest distance that counts as none.
            noise: size of the rounding error of the map.
            unit: size of the state for which the tolerance was made.
            grown: mask of the samples whose state grew much.
            slowest: what the errors were estimated with.
        """
        self._face(Selection(rows), residual, error, slowest)
        self._noise = torch.where(rows, noise, self._noise)
        self._allowed = torch.where(rows, allowed, self._allowed)
        folds = slowest.size * allowed >= _FOLD * unit
        self._folds = torch.where(rows, folds, self._folds)
        self._grown = torch.where(rows, grown, self._grown)
        self._bend = torch.where(rows, _FOLD * unit / max(1, residual.shape[-1]) ** 0.5, self._bend)
        self.waiting = self.waiting | rows

    def _face(self, rows: Selection, residual: States, error: Tensor, slowest: Stretch) -> None:
        """Where to look, and what is to be expected there, of these samples: few, they arrive one after the other."""
        own = rows.take(residual)
        if runs_compiled(own):
            given = (part.contiguous().numpy() for part in (own, error, slowest.direction, slowest.response))
            written = (part.numpy() for part in (self._look, self._predicted, self._residual))
            loops().face(rows.index.numpy(), *given, _BEYOND, *written)
            return
        seen, moved, length = (rows.take(part) for part in (slowest.response, slowest.direction, _BEYOND * error))
        length = length.unsqueeze(-1)
        length = torch.where(torch.linalg.vecdot(length * seen, own).unsqueeze(-1) > 0, -length, length)
        self._look = rows.write(length * moved, self._look)
        self._predicted = rows.write(length * seen, self._predicted)
        self._residual = rows.write(own, self._residual)

    def refused(self, best: States, rounding: float, image: Callable[[Tensor], Tensor]) -> Tensor:
        """Mask of those who waited and have no equilibrium where they claimed one; nobody waits afterwards.

        Args:
            best: the states that claim to have converged; what else it holds is not looked at.
            rounding: relative rounding error of the map.
            image: the map. It is evaluated once; several times more as long as a sample is in doubt.
        """
        self.looks = torch.where(self.waiting, 1, self.looks)
        behind = self._seen(best, self._look, Selection(self.waiting), image)
        doubtful = self.waiting & ~self._as_predicted(behind)
        before = torch.isfinite(self.ceiling) | self._folds  # who was refused once is looked at twice
        # of coarse maps every claim is looked at twice: a rest by rounding proves nothing
        before = before & ~self._at_rest() if rounding < COARSE else torch.ones_like(before)
        doubtful = doubtful | (self.waiting & before)
        if any_true(doubtful):
            directions, blurred = self._directions(doubtful, best, rounding, image)
            doubtful = blurred | self._same_on_both_sides(doubtful & ~blurred, best, directions, image)
        if rounding < COARSE:
            doubtful = self._hidden(doubtful, best, behind, rounding, image)
        elif best.shape[-1] <= FEW:  # along all directions, each of which was probed
            self.surveyed = self.surveyed | self.waiting
        elif self._surveys:
            doubtful = doubtful | self._slow_somewhere(self.waiting & ~doubtful, best, rounding, image)
        size = torch.linalg.vector_norm(self._residual, dim=-1)
        ceiling = torch.where(size > 0, self._progress * size, -1.0)  # less than none is not to be had
        self.ceiling = torch.where(doubtful, ceiling, self.ceiling)
        self.waiting = torch.zeros_like(self.waiting)
        return doubtful

    def _hidden(
        self, refused: Tensor, best: States, behind: States, rounding: float, image: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Mask of those who were refused and of those who are by what the looks at the whole state do not show."""
        if best.shape[-1] > 1:
            slow, unit = self._slowest_unit(best, behind, rounding)
            refused = refused | self._unit_never_rests(self.waiting & ~refused & slow, best, unit, image)
        rest = self.waiting & ~refused
        given = (best, self._residual, self._allowed, self._noise)
        few = best.shape[-1] <= FEW
        if self._surveys and not few:
            return refused | self._slow_somewhere(rest, best, rounding, image)
        self.surveyed = torch.where(rest, few, self.surveyed)
        slow, looks = (
            slow_along_some_unit(rest, *given, rounding, image)
            if few
            else slow_along_the_state(rest & self._grown, *given, image)
        )
        self.looks = self.looks + looks
        return refused | slow

    def _slow_somewhere(self, rows: Tensor, best: States, rounding: float, image: Callable[[Tensor], Tensor]) -> Tensor:
        """Who of some samples has an error along a slow direction of many."""
        found = slow_somewhere(rows, best, self._residual, self._allowed, self._noise, rounding, image)
        self.surveyed = torch.where(rows, found.ended, self.surveyed)
        self.looks = self.looks + found.looks
        self.hidden = self.hidden or any_true(found.slow)
        # along what is slow the error falls with the residual
        self._progress = torch.where(found.slow, (1 / found.off).clamp(_PROGRESS_IF_SLOW, _PROGRESS), _PROGRESS)
        return found.slow

    def _seen(self, best: States, look: States, rows: Selection, image: Callable[[Tensor], Tensor]) -> States:
        """The residual of these samples at their look."""
        point = rows.put(rows.take(best) + rows.take(look), best)
        return image(point).detach() - point

    def _at_rest(self) -> Tensor:
        return self._residual.abs().amax(-1) == 0

    def _as_predicted(self, behind: States) -> Tensor:
        if runs_compiled(behind):
            found = torch.empty_like(self.waiting)
            states = (part.contiguous().numpy() for part in (self._residual, self._predicted, behind))
            loops().as_predicted(*states, self._noise.numpy(), (_BEYOND, _SHARE, _OFF_BY), found.numpy())
            return found
        change = torch.linalg.vector_norm(self._predicted, dim=-1)
        alone = _BEYOND * (torch.linalg.vector_norm(self._residual, dim=-1) + self._noise)
        deviation = torch.linalg.vector_norm(behind - self._residual - self._predicted, dim=-1)
        back = torch.linalg.vecdot(behind, self._predicted) >= _SHARE * change.square()
        near = deviation <= _OFF_BY * torch.minimum(change, alone) + 2 * self._noise
        return self._at_rest() | (back & near)

    def _unit_never_rests(self, rows: Tensor, best: States, unit: States, image: Callable[[Tensor], Tensor]) -> Tensor:
        """Mask of those whose residual does not change its sign along a unit: on the side it moves to, or on both."""
        if not any_true(rows):
            return rows
        length, place = _DISTANCES[0] * self._allowed, unit.argmax(-1, keepdim=True)
        own = self._residual.gather(-1, place)
        onward = torch.where(own < 0, -1.0, 1.0) * unit
        beyond = self._seen(best, length.unsqueeze(-1) * onward, Selection(rows), image)
        self.looks = self.looks + rows
        undecided = rows & ~self._turns(own, beyond, place, length)
        if not any_true(undecided):
            return undecided
        return self._same_on_both_sides(undecided, best, [onward], image, beyond=beyond)

    def _turns(self, own: Tensor, beyond: States, place: Tensor, length: Tensor) -> Tensor:
        """Whether a unit's residual has changed its sign beyond, visibly, and the whole would on the opposite side."""
        there = beyond.gather(-1, place)
        sign = torch.sign(own) * torch.sign(there) < 0
        visible = torch.minimum(own.abs(), there.abs()) >= 2 * self._noise.unsqueeze(-1)
        return (sign & visible).squeeze(-1) & self._differ(beyond, 2 * self._residual - beyond, length)

    def _same_on_both_sides(
        self,
        rows: Tensor,
        best: States,
        directions: list[States],
        image: Callable[[Tensor], Tensor],
        *,
        beyond: States | None = None,
    ) -> Tensor:
        """Mask of those whose residual does not change its sign along one of the directions.

        ``beyond``: the residual at the farthest look along the first direction, where that was seen.
        """
        refused = torch.zeros_like(rows)
        for direction in directions:
            undecided = rows & ~refused & (direction != 0).any(-1)
            for distance in _DISTANCES:
                if not any_true(undecided):
                    break
                look = (distance * self._allowed).unsqueeze(-1) * direction
                these = Selection(undecided)
                behind = beyond if beyond is not None else self._seen(best, look, these, image)
                before = self._seen(best, -look, these, image)
                self.looks = self.looks + (1 if beyond is not None else 2) * undecided
                beyond = None
                undecided = undecided & ~self._differ(behind, before, distance * self._allowed)
            refused = refused | undecided
        return refused

    def _directions(
        self, rows: Tensor, best: States, rounding: float, image: Callable[[Tensor], Tensor]
    ) -> tuple[list[States], Tensor]:
        """Along which directions to look, and who need not: whose rounding alone, stretched, exceeds the tolerance."""
        dim, coarse = best.shape[-1], rounding >= COARSE
        count = min(_MANY_PROBES if coarse else _PROBES, 2 * dim)
        if coarse and dim <= FEW:
            count = dim
        length = torch.maximum(self._allowed, _PROBE * self._noise)
        along = unit_vector(self._standing_out(best, rounding))
        counts = torch.where(rows, count, 0)
        moves, changes = probe(best, best + self._residual, counts, count, length, along, image, noise=self._noise)
        self.looks = self.looks + 2 * counts
        directions = telling_directions(moves, changes, self._residual, self._noise, slowest=2)
        if not coarse:
            return directions, torch.zeros_like(rows)
        _, norm = inverse_of(moves, changes, self._noise)
        blurred = rows & (norm * self._noise > self._allowed) & torch.isfinite(changes).flatten(1).all(-1)
        return [*directions, self._liveliest(best)], blurred

    def _slowest_unit(self, best: States, behind: States, rounding: float) -> tuple[Tensor, States]:
        """Who has a unit slow enough for a fold of its own, by what the first look did to it; and which that is.

        Of the units that still move, that with the farthest to go. A network bends on the scale of a unit, not on that
        of its whole state, and what many units do in the first look hides what one of them does not.
        """
        if runs_compiled(best):
            return self._slowest_by_loops(best, behind, rounding)
        own = rounding * (best + self._residual).abs()
        slowness = self._look.abs() / torch.maximum((behind - self._residual).abs(), own).clamp_min(
            torch.finfo(best.dtype).tiny
        )
        slowness = torch.where(
            self._look == 0, torch.inf, slowness
        )  # of a unit that was not looked at nothing is known
        moves = self._residual.abs() > _ENTRY * own
        folds = moves & (slowness * self._allowed.unsqueeze(-1) >= self._bend.unsqueeze(-1))
        ahead = torch.where(folds, self._residual.abs() * slowness, 0.0).nan_to_num(0.0)
        return folds.any(-1), _single_unit(ahead)

    def _slowest_by_loops(self, best: States, behind: States, rounding: float) -> tuple[Tensor, States]:
        """The same by compiled code."""
        slow, unit = torch.empty_like(self.waiting), torch.zeros_like(best)
        states = (part.contiguous().numpy() for part in (best, self._residual, self._look, behind))
        limits = (part.numpy() for part in (self._allowed, self._bend))
        given = (rounding, _ENTRY, float(torch.finfo(best.dtype).tiny))
        loops().slowest_unit(*states, *limits, *given, slow.numpy(), unit.numpy())
        return slow, unit

    def _standing_out(self, best: States, rounding: float) -> States:
        """The residual without the entries that rounding can have made: of many, they hide the one that still moves."""
        seen = self._residual.abs() > _ENTRY * rounding * (best + self._residual).abs()
        return torch.where(seen | ~seen.any(-1, keepdim=True), self._residual, 0.0)

    def _liveliest(self, best: States) -> States:
        """The unit that moves most by its own measure: coarse rounding hides it behind the size of many others."""
        moves = self._residual.abs() / (best + self._residual).abs().clamp_min(torch.finfo(best.dtype).tiny)
        return _single_unit(moves)

    def _differ(self, behind: States, before: States, length: Tensor) -> Tensor:
        """Whether the residuals of both sides are visible, point against each other, and belong to one slope."""
        if runs_compiled(behind):
            found = torch.empty_like(self.waiting)
            given = (part.contiguous().numpy() for part in (behind, before, self._noise, length))
            loops().differ(*given, (_OPPOSITE, _STEEP), found.numpy())
            return found
        sizes = [torch.linalg.vector_norm(side, dim=-1) for side in (behind, before)]
        opposite = torch.linalg.vecdot(behind, before) <= -_OPPOSITE * sizes[0] * sizes[1]
        visible = torch.minimum(*sizes) >= 2 * self._noise
        return opposite & visible & (torch.linalg.vector_norm(behind - before, dim=-1) <= _STEEP * length)


def _single_unit(size: States) -> States:
    """Length one along the unit where something is largest."""
    units = torch.arange(size.shape[-1], device=size.device)
    return (units == size.argmax(-1, keepdim=True)).to(size.dtype)  # one_hot does not work inside vmap
