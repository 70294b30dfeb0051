"""Whether a cluster of tokens stays together: the sign of its transversal block (``equilibria.stability``)."""

from __future__ import annotations

from typing import no_type_check

import numpy

from .making import kept_plain, plain_part


@plain_part
@no_type_check
def _attended(exact, which, d, n, f, totals, roots, a, weights, mean, query):
    """Attention of cluster a: the weights of all clusters, and their mean."""
    for j in range(d):
        query[j] = mean[j] = 0.0
    for k in range(d):
        for j in range(d):
            query[j] += f[a * d + k] * exact[which, 0, k, j]
    top = -numpy.inf
    for i in range(n):
        if roots[i] == i:
            weights[i] = 0.0
            for k in range(d):
                weights[i] += query[k] * f[i * d + k]
            top = max(top, weights[i])
    total = 0.0
    for i in range(n):
        if roots[i] == i:
            weights[i] = totals[i] * numpy.exp(weights[i] - top)
            total += weights[i]
    for i in range(n):
        if roots[i] == i:
            weights[i] /= total
            for k in range(d):
                mean[k] += weights[i] * f[i * d + k]


@plain_part
@no_type_check
def _spread_of(d, n, f, roots, weights, mean, matrix):
    """Covariance of the attention of a cluster."""
    for k in range(d):
        for j in range(d):
            matrix[k, j] = -mean[k] * mean[j]
    for i in range(n):
        if roots[i] == i:
            for k in range(d):
                for j in range(d):
                    matrix[k, j] += weights[i] * f[i * d + k] * f[i * d + j]


@plain_part
@no_type_check
def _times(d, left, right, out):
    """``left right``."""
    for i in range(d):
        for j in range(d):
            out[i, j] = 0.0
        for k in range(d):
            for j in range(d):
                out[i, j] += left[i, k] * right[k, j]


@plain_part
@no_type_check
def _times_transposed(d, left, right, out):
    """``left right'``."""
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += left[i, k] * right[j, k]
            out[i, j] = total


@plain_part
@no_type_check
def _is_positive(d, matrix):
    """Whether a symmetric matrix is positive definite, by its Cholesky factor, which replaces it."""
    for j in range(d):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= matrix[j, k] * matrix[j, k]
        if not pivot > 0.0:
            return False
        pivot = numpy.sqrt(pivot)
        matrix[j, j] = pivot
        for i in range(j + 1, d):
            entry = matrix[i, j]
            for k in range(j):
                entry -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = entry / pivot
    return True


@kept_plain
@no_type_check
def contracts(exact, bounds, which, d, n, f, totals, roots, a, vectors, squares):
    r"""Whether all differences inside cluster a decay: its transversal block has a negative symmetric part.

    With C the covariance of its attention and :math:`\gamma = w^\top V m`, the block is
    :math:`P (\beta V C M^\top - \gamma) P` (``stability.transversal_blocks``, where it is found by a derivative). Its
    first part is at most :math:`|V| |\beta M| (1 - |m|^2)`, which often settles it. Along the token itself a number is
    put that decides nothing.
    """
    weights, mean = vectors[0], vectors[1]
    _attended(exact, which, d, n, f, totals, roots, a, weights, mean, vectors[3])
    gamma, lack, axis = 0.0, 1.0, vectors[2]
    for k in range(d):
        axis[k] = f[a * d + k]
        lack -= mean[k] * mean[k]
        inner = 0.0
        for j in range(d):
            inner += exact[which, 1, k, j] * mean[j]
        gamma += axis[k] * inner
    if gamma > 1.001 * bounds[which] * max(lack, 1e-14):
        return True
    block, other = squares[0], squares[1]
    _spread_of(d, n, f, roots, weights, mean, block)
    _times(d, exact[which, 1], block, other)
    _times_transposed(d, other, exact[which, 0], block)
    return _is_positive(d, _negated(d, block, gamma, axis, vectors[3], other))


@plain_part
@no_type_check
def _negated(d, block, gamma, axis, inner, out):
    """``gamma P - P sym(block) P + c x x'`` with a positive c as large as the rest."""
    size = abs(gamma)
    for k in range(d):
        inner[k] = 0.0
        for j in range(d):
            inner[k] += 0.5 * (block[k, j] + block[j, k]) * axis[j]
            size += abs(block[k, j])
    along = 0.0
    for k in range(d):
        along += axis[k] * inner[k]
    for k in range(d):
        for j in range(d):
            kept = 0.5 * (block[k, j] + block[j, k]) - axis[k] * inner[j] - inner[k] * axis[j]
            kept += along * axis[k] * axis[j]
            out[k, j] = (size - gamma) * axis[k] * axis[j] - kept
        out[k, k] += gamma
    return out
