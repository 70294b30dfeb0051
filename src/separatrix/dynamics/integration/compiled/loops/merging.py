"""Tokens that came together become one row (``integration.merging``)."""

from __future__ import annotations

from typing import no_type_check

import numpy

from .contraction import contracts
from .lanes import filled_lanes, larger, load_lanes, store
from .layout import ANCHORED, THRESHOLD, VECTOR_BYTES
from .making import inlined, kept_part, kept_plain, part


@part
@no_type_check
def _root_of(roots, i):
    while roots[i] != i:
        i = roots[i]
    return i


@kept_part
@no_type_check
def cluster(w, at, d, n, ld, distance, sizes, b, roots):
    """Single linkage: for each row the smallest index of its cluster; returns how many there are.

    Rows that stand for nothing join the first.
    """
    limit = w.dtype.type(distance) * w.dtype.type(distance)
    for i in range(n):
        roots[i] = i
        if sizes[b, i] == 0:
            roots[i] = 0
            continue
        for column in range(0, i, VECTOR_BYTES // w.itemsize):
            square = filled_lanes(w.dtype.type(0))
            for k in range(d):
                away = load_lanes(w, at.x + k * ld + column) - filled_lanes(w[at.x + k * ld + i])
                square = square + away * away
            store(w, at.logits + column, square)
        for j in range(i):
            if w[at.logits + j] < limit and sizes[b, j] > 0:
                one, other = _root_of(roots, i), _root_of(roots, j)
                roots[max(one, other)] = min(one, other)
    count = 0
    for i in range(n):
        roots[i] = _root_of(roots, i)
        count += roots[i] == i
    return count


@kept_plain
@no_type_check
def means(w, at, d, n, ld, sizes, b, roots, f, totals):
    """Mean directions of clusters in float64, (row of the root, d) in ``f``, and their sizes."""
    for i in range(n):
        totals[i] = 0.0
        for k in range(d):
            f[i * d + k] = 0.0
    for i in range(n):
        totals[roots[i]] += sizes[b, i]
        for k in range(d):
            f[roots[i] * d + k] += float(sizes[b, i]) * float(w[at.x + k * ld + i])
    for i in range(n):
        square = 0.0
        for k in range(d):
            square += f[i * d + k] * f[i * d + k]
        if square > 0.0:
            for k in range(d):
                f[i * d + k] /= numpy.sqrt(square)


@inlined
@no_type_check
def _keep_contracting(exact, bounds, which, d, n, f, totals, roots, vectors, squares):
    """Dissolve the clusters that do not contract; returns how many rows there are then."""
    for a in range(n):
        if roots[a] == a and _has_others(roots, a, n):
            vectors[4, a] = 1.0 if contracts(exact, bounds, which, d, n, f, totals, roots, a, vectors, squares) else 0.0
        else:
            vectors[4, a] = 1.0
    count = 0
    for i in range(n):
        if vectors[4, roots[i]] == 0.0:
            vectors[5, i] = 1.0
        else:
            vectors[5, i] = 0.0
    for i in range(n):
        if vectors[5, i] == 1.0:
            roots[i] = i
        count += roots[i] == i
    return count


@part
@no_type_check
def _has_others(roots, a, n):
    for i in range(a + 1, n):  # noqa: SIM110 (generators are not compiled)
        if roots[i] == a:
            return True
    return False


@kept_part
@no_type_check
def may_halve(w, at, n, ld, distance, sizes, b):
    """Whether as many as half of the rows may have another beside them, judged by two coordinates.

    Where fewer clusters than half of the rows are left, at most half of the rows are alone. A look at two coordinates
    reads less than ``cluster``, which reads all, and nearly always says no. A row in question adds at least three
    limits to the four of the row itself, and others nothing below zero: yes may be wrong, no is not.
    """
    limit = w.dtype.type(distance) * w.dtype.type(distance)
    lanes, most, alone = VECTOR_BYTES // w.itemsize, filled_lanes(w.dtype.type(4) * limit), 0
    zero, x, y = filled_lanes(w.dtype.type(0)), at.x, at.x + ld
    for i in range(n):
        one, other, near = filled_lanes(w[x + i]), filled_lanes(w[y + i]), zero
        for column in range(0, n, lanes):
            away, aside = load_lanes(w, x + column) - one, load_lanes(w, y + column) - other
            near = near + larger(most - (away * away + aside * aside), zero)
        store(w, at.logits, near)
        total = w.dtype.type(0)
        for j in range(lanes):
            total += w[at.logits + j]
        alone += total < 6 * limit and sizes[b, i] > 0
        if 2 * alone > n:
            return False
    return True


@inlined
@no_type_check
def merge_rows(
    w, at, rules, d, n, ld, tokens, sizes, labels, exact, bounds, which, numbers, counts, b, f, vectors, squares, ints
):
    """Carry on tokens that stay together as one row, where that halves the rows; returns how many there are.

    As ``Merging.merge`` does, only looked at more often and without place holders.
    """
    if n < 3 or not rules.distance > 0.0 or not numbers[b, THRESHOLD] > 0.0:
        return n
    roots, place = ints[0], ints[1]
    if not may_halve(w, at, n, ld, rules.distance, sizes, b):
        return n
    if 2 * cluster(w, at, d, n, ld, rules.distance, sizes, b, roots) > n:
        return n
    means(w, at, d, n, ld, sizes, b, roots, f, vectors[6])
    m = _keep_contracting(exact, bounds, which, d, n, f, vectors[6], roots, vectors, squares)
    if 2 * m > n:
        return n
    means(w, at, d, n, ld, sizes, b, roots, f, vectors[6])
    m = 0
    for i in range(n):
        if roots[i] == i:
            place[i] = m
            for k in range(d):
                tokens[b, m, k] = f[i * d + k]
            sizes[b, m] = vectors[6, i]
            m += 1
    for i in range(labels.shape[1]):
        labels[b, i] = place[roots[labels[b, i]]]
    counts[b, ANCHORED] = 0
    return m
