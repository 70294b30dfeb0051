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
thousandth, or in single precision of 2e-4 sqrt(d) if that is more, in half precision of 0.016 sqrt(d). A map of which
128 images show neither that it has one nor that it has none is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from separatrix.core.arithmetic.transforms import any_true

from ..maps.stacks import Selection, combination, orthogonalised
from ..methods.base import States
from .stretch import newton_step, unit_vector, unsolved

_LENGTH = 10.0
"""Of the looks, in units of the tolerance."""
_ROUNDING = 30.0
"""Their least length in units of rounding."""
_OFF_BY = 2.0
"""Error, in units of the tolerance, from which on a claim is looked at with care, and refuted if it is still so."""
_STAGE = 32
"""Images after which is judged what they show."""
_STAGES = 4
"""After which the search ends: what was not seen in so many images is not looked for."""
_LEAST = 2
"""Images of every search."""
_MOST_NUMBERS = 2**27
"""That images are kept in: half a gigabyte in single precision. States that leave no room for a stage are not searched.
"""
_PART = 1e-3
"""Of 1 / sqrt(d): what is left of the direction at which there is no slow one."""
_DOUBT = 0.5
"""Rounding error of a product in units of the rounding of the map."""
_ABOVE = 4.0
"""What is left must stand out from that by so much to be looked at further."""
_SETTLED = 0.9
"""Part of what was there before that a stage leaves at least, of the direction and of the least response, if neither
changes any more."""
_CAREFUL = 64
"""Directions of the measurement with care, of which two are the slowest."""
_SEEN_AGAIN = 1 / _OFF_BY
"""Part of the stretch that the search has seen which that measurement must see at least, to be believed."""


class Survey(NamedTuple):
    """What was found of some samples."""

    slow: Tensor
    """Mask of those whose error is not within the tolerance."""
    looks: Tensor
    """How many evaluations each took."""
    off: Tensor
    """The error of those of the mask, in units of the tolerance."""
    ended: Tensor
    """Mask of those of whom it is known now whether there is a slow direction; the others are believed."""


def has_room(z: States) -> bool:
    """Whether states like these can be searched: their images have to be kept."""
    return _n_stages(z) > 0


def _n_stages(z: States) -> int:
    return _MOST_NUMBERS // max(_STAGE * z.numel(), 1)


def slow_somewhere(
    rows: Tensor, z: States, residual: States, allowed: Tensor, noise: Tensor, rounding: float, image: _Map
) -> Survey:
    """Who of some samples has an error along a slow direction.

    Cost: evaluations as said above, at most 128, and 128 more if one is suspected; memory (batch, 33, d), and up to
    (batch, 128, d) where that does not suffice, but no more than half a gigabyte in single precision.

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
    going, ended = rows, torch.zeros_like(rows)
    left, least = torch.ones_like(length), torch.full_like(length, torch.inf)
    slowest = [search.basis[:, 0], search.basis[:, 0]]
    for _ in range(min(_STAGES, _n_stages(z))):
        if not any_true(going):
            break
        search.go_on(going)
        seen = search.seen(going)
        going = going & torch.isfinite(seen.left)  # where the map is not defined beside the state nothing is seen
        slowest = [torch.where(going.unsqueeze(-1), new, old) for new, old in zip(seen.slowest, slowest, strict=True)]
        settled = (seen.left > _SETTLED * left) & (seen.least > _SETTLED * least)
        left, least = (torch.where(going, new, old) for new, old in ((seen.left, left), (seen.least, least)))
        suspected = size > _OFF_BY * allowed * least
        hopeless = noise > _OFF_BY * allowed * least  # its own rounding is too much
        ends = (left <= search.threshold) | settled | hopeless
        ended = ended | (going & ends)
        going = going & ~ends
    suspected = rows & (size > _OFF_BY * allowed * least)
    if not any_true(suspected):
        return Survey(suspected, search.taken, allowed, ended)
    error, taken = search.error_with_care(suspected, slowest, rounding, least)
    return Survey(suspected & ~(error <= _OFF_BY * allowed), search.taken + taken, error / allowed, ended | suspected)


class _Seen:
    """What the images so far have shown, per sample.

    The columns of the Hessenberg matrix H hold (I - J) u for the directions u of the basis, in that basis.
    """

    left: Tensor
    """How much the best polynomial leaves of the direction that the search began with."""
    least: Tensor
    """Least response |(I - J) u| of a direction u in the space of the images."""
    slowest: list[States]
    """The two directions with the least response."""

    def __init__(self, basis: Tensor, hessenberg: Tensor, doubt: Tensor, taken: Tensor) -> None:
        whole, sizes, right = torch.linalg.svd(hessenberg.nan_to_num(0.0, 0.0, 0.0), full_matrices=True)
        n_images = hessenberg.shape[-1]
        squares = torch.nn.functional.pad(sizes.square(), (0, 1))
        shares = whole[:, 0] * doubt.square().unsqueeze(-1) / (squares + doubt.square().unsqueeze(-1))
        left = torch.linalg.vecdot(shares, whole[:, 0]).clamp_min(0).sqrt()
        finite = torch.isfinite(hessenberg).flatten(1).all(-1)
        self.left = torch.where(finite, left, torch.nan).to(basis.dtype)
        # of who ended before the others the last columns are zero, and not looked at
        self.least = sizes.gather(1, (taken - 1).clamp_min(0).unsqueeze(-1)).squeeze(-1).to(basis.dtype)
        columns = torch.arange(n_images, device=taken.device)
        chosen = [columns == (taken - 1 - k).clamp_min(0).unsqueeze(-1) for k in range(2)]
        weights = [combination(which.to(right.dtype), right).to(basis.dtype) for which in chosen]
        self.slowest = [combination(weight, basis[:, :n_images]) for weight in weights]


class _Search:
    """Looks of one length beside a state, along a direction that nobody chose and its images."""

    def __init__(self, z: States, residual: States, length: Tensor, noise: Tensor, image: _Map) -> None:
        self.z, self.residual, self.length, self.noise, self.image = z, residual, length, noise, image
        self.doubt = _DOUBT * noise / torch.where(length > 0, length, 1.0)
        """Size of what rounding adds to a product."""
        self.threshold = (_ABOVE * self.doubt).clamp_min(_PART / z.shape[-1] ** 0.5)
        self.basis = _anywhere(z).unsqueeze(1)
        self.taken = torch.zeros_like(length, dtype=torch.int64)
        """How many evaluations were made for each sample."""
        self._here = z + residual
        self._hessenberg = z.new_zeros(z.shape[0], 1, 0, dtype=torch.float64)
        self._weights = z.new_ones(z.shape[0], 1, dtype=torch.float64)
        """The vector g with g^T H = 0 and first entry one: the smallest |p(J) u| is 1 / |g|, but for rounding."""

    def go_on(self, rows: Tensor) -> None:
        """So many more images, each without what those before have of it, or as many as it takes."""
        n_before = self._hessenberg.shape[2]
        pad = torch.nn.functional.pad
        basis, weights = pad(self.basis, (0, 0, 0, _STAGE)), pad(self._weights, (0, _STAGE))
        hessenberg = pad(self._hessenberg, (0, _STAGE, 0, _STAGE))
        safe = torch.where(rows, self.length, 1.0).unsqueeze(-1)
        least = self._least_response()
        k = n_before
        while k < n_before + _STAGE:
            active = rows
            if k >= _LEAST:
                active = rows & (self.threshold * torch.linalg.vector_norm(weights, dim=-1) < 1)
                if not any_true(active):
                    break
            shift = torch.where(active, self.length, 0.0).unsqueeze(-1) * basis[:, k]
            product = (self.image(self.z + shift).detach() - self._here) / safe
            new, column = orthogonalised(basis[:, : k + 1], basis[:, k] - product)
            size = torch.maximum(torch.linalg.vector_norm(new, dim=-1).double(), least)
            hessenberg[:, : k + 1, k] = torch.where(active.unsqueeze(-1), column, 0.0)
            hessenberg[:, k + 1, k] = torch.where(active, size, 0.0)
            weights[:, k + 1] = torch.where(active, -(weights[:, : k + 1] * column).sum(-1) / size, 0.0)
            basis[:, k + 1] = unit_vector(new.nan_to_num(0.0, 0.0, 0.0))
            self.taken = self.taken + active
            k += 1
        self.basis, self._weights = basis[:, : k + 1], weights[:, : k + 1]
        self._hessenberg = hessenberg[:, : k + 1, :k]

    def seen(self, rows: Tensor) -> _Seen:
        """What has been seen so far of these samples; of the others nothing."""
        these = Selection(rows)
        found = _Seen(
            *(these.take(part) for part in (self.basis, self._hessenberg, self._least_response(), self.taken))
        )
        found.left, found.least = (these.put(part, self.length) for part in (found.left, found.least))
        found.slowest = [these.put(part, self.z) for part in found.slowest]
        return found

    def _least_response(self) -> Tensor:
        """What rounding alone makes of a response."""
        return self.doubt.clamp_min(torch.finfo(self.z.dtype).tiny).double()

    def error_with_care(
        self, rows: Tensor, slowest: list[States], rounding: float, least: Tensor
    ) -> tuple[Tensor, Tensor]:
        """|(I - J)^-1 (f(z) - z)| and what rounding adds, from steps both ways; how many evaluations that took.

        Along the slowest directions, the residual and its images; what these leave of the residual counts with the
        largest stretch. A map that bends within the looks answers to a combination of directions otherwise than by the
        combination of its answers: the slowest are then directions like any others, and the slow one that the search
        has seen, by its ``least`` response, is not among those measured. Then the residual counts with that.
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
        step, norm = newton_step(moves, changes, self.noise, self.residual)
        error = torch.linalg.vector_norm(step, dim=-1) + self.noise * norm
        if count < self.z.shape[-1]:
            error = error + unsolved(moves, changes, step, self.residual) * norm
            size = torch.linalg.vector_norm(self.residual, dim=-1) + self.noise
            least = torch.maximum(least, self.doubt)
            error = torch.where(norm * least < _SEEN_AGAIN, torch.maximum(error, size / least), error)
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
    return torch.zeros_like(z) + entries / torch.linalg.vector_norm(entries)  # inside vmap with the mapped axes of z


_Map = Callable[[Tensor], Tensor]
