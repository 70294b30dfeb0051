"""In many dimensions: is there, anywhere, a direction along which the map nearly stands still?

The looks of ``neighbourhood`` along every unit cost as many evaluations as there are dimensions. Far fewer tell the
same, but for a small chance, by what a slow direction cannot hide from: a polynomial p with p(1) = 1. With w^T J =
(1 - eps) w^T and |w| = 1, every direction u has

    |p(J) u| >= |w^T p(J) u| = |p(1 - eps)| |w^T u|, which is about |w^T u|:

what is left of u, whatever polynomial is applied, is at least its overlap with the slow direction, and of a direction
that was chosen by nobody that is about 1 / sqrt(d). So the smallest |p(J) u| is sought, over all polynomials at once
(GMRES for (I - J) x = u), with products that are differences of the map beside the state. Once it falls below a
thousandth of 1 / sqrt(d), no slow direction exists that u could have seen; a map of radius rho needs about
log(1000 sqrt(d)) / log(1 / rho) evaluations. Where there is one, what is left of u turns into it. The least response in
the space of the images shows how slow it is, and the residual over that is compared with the tolerance. Where it is
too large the error is measured with care, along the slowest directions and the images of the residual.

Rounding makes an operator J + E of J, whose slow direction a polynomial with a large slope at one could remove. So what
is sought is the smallest |(I - J) x - u| + |E| |x|, and below a few |E| nothing is sought.

The chance to overlook a slow direction is that of an overlap below the threshold: for a map that has one, 0.8 of a
thousandth, or in single precision of 2e-4 sqrt(d) if that is more. A map that has none in a few cycles of images but
has not been seen to have none either is believed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true

from ..maps.stacks import combination, orthogonalised
from ..methods.base import States
from .stretch import inverse_of, unit_vector, unsolved

_LENGTH = 10.0
"""Of the looks, in units of the tolerance."""
_ROUNDING = 30.0
"""Their least length in units of rounding."""
_OFF_BY = 2.0
"""Error, in units of the tolerance, from which on a claim is looked at with care, and refuted if it is still so."""
_CYCLE = 32
"""Images after which the search goes on from what is left, so that no more states are kept."""
_LEAST = 2
"""Images of every cycle."""
_CYCLES = 4
"""After which it ends: what was not seen in so many images is not looked for."""
_PART = 1e-3
"""Of 1 / sqrt(d): what is left of the direction at which there is no slow one."""
_DOUBT = 0.5
"""Rounding error of a product in units of the rounding of the map."""
_ABOVE = 4.0
"""What is left must stand out from that by so much to be looked at further."""
_SETTLED = 0.8
"""Part of what was left before that a cycle leaves at least where it removes nothing but what is slow."""
_CAREFUL = 64
"""Directions of the measurement with care, of which two are the slowest."""


def slow_somewhere(
    rows: Tensor, z: States, residual: States, allowed: Tensor, noise: Tensor, rounding: float, image: _Map
) -> tuple[Tensor, Tensor, Tensor]:
    """Mask of those of some samples whose error is not within the tolerance, and how many evaluations each took.

    Beside these the errors of those of the mask, in units of the tolerance.

    Cost: evaluations as said above, at most 128, and 128 more if one is suspected; memory (batch, 33, d), then (batch,
    128, d).

    Args:
        rows: mask of the samples.
        z: the states.
        residual: f(z) - z.
        allowed: the largest distance from an equilibrium that counts as none.
        noise: size of the rounding error of the map.
        rounding: the same relative to the state.
        image: the map.
    """
    length = torch.maximum(_LENGTH * allowed, _ROUNDING * noise)
    rows = rows & (length > 0)
    search = _Search(z, residual, length, noise, image)
    size = torch.linalg.vector_norm(residual, dim=-1) + noise
    going, looks = rows, torch.zeros_like(rows, dtype=torch.int64)
    left, direction = torch.ones_like(length), _anywhere(z)
    least, slowest = torch.full_like(length, torch.inf), [direction, direction]
    for _ in range(_CYCLES):
        if not any_true(going):
            break
        cycle = search.cycle(going, left, direction)
        looks = looks + cycle.taken
        going = going & torch.isfinite(cycle.left)  # where the map is not defined beside the state nothing is seen
        slower = going & (cycle.least < least)
        slowest = [torch.where(slower.unsqueeze(-1), new, old) for new, old in zip(cycle.slowest, slowest, strict=True)]
        settled = (cycle.left > _SETTLED * left) & ~(cycle.least < (1 - _SETTLED) * least)
        least = torch.where(slower, cycle.least, least)
        left, direction = cycle.left, cycle.direction
        settled = settled | (noise > _OFF_BY * allowed * least)  # its own rounding is too much
        going = going & (left > search.threshold) & ~(settled & (size > _OFF_BY * allowed * least))
    suspected = rows & (size > _OFF_BY * allowed * least)
    if not any_true(suspected):
        return suspected, looks, allowed
    error, taken = search.error_with_care(suspected, slowest, rounding)
    return suspected & ~(error <= _OFF_BY * allowed), looks + taken, error / allowed


class _Cycle:
    """What some images in a row have shown, per sample."""

    left: Tensor
    """How much the best polynomial leaves of the direction that the search began with."""
    direction: States
    """What that is, of length one: the longer the search, the more of it is slow."""
    least: Tensor
    """Least response |(I - J) u| of a direction u in the space of the images."""
    slowest: list[States]
    """The two directions with the least response."""
    taken: Tensor
    """How many evaluations there were."""

    def __init__(self, basis: Tensor, hessenberg: Tensor, doubt: Tensor, left: Tensor, taken: Tensor) -> None:
        whole, sizes, right = torch.linalg.svd(hessenberg.nan_to_num(0.0, 0.0, 0.0), full_matrices=True)
        n_images = hessenberg.shape[-1]
        squares = torch.nn.functional.pad(sizes.square(), (0, 1))
        shares = whole[:, 0] * doubt.square().unsqueeze(-1) / (squares + doubt.square().unsqueeze(-1))
        remainder = torch.linalg.vecdot(shares, whole[:, 0]).clamp_min(0).sqrt()
        finite = torch.isfinite(hessenberg).flatten(1).all(-1)
        self.left = torch.where(finite, left * remainder, torch.nan).to(left.dtype)
        weights = torch.bmm(whole, shares.unsqueeze(-1)).squeeze(-1)
        self.direction = unit_vector(combination(weights.to(basis.dtype), basis[:, : n_images + 1]))
        self.least = sizes.gather(1, (taken - 1).clamp_min(0).unsqueeze(-1)).squeeze(-1).to(left.dtype)
        columns = torch.arange(n_images, device=taken.device)
        slowest = [columns == (taken - 1 - k).clamp_min(0).unsqueeze(-1) for k in range(2)]
        parts = [combination(which.to(right.dtype), right).to(basis.dtype) for which in slowest]
        self.slowest = [combination(part, basis[:, :n_images]) for part in parts]
        self.taken = taken


class _Search:
    """Looks of one length beside a state."""

    def __init__(self, z: States, residual: States, length: Tensor, noise: Tensor, image: _Map) -> None:
        self.z, self.residual, self.length, self.noise, self.image = z, residual, length, noise, image
        self.doubt = _DOUBT * noise / torch.where(length > 0, length, 1.0)
        """Size of what rounding adds to a product."""
        self.threshold = (_ABOVE * self.doubt).clamp_min(_PART / z.shape[-1] ** 0.5)
        self._here = z + residual

    def cycle(self, rows: Tensor, left: Tensor, direction: States) -> _Cycle:
        """So many images of a direction, each without what the others have of it, or as many as it takes.

        The columns of the Hessenberg matrix H hold (I - J) u for the directions u of the basis. The smallest |p(J) u|
        is the distance of the first unit from the range of H, 1 / |g| for the vector g with g^T H = 0 and first entry
        one, which grows by an entry with every column.
        """
        batch, dim = self.z.shape
        basis = self.z.new_zeros(batch, _CYCLE + 1, dim)
        basis[:, 0] = direction
        hessenberg = self.z.new_zeros(batch, _CYCLE + 1, _CYCLE, dtype=torch.float64)
        weights = self.z.new_zeros(batch, _CYCLE + 1, dtype=torch.float64)
        weights[:, 0] = 1.0
        safe = torch.where(rows, self.length, 1.0)
        least = self.doubt.clamp_min(torch.finfo(self.z.dtype).tiny).double()
        taken = torch.zeros_like(rows, dtype=torch.int64)
        k = 0
        while k < _CYCLE:
            active = rows
            if k >= _LEAST:
                active = rows & (left > self.threshold * torch.linalg.vector_norm(weights, dim=-1))
                if not any_true(active):
                    break
            shift = torch.where(active, self.length, 0.0).unsqueeze(-1) * basis[:, k]
            product = (self.image(self.z + shift).detach() - self._here) / safe.unsqueeze(-1)
            new, column = orthogonalised(basis[:, : k + 1], basis[:, k] - product)
            size = torch.maximum(torch.linalg.vector_norm(new, dim=-1).double(), least)
            hessenberg[:, : k + 1, k] = torch.where(active.unsqueeze(-1), column, 0.0)
            hessenberg[:, k + 1, k] = torch.where(active, size, 0.0)
            weight = -(weights[:, : k + 1] * column).sum(-1) / size
            weights[:, k + 1] = torch.where(active, weight, 0.0)
            basis[:, k + 1] = unit_vector(new.nan_to_num(0.0, 0.0, 0.0))
            taken = taken + active
            k += 1
        return _Cycle(basis, hessenberg[:, : k + 1, :k], least, left, taken)

    def error_with_care(self, rows: Tensor, slowest: list[States], rounding: float) -> tuple[Tensor, Tensor]:
        """|(I - J)^-1 (f(z) - z)| and what rounding adds, from steps both ways; how many evaluations that took.

        Along the slowest directions, the residual and its images; what these leave of the residual counts with the
        largest stretch.
        """
        count = min(_CAREFUL, self.z.shape[-1])
        length = torch.maximum(self.length, 2 * rounding ** (1 / 3) * self.noise / rounding)
        length = torch.where(rows, length, 0.0).unsqueeze(-1)
        starts = [*slowest, unit_vector(self.residual)]
        taken = self.z.new_zeros(self.z.shape[0], count, self.z.shape[1])
        changes = torch.zeros_like(taken)
        for k in range(count):
            candidate = starts[k] if k < len(starts) else unit_vector(changes[:, k - 1].nan_to_num(0.0, 0.0, 0.0))
            taken[:, k] = self._new_direction(taken[:, :k], candidate, k)
            shift = length * taken[:, k]
            changes[:, k] = (self.image(self.z + shift).detach() - self.image(self.z - shift).detach()) / 2 - shift
        moves = length.unsqueeze(-1) * taken
        inverse, norm = inverse_of(moves, changes, self.noise)
        step = torch.bmm(inverse, self.residual.unsqueeze(-1)).squeeze(-1)
        error = torch.linalg.vector_norm(step, dim=-1) + self.noise * norm
        if count < self.z.shape[-1]:
            error = error + unsolved(moves, changes, step, self.residual) * norm
        return error, torch.where(rows, 2 * count, 0)

    def _new_direction(self, taken: Float[Tensor, "batch k d"], candidate: States, number: int) -> States:
        """What a candidate adds to the directions taken; where that is nothing, another that nobody chose."""
        if number == 0:
            return unit_vector(candidate)
        new, _ = orthogonalised(taken, candidate)
        other, _ = orthogonalised(taken, _anywhere(self.z, number))
        alike = torch.linalg.vector_norm(new, dim=-1, keepdim=True) < 1e-2
        chosen = unit_vector(torch.where(alike, other, new))
        again, _ = orthogonalised(taken, chosen)  # what was short came with rounding of its own
        return unit_vector(again)


def _anywhere(z: States, number: int = 0) -> States:
    """A direction of length one that nobody chose: every unit has a part in it, of a size and a sign of its own.

    The same for every sample and at every call.
    """
    draws = numpy.random.default_rng(number).uniform(-1.0, 1.0, z.shape[-1])
    entries = torch.from_numpy(draws + 0.5 * numpy.sign(draws)).to(z)
    return (entries / torch.linalg.vector_norm(entries)).expand_as(z)


_Map = Callable[[Tensor], Tensor]
