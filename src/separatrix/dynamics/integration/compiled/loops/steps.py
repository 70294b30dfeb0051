"""Stages of a step, its error, and the size of the next one (``stepping``, ``control``, ``stopping``, ``returns``)."""

from __future__ import annotations

from typing import no_type_check

import numpy

from .lanes import filled_lanes, larger, load_lanes, root, store
from .layout import (
    ANCHORED,
    BROKEN,
    CROSSING,
    ERROR,
    EXTENT,
    HEIGHT,
    LIMIT,
    OVER,
    REJECTED,
    RESTING,
    SINCE,
    SIZE,
    SPEED,
    STEPS,
    THRESHOLD,
    TIME,
    UNIT,
    UNTIL,
    VECTOR_BYTES,
)
from .making import inlined, kept_part, part, plain_part
from .mixing import copy, mix
from .velocity import velocity


@part
@no_type_check
def _largest(w, scratch, worst, total):
    """Of squares in a vector, as float64; NaN if the sum of all of them is."""
    lanes = VECTOR_BYTES // w.itemsize
    store(w, scratch, worst)
    store(w, scratch + lanes, total)
    largest, everything = 0.0, 0.0
    for i in range(lanes):
        largest = max(largest, float(w[scratch + i]))
        everything += float(w[scratch + lanes + i])
    return largest + 0.0 * everything


@kept_part
@no_type_check
def largest_speed(w, at, d, n, ld, slope):
    """Of the fastest token."""
    worst = total = filled_lanes(w.dtype.type(0))
    for column in range(0, n, VECTOR_BYTES // w.itemsize):
        square = filled_lanes(w.dtype.type(0))
        for k in range(d):
            entry = load_lanes(w, slope + k * ld + column)
            square = square + entry * entry
        worst, total = larger(square, worst), total + square
    return numpy.sqrt(_largest(w, at.scale, worst, total))


@part
@no_type_check
def _propose(w, at, table, i, size, d, n, ld):
    """Stage i of a step on the sphere, from the state and the slopes before it."""
    w[at.scaled] = 1
    for s in range(i):
        w[at.scaled + 1 + s] = size * table[i, s]
    mix(w, i + 1, at.next, at.scaled, at.x, at.block, d * ld)  # the slopes lie behind the state
    one = filled_lanes(w.dtype.type(1))
    for column in range(0, n, VECTOR_BYTES // w.itemsize):
        square = load_lanes(w, at.filled + column)
        for k in range(d):
            entry = load_lanes(w, at.next + k * ld + column)
            square = square + entry * entry
        scale = one / root(square)
        for k in range(d):
            place = at.next + k * ld + column
            store(w, place, load_lanes(w, place) * scale)


@part
@no_type_check
def _error(w, at, table, size, d, n, ld):
    """Largest estimated error of a token, from all slopes; it overwrites the keys."""
    n_stages = table.shape[1]
    for s in range(n_stages):
        w[at.scaled + s] = size * table[n_stages, s]
    mix(w, n_stages, at.keys, at.scaled, at.slopes, at.block, d * ld)
    return largest_speed(w, at, d, n, ld, at.keys)


@kept_part
@no_type_check
def attempt(w, at, table, d, n, ld, h):
    """All stages of a step from ``x``, whose velocity is the first slope; the last lies at ``next``.

    ``table`` holds the rows of the tableau and, at the end, that of the error, whose size is returned.
    """
    n_stages = table.shape[1]
    size = w.dtype.type(h)
    for i in range(1, n_stages):
        _propose(w, at, table, i, size, d, n, ld)
        velocity(w, at, d, n, ld, at.next, at.slopes + i * at.block)
    return _error(w, at, table, size, d, n, ld)


@part
@no_type_check
def anchor_here(w, at, d, ld, numbers, counts, b):
    """Remember the present state, to recognise a return."""
    for i in range(d * ld):
        w[at.anchor + i] = w[at.x + i]
        w[at.heading + i] = w[at.slopes + i]
    numbers[b, SINCE], numbers[b, HEIGHT], numbers[b, EXTENT] = numbers[b, TIME], 0.0, 0.0
    counts[b, UNTIL] = 2 * max(counts[b, STEPS], 1)
    counts[b, ANCHORED] = 1


@plain_part
@no_type_check
def _away(w, at, d, n, ld):
    """Height of the proposed state over the section of the anchor, and the distance from it."""
    height, square = 0.0, 0.0
    for k in range(d):
        for i in range(k * ld, k * ld + n):
            move = float(w[at.next + i]) - float(w[at.anchor + i])
            height += move * float(w[at.heading + i])
            square += move * move
    return height, numpy.sqrt(square)


@part
@no_type_check
def _next_size(rules, h, error, accepted, last):
    """Size of the next step, and the error to remember (``DisplacementControl.next_size``)."""
    safe = min(max(error, 1e-10), 1e10) if error == error else 1e10
    if accepted:
        factor = rules.safety * safe ** (-0.7 / rules.order) * last ** (0.4 / rules.order)
        return h * min(max(factor, rules.shrink), rules.grow), max(safe, 1e-4)
    return h * min(max(rules.safety * safe ** (-1.0 / rules.order), rules.shrink), 1.0), last


@part
@no_type_check
def _accept(w, at, n_stages, d, n, ld, numbers, b):
    """The proposal becomes the state, and its velocity the first slope."""
    copy(w, at.x, at.next, d * ld)
    copy(w, at.slopes, at.slopes + (n_stages - 1) * at.block, d * ld)
    numbers[b, SPEED] = largest_speed(w, at, d, n, ld, at.slopes)


@inlined
@no_type_check
def one_step(w, at, rules, table, d, n, ld, numbers, counts, b):
    """One attempted step (``stepping.advance``); returns a code if the trajectory needs attention, else zero."""
    left = numbers[b, LIMIT] - numbers[b, TIME]
    wanted = numbers[b, SIZE]
    last = wanted >= left
    h = left if last else wanted
    largest = attempt(w, at, table, d, n, ld, h)
    allowed = rules.rtol * min(h * numbers[b, SPEED], rules.farthest) + rules.atol * numbers[b, UNIT] * h
    error = largest / max(allowed, 1e-300)
    accepted = error <= 1.0
    if accepted and counts[b, ANCHORED] == 1:
        height, distance = _away(w, at, d, n, ld)
        if numbers[b, HEIGHT] < 0.0 and height >= 0.0:
            return CROSSING
        numbers[b, HEIGHT], numbers[b, EXTENT] = height, max(numbers[b, EXTENT], distance)
    size, numbers[b, ERROR] = _next_size(rules, h, error, accepted, numbers[b, ERROR])
    counts[b, STEPS] += 1
    if accepted:
        # A step cut short to end on a requested time says nothing against the longer one tried before.
        numbers[b, SIZE] = max(wanted, size) if last else size
        numbers[b, TIME] = numbers[b, LIMIT] if last else numbers[b, TIME] + h
        _accept(w, at, table.shape[1], d, n, ld, numbers, b)
    else:
        numbers[b, SIZE] = size
        counts[b, REJECTED] += 1
    if counts[b, ANCHORED] == 1 and counts[b, STEPS] >= counts[b, UNTIL]:
        anchor_here(w, at, d, ld, numbers, counts, b)
    return _ended(rules, numbers, counts, b)


@part
@no_type_check
def _ended(rules, numbers, counts, b):
    """Code of a trajectory that may be at its end (``Rest``, ``Ends.left``), else zero."""
    speed = numbers[b, SPEED]
    ratio = speed / numbers[b, UNIT]
    if numbers[b, THRESHOLD] == 0.0 and ratio > rules.rearm_above:
        numbers[b, THRESHOLD] = rules.rearm_to
    if not speed < numpy.inf or numbers[b, SIZE] < rules.smallest / numbers[b, UNIT]:
        return BROKEN
    if ratio < numbers[b, THRESHOLD] or speed == 0.0:
        return RESTING
    if numbers[b, TIME] >= numbers[b, LIMIT] or counts[b, STEPS] >= rules.max_steps:
        return OVER
    return 0
