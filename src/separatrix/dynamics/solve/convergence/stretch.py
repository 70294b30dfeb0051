"""How much (I - J)^-1 stretches, from pairs of a move dz and the change dr = (J - I) dz of the residual it made.

Over all combinations of the pairs, the largest |sum c dz| / |sum c dr| is a bound from below on |(I - J)^-1|, and a
good one: a slow direction that hides in every single step behind faster ones is exposed by the combination that
removes them. Rounding and curvature enter as noise in dr: none can pretend to have removed more than it could.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.transforms import all_true, transforms_active

from ..maps.compiled import loops, runs_compiled
from ..maps.stacks import Selection, combination, inner_products, orthogonalised
from ..methods.base import States

_VISIBLE = 2.0
"""Change of a residual, in units of its rounding error, from which on it tells something."""
_STANDING_OUT = 10.0
"""The same, from which on its size tells something too."""
_LOCAL = 0.5
"""Largest step, relative to the state, that tells something about the map near its end."""
_CURVATURE = 0.3
"""Error of dr = (J - I) dz in units of |dr| |dz| / |z|."""
_MOST_STEPS = 6
"""Steps that the compiled loop can look at together."""
_CERTAIN = 0.5
"""Part of the smallest response that rounding cannot have made, in units of what it can, from which on it is known."""
_ALIKE = 10.0
"""Length of what is new in a direction, in units of its rounding error, below which it is none."""


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
        nothing = z.new_zeros(()).expand_as(z)
        return cls(z.new_zeros(z.shape[0]), nothing, nothing)

    def where(self, rows: Tensor, other: Stretch) -> Stretch:
        """This one in the rows of a mask, the other elsewhere."""
        row = rows.unsqueeze(-1)
        return Stretch(
            torch.where(rows, self.size, other.size),
            torch.where(row, self.direction, other.direction),
            torch.where(row, self.response, other.response),
        )

    def taken(self, rows: Selection) -> Stretch:
        """Of these samples alone."""
        return Stretch(rows.take(self.size), rows.take(self.direction), rows.take(self.response))

    def put(self, rows: Selection, part: Stretch) -> Stretch:
        """With that of these samples replaced."""
        return Stretch(
            rows.put(part.size, self.size),
            rows.put(part.direction, self.direction),
            rows.put(part.response, self.response),
        )

    def times(self, factor: Tensor) -> Stretch:
        """Believed less."""
        return dataclasses.replace(self, size=factor * self.size)


@final
@dataclasses.dataclass(frozen=True)
class Pencil:
    """The generalised eigenvalues of two Gram matrices: of moves of length one, and of what they did, with its noise.

    Cost: two batched products (k, d) (d, k), and a decomposition of k x k.
    """

    moves: Float[Tensor, "batch k d"]
    changes: Float[Tensor, "batch k d"]
    moved: Float[Tensor, "batch k"]
    """How long the moves were, and next how much they changed."""
    changed: Float[Tensor, "batch k"]
    usable: Tensor
    diagonal: Tensor
    factor: Tensor
    values: Tensor
    """Squares of stretches, ascending."""
    vectors: Tensor
    combined: Tensor
    """Whether the pairs could be told apart."""
    single: Tensor
    """The square of the largest stretch of a single pair, for where they could not, and which it is."""
    best: Tensor

    @classmethod
    def of(cls, moves: Tensor, changes: Tensor, noise: Tensor, unit: Tensor, *, in_place: bool = False) -> Pencil:
        """From pairs (batch, k, d), which may be written over, the size of the noise and of the state."""
        moved, changed = (torch.linalg.vector_norm(part, dim=-1) for part in (moves, changes))
        usable = torch.isfinite(moved) & torch.isfinite(changed) & (moved > 0)
        scale = torch.where(usable, 1 / moved.clamp_min(torch.finfo(moved.dtype).tiny), 0.0).unsqueeze(-1)
        if not all_true(usable):
            moves, changes = (torch.where(usable.unsqueeze(-1), part, 0.0) for part in (moves, changes))
            in_place = False
        moves, changes = (part.mul_(scale) if in_place else part * scale for part in (moves, changes))
        share = _CURVATURE * (moved / unit.unsqueeze(-1)).clamp_max(1.0)
        doubt = noise.unsqueeze(-1) * scale.squeeze(-1) + share * torch.linalg.vector_norm(changes, dim=-1)
        doubt = torch.where(usable, doubt.clamp_min(1e-30), 1.0)
        lower = torch.bmm(changes, changes.mT).double()
        lower.diagonal(dim1=-2, dim2=-1).add_(doubt.double().square())
        upper = torch.bmm(moves, moves.mT).double()
        diagonal = lower.diagonal(dim1=-2, dim2=-1).rsqrt()
        lower = lower * diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        upper = upper * diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        factor, failed = torch.linalg.cholesky_ex(lower)
        half = torch.linalg.solve_triangular(factor, upper, upper=False)
        quotient = torch.linalg.solve_triangular(factor, half.mT, upper=False)
        values, vectors = torch.linalg.eigh(quotient.nan_to_num(0.0, 0.0, 0.0))
        single, best = upper.diagonal(dim1=-2, dim2=-1).max(-1)
        combined = (failed == 0) & torch.isfinite(values[:, -1])
        return cls(moves, changes, moved, changed, usable, diagonal, factor, values, vectors, combined, single, best)

    def weights(self, vector: Float[Tensor, "batch k"]) -> Float[Tensor, "batch k"]:
        """Weights of the moves for an eigenvector; the best single move where the pairs cannot be told apart."""
        solved = torch.linalg.solve_triangular(self.factor.mT, vector.unsqueeze(-1), upper=True).squeeze(-1)
        places = torch.arange(vector.shape[-1], device=vector.device)
        alone = (places == self.best.unsqueeze(-1)).to(vector) / self.diagonal  # one_hot does not work inside vmap
        chosen = torch.where(self.combined.unsqueeze(-1), solved, alone)
        return (chosen * self.diagonal).nan_to_num(0.0, 0.0, 0.0).to(self.moves.dtype)


def largest_stretch(
    moves: Float[Tensor, "batch k d"],
    changes: Float[Tensor, "batch k d"],
    noise: Tensor,
    unit: Tensor,
    *,
    directed: bool = True,
) -> tuple[Stretch, Tensor]:
    """sup |sum c dz| / (|sum c dr| + noise of the combination) over c, and how many pairs tell something.

    Where it need not be ``directed`` the directions are not computed, and have no entries.
    """
    return _largest(Pencil.of(moves, changes, noise, unit), noise, unit, directed)


def _largest(pencil: Pencil, noise: Tensor, unit: Tensor, directed: bool) -> tuple[Stretch, Tensor]:
    stretch = torch.where(pencil.combined, pencil.values[:, -1], pencil.single).clamp_min(0).sqrt()
    direction = response = pencil.moves[:, 0, :0]
    if directed:
        length = torch.where(pencil.combined, stretch.clamp_min(1e-300), 1.0).unsqueeze(-1)
        weights = pencil.weights(pencil.vectors.sum(-1) / length)
        direction, response = (combination(weights, part) for part in (pencil.moves, pencil.changes))
    # what was seen of dr may have been rounding
    longest = torch.where(pencil.usable, pencil.moved, 0.0).amax(-1)
    hidden = (noise / longest.clamp_min(torch.finfo(pencil.moved.dtype).tiny)).double()
    stretch = (stretch / (1 - stretch * hidden).clamp_min(0.25)).to(pencil.moved.dtype)
    seen = pencil.changed > _VISIBLE * noise.unsqueeze(-1)
    telling = pencil.usable & seen & (pencil.moved < _LOCAL * unit.unsqueeze(-1))
    return Stretch(stretch, direction, response), telling.sum(-1)


def seen_stretch(
    steps: Sequence[tuple[States, States]], rows: Selection, noise: Tensor, unit: Tensor, *, directed: bool = True
) -> tuple[Stretch, Tensor, Tensor]:
    """``largest_stretch`` and ``largest_response`` over the moves between successive states, for some samples.

    Args:
        steps: the states and images of some steps, at most six, oldest first.
        rows: the samples.
        noise: size of the rounding error of the map, of these samples.
        unit: size of their states.
        directed: as in ``largest_stretch``.
    """
    if runs_compiled(steps[-1][0]):
        return _seen_by_loops(steps, rows, noise, unit, directed)
    moves, changes = (_differences([rows.take(step[side]) for step in steps]) for side in (0, 1))
    pencil = Pencil.of(moves, changes.sub_(moves), noise, unit, in_place=True)
    return *_largest(pencil, noise, unit, directed), _largest_response(pencil.moved, pencil.changed, noise)


def _differences(states: Sequence[States]) -> Float[Tensor, "batch k d"]:
    """Of successive states, without a stack of the states where there is a choice: it would cost as much again."""
    if transforms_active():  # vmap knows no out=
        stack = torch.stack(list(states), dim=1)
        return stack[:, 1:] - stack[:, :-1]
    last = states[-1]
    moves = last.new_empty(last.shape[0], len(states) - 1, last.shape[1])
    for k in range(len(states) - 1):
        torch.sub(states[k + 1], states[k], out=moves[:, k])
    return moves


def largest_response(
    moves: Float[Tensor, "batch k d"], changes: Float[Tensor, "batch k d"], noise: Tensor
) -> Float[Tensor, " batch"]:
    """Largest |dr| / |dz| of pairs whose change stands out from rounding."""
    moved, changed = (torch.linalg.vector_norm(parts, dim=-1) for parts in (moves, changes))
    return _largest_response(moved, changed, noise)


def _largest_response(moved: Tensor, changed: Tensor, noise: Tensor) -> Tensor:
    visible = changed > _STANDING_OUT * noise.unsqueeze(-1)
    return torch.where(visible, changed / moved.clamp_min(torch.finfo(moved.dtype).tiny), 0.0).amax(-1)


CONSTANTS = (_VISIBLE, _STANDING_OUT, _LOCAL, _CURVATURE)
"""Of the compiled loops."""


def padded(steps: Sequence[Any]) -> tuple[Any, ...]:
    """As many as the compiled loops take, which are made for one length of tuples; those added are not looked at."""
    return (*steps, *[steps[-1]] * (_MOST_STEPS - len(steps)))


def _seen_by_loops(
    steps: Sequence[tuple[States, States]], rows: Selection, noise: Tensor, unit: Tensor, directed: bool
) -> tuple[Stretch, Tensor, Tensor]:
    last = steps[-1][0]
    shape = (noise.shape[0], last.shape[1] if directed else 0)
    found = Stretch(torch.empty_like(noise), last.new_empty(shape), last.new_empty(shape))
    evidence, response = torch.empty_like(noise, dtype=torch.int64), torch.empty_like(noise)
    written = (part.numpy() for part in (found.size, evidence, response, found.direction, found.response))
    z, f = (padded([step[side].contiguous().numpy() for step in steps]) for side in (0, 1))
    given = (noise.numpy(), unit.numpy(), CONSTANTS, float(torch.finfo(last.dtype).tiny))
    loops().stretch(z, f, len(steps) - 1, rows.index.numpy(), *given, *written)
    return found, evidence, response


def unseen_stretch(
    moves: Float[Tensor, "batch k d"], changes: Float[Tensor, "batch k d"], noise: Tensor, unit: Tensor
) -> Float[Tensor, " batch"]:
    """How much (I - J)^-1 stretches in the directions that no pair has seen, judged from those that some have.

    The determinant of I - J is the product of its eigenvalues, which for a map that iteration settles on are of the
    order of one, and up to a sign that of its singular values. Where k directions were seen to *shrink* under
    (I - J)^-1 by much, as a strong feedforward part makes them, the other d - k must stretch by as much together: their
    geometric mean is the k seen responses, multiplied, to the power 1 / (d - k). In many dimensions this is next to
    one, and says nothing; in few it betrays a direction along which the map nearly stands still.
    """
    pencil = Pencil.of(moves, changes, noise, unit)
    n_unseen = moves.shape[-1] - pencil.usable.sum(-1)
    largest = torch.linalg.vector_norm(pencil.changes, dim=-1).amax(-1, keepdim=True).double().clamp_min(1e-30)
    # moves that are alike look as if their difference responded without limit
    responses = torch.minimum(pencil.values.clamp_min(1e-300).rsqrt(), largest)
    known = (pencil.values > 0) & pencil.combined.unsqueeze(-1)
    product = torch.where(known, responses.log(), 0.0).sum(-1)
    mean = (product / n_unseen.clamp_min(1)).exp()
    return torch.where(n_unseen > 0, mean, 0.0).to(pencil.moved.dtype)


def inverse_of(
    moves: Float[Tensor, "batch k d"], changes: Float[Tensor, "batch k d"], noise: Tensor
) -> tuple[Float[Tensor, "batch d d"], Float[Tensor, " batch"]]:
    """(I - J)^-1 from orthogonal moves in every direction, and how much it stretches at most.

    Of fewer moves, the inverse of what I - J does to their space, from the image back; what is orthogonal to the image
    becomes zero.

    The norm is infinite where rounding could have made the smallest response. What it may have made grows with the
    largest one: a map that stretches by a hundred adds terms a hundred times larger than their sum. The inverse is zero
    where a direction is missing or not finite.
    """
    inverse = _Inverse.of(moves, changes, noise)
    return inverse.times(torch.eye(moves.shape[-1], dtype=moves.dtype, device=moves.device)), inverse.norm


def newton_step(
    moves: Float[Tensor, "batch k d"], changes: Float[Tensor, "batch k d"], noise: Tensor, residual: States
) -> tuple[States, Float[Tensor, " batch"]]:
    """The inverse of ``inverse_of`` times a residual, and the norm; no matrix (d, d) is made."""
    inverse = _Inverse.of(moves, changes, noise)
    return inverse.times(residual.unsqueeze(-1)).squeeze(-1), inverse.norm


@final
@dataclasses.dataclass(frozen=True)
class _Inverse:
    """The inverse of what I - J does to a space of moves, in factors."""

    basis: Float[Tensor, "batch k d"]
    left: Float[Tensor, "batch d k"]
    sizes: Float[Tensor, "batch k"]
    right: Float[Tensor, "batch k k"]
    whole: Tensor
    """Whether no move is missing, or not finite."""
    norm: Float[Tensor, " batch"]

    @classmethod
    def of(cls, moves: Tensor, changes: Tensor, noise: Tensor) -> _Inverse:
        """From orthogonal moves and what they changed."""
        moved = torch.linalg.vector_norm(moves, dim=-1)
        finite = torch.isfinite(moves).all(-1) & torch.isfinite(changes).all(-1) & (moved > 0)
        whole = finite.all(-1)
        scale = torch.where(finite, 1 / torch.where(finite, moved, 1.0), 0.0).unsqueeze(-1)
        basis, response = (torch.where(finite.unsqueeze(-1), part, 0.0) * scale for part in (moves, changes))
        left, sizes, right = torch.linalg.svd(response.mT, full_matrices=False)
        doubt = (noise.unsqueeze(-1) * scale.squeeze(-1)).amax(-1) * sizes[:, 0].clamp_min(1.0)
        certain = sizes[:, -1] - doubt
        norm = torch.where(whole & (certain > _CERTAIN * doubt), 1 / certain, torch.inf)
        return cls(basis, left, sizes, right, whole, norm)

    def times(self, columns: Tensor) -> Tensor:
        """Its product with columns (d, n) or (batch, d, n); zero where a move is missing."""
        shares = (self.left.mT @ columns) / self.sizes.clamp_min(torch.finfo(self.sizes.dtype).tiny).unsqueeze(-1)
        product = -self.basis.mT @ (self.right.mT @ shares)
        return torch.where(self.whole[:, None, None], product, 0.0)


def unsolved(
    moves: Float[Tensor, "batch k d"],
    changes: Float[Tensor, "batch k d"],
    step: States,
    residual: States,
) -> Float[Tensor, " batch"]:
    """How large a residual remains, to first order, after a step that is a combination of orthogonal moves."""
    squares = moves.square().sum(-1)
    weights = torch.where(
        squares > 0, inner_products(moves, step) / squares.clamp_min(torch.finfo(squares.dtype).tiny), 0.0
    )
    left = residual + combination(weights.to(changes.dtype), changes.nan_to_num(0.0, 0.0, 0.0))
    return torch.linalg.vector_norm(left, dim=-1)


def telling_directions(
    moves: Float[Tensor, "batch k d"],
    changes: Float[Tensor, "batch k d"],
    residual: States,
    noise: Tensor,
    slowest: int,
) -> list[Float[Tensor, "batch d"]]:
    """Directions of length one (or zero) among the combinations of careful probes, whose moves are orthogonal.

    First that of Newton's step, which changes nothing but the residual; then the slowest, slowest first. From the
    singular values of the changes: their Gram matrix would hide what is slower than the root of the rounding error.
    """
    moved = torch.linalg.vector_norm(moves, dim=-1)
    usable = torch.isfinite(torch.linalg.vector_norm(changes, dim=-1)) & (moved > 0)
    scale = torch.where(usable, 1 / torch.where(usable, moved, 1.0), 0.0).unsqueeze(-1)
    moves, changes = (torch.where(usable.unsqueeze(-1), part, 0.0) * scale for part in (moves, changes))
    none = torch.diag_embed((~usable).to(changes.dtype))  # what was not tried is not slow
    left, sizes, right = torch.linalg.svd(torch.cat([changes.mT, none], dim=-2), full_matrices=False)
    doubt = (noise.unsqueeze(-1) * scale.squeeze(-1)).amax(-1, keepdim=True).clamp_min(torch.finfo(changes.dtype).tiny)
    parts = inner_products(left.mT[..., : residual.shape[-1]], residual) / torch.maximum(sizes, doubt)
    weights = [-combination(parts, right), *(right[:, -1 - k] for k in range(min(slowest, right.shape[1])))]
    return [unit_vector(combination(part, moves)) for part in weights]


def probe(
    z: States,
    f: States,
    counts: Tensor,
    most: int,
    length: Tensor,
    direction: States,
    image: Callable[[Tensor], Tensor],
    *,
    noise: Tensor | None = None,
) -> tuple[Float[Tensor, "batch k d"], Float[Tensor, "batch k d"]]:
    """Steps from a state and back, along a start and its images under I + J: what they moved, and what they changed.

    Args:
        z: the state, (batch, d).
        f: its image.
        counts: how many steps each sample makes.
        most: the largest of the counts, as often as the map is evaluated.
        length: of the steps, per sample.
        direction: of the first step; where its parts cancelled, as in one dimension they often do, a fixed pattern.
        image: the map.
        noise: rounding error of the map, if care is to be taken. Then steps go both ways, so that curvature cancels (at
            twice as many evaluations), and each is orthogonal to those before, as far as the dimension allows and
            rounding can tell: where J is near the identity its images are all alike.
    """
    cancelled = torch.linalg.vector_norm(direction, dim=-1, keepdim=True) < 0.1
    direction = unit_vector(torch.where(cancelled, pattern(z), direction))
    taken, moves, changes = [direction], [], []
    for k in range(most):
        shift = torch.where((k < counts).unsqueeze(-1), length.unsqueeze(-1) * taken[k], 0.0)
        behind = (image(z + shift) - image(z - shift)) / 2 if noise is not None else image(z + shift) - f
        change = behind - shift
        moves.append(shift)
        changes.append(change)
        image_of_it = unit_vector(2 * shift + change)  # (I + J) u: what J nearly keeps comes forward
        if noise is None:
            taken.append(image_of_it)
            continue
        new, _ = orthogonalised(torch.stack(taken, dim=1), image_of_it.nan_to_num(0.0, 0.0, 0.0))
        least = (_ALIKE * noise / length.clamp_min(torch.finfo(z.dtype).tiny)).unsqueeze(-1)
        other, _ = orthogonalised(torch.stack(taken, dim=1), pattern(z, 1 + k))
        other = torch.where(torch.linalg.vector_norm(other, dim=-1, keepdim=True) < 1e-2, 0.0, other)  # no more there
        alike = torch.linalg.vector_norm(new, dim=-1, keepdim=True) < least
        taken.append(unit_vector(torch.where(alike, other, new)))
    return torch.stack(moves, dim=1), torch.stack(changes, dim=1)


def unit_vector(v: States) -> States:
    """v / |v|, however small it is; zero stays zero."""
    largest = v.abs().amax(-1, keepdim=True)
    v = v / torch.where(largest > 0, largest, 1.0)
    return v / torch.linalg.vector_norm(v, dim=-1, keepdim=True).clamp_min(1.0)  # its largest entry is one


def pattern(z: States, number: int = 0) -> States:
    """One of a few fixed directions of length one that favour no unit."""
    units = torch.arange(z.shape[-1], dtype=z.dtype, device=z.device)
    return unit_vector(torch.cos((1.0 + number) * (1.0 + 12.9898 * units)).expand_as(z))
