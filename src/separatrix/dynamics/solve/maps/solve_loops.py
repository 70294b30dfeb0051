"""Loops of fixed-point solves, compiled by numba. Imported when they are first used, never before.

A solve makes, at every step, many small operations on a few numbers of each sample; called one by one they cost more
than the map of a small layer. Here each sample is gone through once. ``stretch`` is the twin of
``convergence.stretch.largest_stretch``, ``glance`` of ``ErrorEstimate``, ``mix`` of ``AndersonHistory``, ``advance`` of
``BroydenHistory``; the tests compare them.

Rows are copied number by number: numba compiles an assignment of slices with the words of its error, for seconds; and
parts are inlined by LLVM, since inlining by numba took more than half of the compilation.

Everything that is compiled stands in this file: the cache on disk watches the file of the compiled function only.
"""

from __future__ import annotations

from typing import Any, no_type_check

import numba
import numpy

from separatrix.core.arithmetic.keeping import kept

# Free order of sums and fused multiply-add; NaN and infinity keep their meaning.
_OPTIONS: Any = {
    "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "fastmath": {"contract", "reassoc", "nsz"}
}  # fmt: skip
_INSIDE: Any = {**_OPTIONS, "no_cpython_wrapper": True}  # called by compiled code alone
_part = numba.njit(forceinline=True, **_INSIDE)
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
def _diagonalise(a, vectors):
    """Eigenvalues of a symmetric matrix on its diagonal, eigenvectors as columns, by Jacobi's rotations.

    For five rows and columns a call of LAPACK takes longer than all the rest that is done for a sample. Only the upper
    triangle is read, and what lies above the diagonal is destroyed.
    """
    n = len(a)
    for i in range(n):
        for j in range(n):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(30):  # four or five are enough: they converge quadratically
        off, on = 0.0, 0.0
        for i in range(n):
            on += a[i, i] * a[i, i]
            for j in range(i + 1, n):
                off += a[i, j] * a[i, j]
        if off <= 1e-26 * on:
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                entry = a[p, q]
                if entry == 0:
                    continue
                half = (a[q, q] - a[p, p]) / (2 * entry)
                tangent = 1 / (abs(half) + numpy.sqrt(half * half + 1))
                if half < 0:
                    tangent = -tangent
                cosine = 1 / numpy.sqrt(tangent * tangent + 1)
                sine = tangent * cosine
                a[p, p] -= tangent * entry
                a[q, q] += tangent * entry
                a[p, q] = 0.0
                for k in range(p):
                    a[k, p], a[k, q] = cosine * a[k, p] - sine * a[k, q], sine * a[k, p] + cosine * a[k, q]
                for k in range(p + 1, q):
                    a[p, k], a[k, q] = cosine * a[p, k] - sine * a[k, q], sine * a[p, k] + cosine * a[k, q]
                for k in range(q + 1, n):
                    a[p, k], a[q, k] = cosine * a[p, k] - sine * a[q, k], sine * a[p, k] + cosine * a[q, k]
                for k in range(n):
                    vectors[k, p], vectors[k, q] = (
                        cosine * vectors[k, p] - sine * vectors[k, q],
                        sine * vectors[k, p] + cosine * vectors[k, q],
                    )


@_part
@no_type_check
def _add_rows(weights, stack, out):
    """Add the weighted rows of a stack, four at a time: the sum is read and written a quarter as often."""
    kind = out.dtype.type
    fours = len(weights) // 4 * 4
    for i in range(0, fours, 4):
        a, b, c, d = stack[i], stack[i + 1], stack[i + 2], stack[i + 3]
        of_a, of_b, of_c, of_d = kind(weights[i]), kind(weights[i + 1]), kind(weights[i + 2]), kind(weights[i + 3])
        for j in range(len(out)):
            out[j] += (of_a * a[j] + of_b * b[j]) + (of_c * c[j] + of_d * d[j])
    for i in range(fours, len(weights)):
        weight, row = kind(weights[i]), stack[i]
        for j in range(len(out)):
            out[j] += weight * row[j]


@_part
@no_type_check
def _with_two(stack, u, v, with_u, with_v):
    """The inner products of two vectors with the rows of a stack, two at a time."""
    zero = u.dtype.type(0)
    for i in range(0, len(with_u) - 1, 2):
        a, b = stack[i], stack[i + 1]
        a_u, a_v, b_u, b_v = zero, zero, zero, zero
        for j in range(len(u)):
            a_u += a[j] * u[j]
            a_v += a[j] * v[j]
            b_u += b[j] * u[j]
            b_v += b[j] * v[j]
        with_u[i], with_u[i + 1], with_v[i], with_v[i + 1] = a_u, b_u, a_v, b_v
    if len(with_u) % 2:
        i = len(with_u) - 1
        with_u[i], with_v[i] = _inner(stack[i], u), _inner(stack[i], v)


@_part
@no_type_check
def _combine(weights, stack, out):
    """The weighted sum of the rows of a stack."""
    for j in range(len(out)):
        out[j] = 0
    _add_rows(weights, stack, out)


@_loop
@no_type_check
def absorb(z, f, residuals, images, place, norms):
    """The residual f - z of every sample and, if there is room for it, f into their places; norms of both."""
    kept = len(images) > 0
    for sample in range(len(z)):
        size, scale = z.dtype.type(0), z.dtype.type(0)
        state, image, residual = z[sample], f[sample], residuals[sample, place]
        for j in range(len(state)):
            entry = image[j] - state[j]
            residual[j] = entry
            size += entry * entry
            scale += image[j] * image[j]
        norms[0, sample] = numpy.sqrt(size)
        norms[1, sample] = numpy.sqrt(scale)
        if kept:
            for j in range(len(image)):
                images[sample, place, j] = image[j]


@_loop
@no_type_check
def advance(steps, n, lower, onward, largest_gain, z, out):
    """Broyden's step of every sample from z, ``BroydenHistory.advance`` for steps taken in full.

    The first n of ``steps`` are those taken, the next is the residual, which its own step replaces.
    """
    last, shares = numpy.empty(n), numpy.empty(n)
    weights = numpy.empty(n, steps.dtype)
    for sample in range(len(steps)):
        stack = steps[sample]
        newest, residual = stack[n - 1], stack[n]
        _with_two(stack, newest, residual, last, shares)
        for k in range(n - 1):
            lower[sample, n - 1, k] = -onward[sample, k] * last[k + 1]
        for i in range(1, n):  # what the factors before its own have made of the residual
            for k in range(i):
                shares[i] -= lower[sample, i, k] * shares[k]
        size = last[n - 1]
        gain = size / (size - shares[n - 1])
        usable = abs(gain) < largest_gain
        if not usable:
            gain = 1.0
        for i in range(n - 1):
            weights[i] = gain * (shares[i] * onward[sample, i])
        onward[sample, n - 1] = 1 / size if usable else 0.0
        for j in range(len(residual)):
            residual[j] *= steps.dtype.type(gain)
        _add_rows(weights[: n - 1], stack[1:], residual)
        for j in range(len(residual)):
            out[sample, j] = z[sample, j] + residual[j]


@_loop
@no_type_check
def rest(proposal, running, z, out):
    """The proposal for those who run; the others rest where they are."""
    for sample in range(len(z)):
        row = proposal[sample] if running[sample] else z[sample]
        for j in range(len(row)):
            out[sample, j] = row[j]


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
            for i in range(n_filled):
                for j in range(n_filled):
                    factor[i, j] = gram[i, j]
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
        total = 0.0
        for i in range(n_filled):
            total += weights[i]
        for i in range(n_filled):
            weights[i] /= total
        _combine(weights, images[sample, :n_filled], out[sample])


@_part
@no_type_check
def _read_pairs(z, f, row, noise, unit, constants, tiny, moves, changes, moved, changed, scale):
    """The moves of one sample and what they changed, both over the length of the move, zero where they are no numbers.

    Returned: how many pairs tell something, the largest response, and the length of the longest move.
    """
    visible, standing_out, local, _ = constants
    evidence, largest, longest = 0, 0.0, 0.0
    for i in range(len(moves)):
        before, after = z[i][row], z[i + 1][row]
        image_before, image_after = f[i][row], f[i + 1][row]
        for j in range(len(before)):
            move = after[j] - before[j]
            moves[i, j] = move
            changes[i, j] = (image_after[j] - image_before[j]) - move
        moved[i] = numpy.sqrt(_inner(moves[i], moves[i]))
        changed[i] = numpy.sqrt(_inner(changes[i], changes[i]))
        if changed[i] > standing_out * noise:
            largest = max(largest, changed[i] / max(moved[i], tiny))
        usable = numpy.isfinite(moved[i]) and numpy.isfinite(changed[i]) and moved[i] > 0
        scale[i] = 1 / max(moved[i], tiny) if usable else 0.0
        if usable:
            longest = max(longest, moved[i])
            if changed[i] > visible * noise and moved[i] < local * unit:
                evidence += 1
        factor = moves.dtype.type(scale[i])
        for j in range(len(before)):
            moves[i, j] = moves[i, j] * factor if usable else 0
            changes[i, j] = changes[i, j] * factor if usable else 0
    return evidence, largest, longest


@_part
@no_type_check
def _slowest(moves, changes, moved, changed, scale, noise, unit, curvature, lower, upper, vectors, root, weights):
    """The largest stretch over combinations of pairs, before rounding is taken into account, and their weights."""
    n_pairs = len(moves)
    for i in range(n_pairs):
        for j in range(i + 1):
            lower[i, j] = lower[j, i] = _inner(changes[i], changes[j])
            upper[i, j] = upper[j, i] = _inner(moves[i], moves[j])
    for i in range(n_pairs):
        share = curvature * min(moved[i] / unit, 1.0)
        doubt = max(noise * scale[i] + share * changed[i] * scale[i], 1e-30) if scale[i] > 0 else 1.0
        lower[i, i] += doubt * doubt
        root[i] = 1 / numpy.sqrt(lower[i, i])
    square, best = -1.0, 0
    for i in range(n_pairs):
        for j in range(n_pairs):
            lower[i, j] *= root[i] * root[j]
            upper[i, j] *= root[i] * root[j]
        if upper[i, i] > square:
            square, best = upper[i, i], i
    combined = _cholesky(lower)
    if combined:  # the quotient of both, in the basis of the factor
        for j in range(n_pairs):
            _forward(lower, upper[:, j])
        for i in range(n_pairs):
            _forward(lower, upper[i])
        combined = numpy.isfinite(upper).all()
    weights[:] = 0
    if combined:
        _diagonalise(upper, vectors)
        square = upper[0, 0]
        for i in range(1, n_pairs):
            square = max(square, upper[i, i])
        for i in range(n_pairs):
            total = 0.0
            for j in range(n_pairs):
                total += vectors[i, j]
            weights[i] = total / max(numpy.sqrt(max(square, 0.0)), 1e-300)
        _back(lower, weights)
        for i in range(n_pairs):
            weights[i] *= root[i]
    else:
        weights[best] = 1.0
    for i in range(n_pairs):
        if not numpy.isfinite(weights[i]):
            weights[i] = 0.0
    return numpy.sqrt(max(square, 0.0))


@_part
@no_type_check
def _room(n_pairs, states):
    """Memory for the pairs of one sample: moves, changes, columns of numbers of each, and matrices."""
    moves = numpy.empty((n_pairs, states.shape[1]), states.dtype)
    changes = numpy.empty_like(moves)
    columns, matrices = numpy.empty((5, n_pairs)), numpy.empty((3, n_pairs, n_pairs))
    return moves, changes, columns, matrices


@_part
@no_type_check
def _stretch_of(z, f, row, noise, unit, constants, tiny, room):
    """The largest stretch that the last states of a sample show, how many pairs tell something, the largest response.

    The weights of the pairs are left in the last of the columns.
    """
    moves, changes, columns, matrices = room
    moved, changed, scale, root, weights = columns[0], columns[1], columns[2], columns[3], columns[4]
    lower, upper, vectors = matrices[0], matrices[1], matrices[2]
    evidence, largest, longest = _read_pairs(
        z, f, row, noise, unit, constants, tiny, moves, changes, moved, changed, scale
    )
    size = _slowest(
        moves, changes, moved, changed, scale, noise, unit, constants[3], lower, upper, vectors, root, weights
    )
    return size / max(1 - size * (noise / max(longest, tiny)), 0.25), evidence, largest


@_loop
@no_type_check
def stretch(z, f, n_pairs, rows, noise, unit, constants, tiny, sizes, evidence, largest, directions, responses):
    """For each sample of ``rows``, from its last states and images, tuples of arrays (batch, d): ``largest_stretch``.

    The first ``n_pairs + 1`` members of the tuples are looked at. ``constants``: what counts as visible, standing out,
    local, and the share of curvature. Written: the largest stretch, how many pairs tell something, the largest
    response, and the directions with what they did.
    """
    room = _room(n_pairs, z[0])
    for s in range(len(rows)):
        sizes[s], evidence[s], largest[s] = _stretch_of(z, f, rows[s], noise[s], unit[s], constants, tiny, room)
        _combine(room[2][4], room[0], directions[s])
        _combine(room[2][4], room[1], responses[s])


@_loop
@no_type_check
def glance(
    z, f, n_pairs, wanted, size, scale, unit, strange, rounding, step, constants, limits, tiny, known, noted, kept,
    spare, estimate,
):  # fmt: skip
    """``ErrorEstimate.errors`` of the wanted samples from their steps alone; False, and nothing is changed, where
    these do not suffice: one of them is strange, or its steps tell too little, are one-sided or strained (``limits``).

    ``known``, ``noted`` and ``kept`` are the stretch of every sample, the step at which it was looked at, and its
    directions with what they did, (2, batch, d); ``spare`` is like ``kept``. Written to ``estimate``.
    """
    few, one_sided, strained, memory = limits
    room = _room(n_pairs, z[0])
    for row in range(len(wanted)):
        estimate[row] = numpy.inf
        if not wanted[row]:
            continue
        if strange[row]:
            return False
        found, evidence, largest = _stretch_of(z, f, row, rounding * unit[row], unit[row], constants, tiny, room)
        if evidence < few or not (largest <= strained and found >= one_sided):
            return False
        estimate[row] = found  # until everybody was looked at
        _combine(room[2][4], room[0], spare[0, row])
        _combine(room[2][4], room[1], spare[1, row])
    for row in range(len(wanted)):
        if not wanted[row]:
            continue
        found, faded = estimate[row], known[row] * memory ** (step - noted[row])
        noted[row] = step
        if found >= faded:
            for part in range(2):
                for j in range(kept.shape[2]):
                    kept[part, row, j] = spare[part, row, j]
        known[row] = max(found, faded)
        estimate[row] = (size[row] + rounding * scale[row]) * known[row]
    return True


@_loop
@no_type_check
def face(rows, own, error, directions, responses, beyond, looks, predicted, residuals):
    """``Crossing._face``: where these samples look, so far that it is beyond the equilibrium, and what they expect."""
    for s in range(len(rows)):
        row = rows[s]
        direction, response, residual = directions[row], responses[row], own[s]
        length = looks.dtype.type(beyond * error[row])
        if length * _inner(response, residual) > 0:
            length = -length
        for j in range(len(residual)):
            looks[row, j] = length * direction[j]
            predicted[row, j] = length * response[j]
            residuals[row, j] = residual[j]


@_loop
@no_type_check
def as_predicted(residuals, predicted, behind, noise, limits, out):
    """``Crossing._as_predicted``: whether the residual beyond is what was expected, and points back."""
    beyond, share, off_by = limits
    for row in range(len(residuals)):
        residual, expected, seen = residuals[row], predicted[row], behind[row]
        at_rest = True
        deviation = residuals.dtype.type(0)
        for j in range(len(residual)):
            at_rest &= residual[j] == 0
            off = seen[j] - residual[j] - expected[j]
            deviation += off * off
        square = _inner(expected, expected)
        change = numpy.sqrt(square)
        alone = beyond * (numpy.sqrt(_inner(residual, residual)) + noise[row])
        back = _inner(seen, expected) >= share * square
        near = numpy.sqrt(deviation) <= off_by * min(change, alone) + 2 * noise[row]
        out[row] = at_rest or (back and near)


@_loop
@no_type_check
def differ(behind, before, noise, length, limits, out):
    """``Crossing._differ``: whether two residuals are visible, point against each other, and belong to one slope."""
    opposite, steep = limits
    for row in range(len(behind)):
        here, there = behind[row], before[row]
        apart = behind.dtype.type(0)
        for j in range(len(here)):
            apart += (here[j] - there[j]) * (here[j] - there[j])
        sizes = numpy.sqrt(_inner(here, here)), numpy.sqrt(_inner(there, there))
        against = _inner(here, there) <= -opposite * sizes[0] * sizes[1]
        visible = min(sizes[0], sizes[1]) >= 2 * noise[row]
        out[row] = against and visible and numpy.sqrt(apart) <= steep * length[row]


@_loop
@no_type_check
def slowest_unit(best, residual, look, behind, allowed, bend, rounding, entry, tiny, slow, unit):
    """``Crossing._slowest_unit``: who has a unit slow enough for a fold of its own, and along that one a vector."""
    for row in range(len(best)):
        farthest, place, found = 0.0, 0, False
        for j in range(best.shape[1]):
            size = abs(residual[row, j])
            own = rounding * abs(best[row, j] + residual[row, j])
            if not size > entry * own:
                continue
            slowness = abs(look[row, j]) / max(abs(behind[row, j] - residual[row, j]), own, tiny)
            if look[row, j] == 0:  # of a unit that was not looked at nothing is known
                slowness = numpy.inf
            if not slowness * allowed[row] >= bend[row]:
                continue
            found = True
            if size * slowness > farthest:
                farthest, place = size * slowness, j
        slow[row] = found
        unit[row, place] = 1
