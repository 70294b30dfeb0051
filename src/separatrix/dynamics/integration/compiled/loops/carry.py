"""Whole trajectories, one after the other.

Steps of an explicit pair, control of their size, stops, watch for returns and merging are those of the pools of torch,
which are the plain twins (``stepping``, ``control``, ``stopping``, ``returns``, ``merging``). Where something must be
decided that is no ordinary step, the loop returns a code and its caller goes on. Every array of a trajectory lies in
one flat piece of memory ``w`` that is used again by the next trajectory; nothing is allocated.
"""

from __future__ import annotations

from typing import no_type_check

import numpy

from .layout import (
    ANCHORED,
    CODE,
    ROWS,
    SIZE,
    SLOW,
    SMALL,
    SPEED,
    STEPS,
    UNIT,
    VECTOR_BYTES,
    WATCH,
    row_length,
)
from .making import inlined, kept_part, part
from .merging import merge_rows
from .steps import anchor_here, largest_speed, one_step
from .velocity import velocity


@kept_part
@no_type_check
def put_rows(w, at, d, n, tokens, sizes, b):
    """Rows with their sizes as the state; returns the length of the rows of ``w``."""
    ld = row_length(VECTOR_BYTES // w.itemsize, n)
    for i in range(d * ld):
        w[at.x + i] = 0
        w[at.next + i] = 0
    for j in range(ld):
        lives = j < n and sizes[b, j] > 0
        w[at.live + j] = 1 if lives else 0
        w[at.filled + j] = 0 if j < n else 1
        if not lives:
            w[at.logs + j] = -1e30
        elif sizes[b, j] == 1:  # as nearly all are, and a logarithm costs
            w[at.logs + j] = 0
        else:
            w[at.logs + j] = numpy.log2(sizes[b, j])
    for j in range(n):
        for k in range(d):
            w[at.x + k * ld + j] = tokens[b, j, k]
    return ld


@kept_part
@no_type_check
def put_weights(w, at, d, exact, which, factor):
    """Both matrices with rows and columns exchanged; the coupling for logarithms in base 2."""
    for i in range(d):
        for j in range(d):
            w[at.coupling + j * at.depth + i] = factor * exact[which, 0, i, j]
            w[at.value + j * at.depth + i] = exact[which, 1, i, j]


@part
@no_type_check
def needs_a_look(w, rules, d, n, numbers, counts, b):
    """Code of a trajectory that a pool of torch would look at between two rounds (``Run._sorted``), else zero."""
    h, speed, unit = numbers[b, SIZE], numbers[b, SPEED], numbers[b, UNIT]
    small = h * unit < rules.small or (counts[b, STEPS] >= rules.old and h * speed < rules.turn)
    small = small and rules.looks > 0
    if w.itemsize == 4 and (small or speed / unit < rules.floor):
        return SLOW
    if w.itemsize == 8 and small and n * d <= rules.implicit:
        return SMALL
    return 0


@inlined
@no_type_check
def _begin(w, at, rules, d, n, ld, numbers, counts, b):
    """Velocity and speed of the rows that were put; the first size of a step if there is none."""
    velocity(w, at, d, n, ld, at.x, at.slopes)
    numbers[b, SPEED] = largest_speed(w, at, d, n, ld, at.slopes)
    if numbers[b, SIZE] == 0.0:
        numbers[b, SIZE] = rules.first / max(numbers[b, SPEED], 0.1 * numbers[b, UNIT])


@inlined
@no_type_check
def _follow(
    w, at, rules, table, d, tokens, sizes, labels, exact, bounds, which, numbers, counts, b, f, vectors, squares, ints
):
    """Rounds of steps until a trajectory needs attention; returns the length of its rows in ``w``."""
    n = counts[b, ROWS]
    ld = row_length(VECTOR_BYTES // w.itemsize, n)
    while True:
        for step in range(1, int(rules.round) + 1):
            counts[b, CODE] = one_step(w, at, rules, table, d, n, ld, numbers, counts, b)
            if counts[b, CODE] != 0:
                return ld
            if step % int(rules.merge_after) != 0:
                continue
            m = merge_rows(
                w, at, rules, d, n, ld, tokens, sizes, labels, exact, bounds, which, numbers, counts, b, f, vectors,
                squares, ints,
            )  # fmt: skip
            if m < n:
                n = counts[b, ROWS] = m
                ld = put_rows(w, at, d, n, tokens, sizes, b)
                _begin(w, at, rules, d, n, ld, numbers, counts, b)
        counts[b, CODE] = needs_a_look(w, rules, d, n, numbers, counts, b)
        if counts[b, CODE] != 0:
            return ld
        if rules.watches > 0 and counts[b, ANCHORED] == 0 and counts[b, STEPS] >= counts[b, WATCH]:
            anchor_here(w, at, d, ld, numbers, counts, b)


@part
@no_type_check
def _exchange(w, start, d, n, ld, rows, b, out):
    """Columns at ``start`` to rows, or rows to columns."""
    for j in range(n):
        for k in range(d):
            if out:
                rows[b, j, k] = w[start + k * ld + j]
            else:
                w[start + k * ld + j] = rows[b, j, k]


@kept_part
@no_type_check
def carry(
    first,
    last,
    w,
    at,
    rules,
    table,
    tokens,
    velocities,
    anchors,
    headings,
    sizes,
    labels,
    exact,
    bounds,
    which,
    numbers,
    counts,
    f,
    vectors,
    squares,
    ints,
):
    """Follow the trajectories first to last - 1 until each needs attention; everything is changed in place.

    Args:
        first, last: which of them.
        w, at: working memory, filled with zeros before its first use, and where things lie in it.
        rules, table: what decides; the tableau, its error weights in the last row.
        tokens, velocities: rows (trajectories, rows, d) and, at the end, their velocities, if there is room for them.
        anchors, headings: the same of the anchors, if there are any.
        sizes, labels: how many tokens each row stands for, and the row of each of the caller's tokens.
        exact, bounds, which: beta M and V of every instance in float64, the product of their spectral norms, and the
            instance of each trajectory.
        numbers, counts: see the names of their columns.
        f, vectors, squares, ints: working memory of merging.
    """
    d = tokens.shape[2]
    loaded = -1
    for b in range(first, last):
        if which[b] != loaded:
            loaded = which[b]
            put_weights(w, at, d, exact, loaded, 1.4426950408889634)
        n = counts[b, ROWS]
        ld = put_rows(w, at, d, n, tokens, sizes, b)
        if counts[b, ANCHORED] == 1:
            for i in range(d * ld):
                w[at.anchor + i] = 0
                w[at.heading + i] = 0
            _exchange(w, at.anchor, d, n, ld, anchors, b, False)
            _exchange(w, at.heading, d, n, ld, headings, b, False)
        _begin(w, at, rules, d, n, ld, numbers, counts, b)
        ld = _follow(
            w, at, rules, table, d, tokens, sizes, labels, exact, bounds, loaded, numbers, counts, b, f, vectors,
            squares, ints,
        )  # fmt: skip
        n = counts[b, ROWS]
        _exchange(w, at.x, d, n, ld, tokens, b, True)
        if len(velocities) > 0:
            _exchange(w, at.slopes, d, n, ld, velocities, b, True)
        if counts[b, ANCHORED] == 1:
            _exchange(w, at.anchor, d, n, ld, anchors, b, True)
            _exchange(w, at.heading, d, n, ld, headings, b, True)
