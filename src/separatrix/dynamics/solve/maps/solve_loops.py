"""Loops of fixed-point solves, compiled by numba. Imported when they are first used, never before.

A solve makes, at every step, many small operations on a few numbers of each sample; called one by one they cost more
than the map of a small layer. Here each sample is gone through once. ``stretch`` is the twin of
``convergence.stretch.largest_stretch``, ``mix`` of ``AndersonHistory``; the tests compare them.

Everything that is compiled stands in this file: the cache on disk watches the file of the compiled function only.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numba
import numpy

from separatrix.core.arithmetic.keeping import kept

# Free order of sums and fused multiply-add; NaN and infinity keep their meaning.
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
_part = numba.njit(inline="always", **_OPTIONS)
_loop = kept(**_OPTIONS)


@_part
@no_type_check
def _inner(a, b):
    """The inner product of two rows, summed in their own precision on vectors."""
    total = a.dtype.type(0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@_part
@no_type_check
def _cholesky(a):
    """The lower factor in place of the lower triangle; False if a pivot is not positive."""
    n = len(a)
    for j in range(n):
        pivot = a[j, j]
        for k in range(j):
            pivot -= a[j, k] * a[j, k]
        if not pivot > 0:
            return False
        root = numpy.sqrt(pivot)
        a[j, j] = root
        for i in range(j + 1, n):
            entry = a[i, j]
            for k in range(j):
                entry -= a[i, k] * a[j, k]
            a[i, j] = entry / root
    return True


@_part
@no_type_check
def _forward(factor, b):
    """``factor^-1 b`` in place of b."""
    for i in range(len(b)):
        for k in range(i):
            b[i] -= factor[i, k] * b[k]
        b[i] /= factor[i, i]


@_part
@no_type_check
def _back(factor, b):
    """``factor'^-1 b`` in place of b."""
    n = len(b)
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= factor[k, i] * b[k]
        b[i] /= factor[i, i]


@_part
@no_type_check
def _combine(weights, stack, out):
    """The weighted sum of the rows of a stack."""
    for j in range(len(out)):
        out[j] = 0
    for i in range(len(weights)):
        weight = out.dtype.type(weights[i])
        row = stack[i]
        for j in range(len(out)):
            out[j] += weight * row[j]


@_loop
@no_type_check
def mix(residuals, images, n_filled, newest, ridge, out):
    """Anderson's step of every sample: weights along (G + ridge diag G)^-1 1, the newest image where there are none."""
    gram = numpy.empty((n_filled, n_filled))
    factor = numpy.empty_like(gram)
    weights = numpy.empty(n_filled)
    for sample in range(len(residuals)):
        for i in range(n_filled):
            for j in range(i + 1):
                gram[i, j] = gram[j, i] = _inner(residuals[sample, i], residuals[sample, j])
        found = False
        for attempt in range(2):
            for i in range(n_filled):
                gram[i, i] *= 1 + (ridge if attempt == 0 else 100 * ridge)
            factor[:] = gram
            found = _cholesky(factor)
            if found:
                break
        if not found:
            for j in range(out.shape[1]):
                out[sample, j] = images[sample, newest, j]
            continue
        weights[:] = 1
        _forward(factor, weights)
        _back(factor, weights)
        weights /= weights.sum()
        _combine(weights, images[sample, :n_filled], out[sample])


@_loop
@no_type_check
def stretch(z, f, n_pairs, rows, noise, unit, constants, tiny, sizes, evidence, largest, directions, responses):
    """For each sample of ``rows``, from its last states and images, tuples of arrays (batch, d): ``largest_stretch``.

    The first ``n_pairs + 1`` members of the tuples are looked at. ``constants``: what counts as visible, standing out,
    local, and the share of curvature. Written: the largest stretch, how many pairs tell something, the largest
    response, and the directions with what they did.
    """
    visible, standing_out, local, curvature = constants
    dim = z[0].shape[1]
    moves, changes = numpy.empty((n_pairs, dim), z[0].dtype), numpy.empty((n_pairs, dim), z[0].dtype)
    moved, changed, scale = numpy.empty(n_pairs), numpy.empty(n_pairs), numpy.empty(n_pairs)
    usable = numpy.empty(n_pairs, numpy.bool_)
    lower = numpy.empty((n_pairs, n_pairs))
    upper, quotient = numpy.empty_like(lower), numpy.empty_like(lower)
    root, weights = numpy.empty(n_pairs), numpy.empty(n_pairs)
    for s in range(len(rows)):
        evidence[s], largest[s] = 0, 0
        longest = 0.0
        for i in range(n_pairs):
            before, after = z[i][rows[s]], z[i + 1][rows[s]]
            image_before, image_after = f[i][rows[s]], f[i + 1][rows[s]]
            for j in range(dim):
                move = after[j] - before[j]
                moves[i, j] = move
                changes[i, j] = (image_after[j] - image_before[j]) - move
            moved[i] = numpy.sqrt(_inner(moves[i], moves[i]))
            changed[i] = numpy.sqrt(_inner(changes[i], changes[i]))
            if changed[i] > standing_out * noise[s]:
                largest[s] = max(largest[s], changed[i] / max(moved[i], tiny))
            usable[i] = numpy.isfinite(moved[i]) and numpy.isfinite(changed[i]) and moved[i] > 0
            scale[i] = 1 / max(moved[i], tiny) if usable[i] else 0.0
            if usable[i]:
                longest = max(longest, moved[i])
                if changed[i] > visible * noise[s] and moved[i] < local * unit[s]:
                    evidence[s] += 1
            factor = moves.dtype.type(scale[i])
            for j in range(dim):
                moves[i, j] = moves[i, j] * factor if usable[i] else 0
                changes[i, j] = changes[i, j] * factor if usable[i] else 0
        single, best = -1.0, 0
        for i in range(n_pairs):
            for j in range(i + 1):
                lower[i, j] = lower[j, i] = _inner(changes[i], changes[j])
                upper[i, j] = upper[j, i] = _inner(moves[i], moves[j])
        for i in range(n_pairs):
            share = curvature * min(moved[i] / unit[s], 1.0)
            doubt = max(noise[s] * scale[i] + share * changed[i] * scale[i], 1e-30) if usable[i] else 1.0
            lower[i, i] += doubt * doubt
            root[i] = 1 / numpy.sqrt(lower[i, i])
        for i in range(n_pairs):
            for j in range(n_pairs):
                lower[i, j] *= root[i] * root[j]
                upper[i, j] *= root[i] * root[j]
            if upper[i, i] > single:
                single, best = upper[i, i], i
        combined = _cholesky(lower)
        square = single
        if combined:
            quotient[:] = upper
            for j in range(n_pairs):
                _forward(lower, quotient[:, j])
            for i in range(n_pairs):
                _forward(lower, quotient[i])
            combined = numpy.isfinite(quotient).all()
        weights[:] = 0
        if combined:
            values, vectors = numpy.linalg.eigh(quotient)
            square = values[n_pairs - 1]
            for i in range(n_pairs):
                weights[i] = vectors[i].sum() / max(numpy.sqrt(max(square, 0.0)), 1e-300)
            _back(lower, weights)
            weights *= root
        else:
            weights[best] = 1.0
        for i in range(n_pairs):
            if not numpy.isfinite(weights[i]):
                weights[i] = 0.0
        size = numpy.sqrt(max(square, 0.0))
        hidden = noise[s] / max(longest, tiny)
        sizes[s] = size / max(1 - size * hidden, 0.25)
        _combine(weights, moves, directions[s])
        _combine(weights, changes, responses[s])
