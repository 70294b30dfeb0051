"""Gradients under sparse even attention, pattern by pattern: Theorem B.1.39 of kerg2022 and what it leaves out."""

from __future__ import annotations

import torch

from separatrix.core.random import spawn

from ....worst_case import lowest


def random_pattern(n_steps: int, sparsity: int, generator: torch.Generator) -> list[tuple[int, ...]]:
    """For each time from 1, at most ``sparsity`` attended times up to it, evenly drawn."""
    pattern: list[tuple[int, ...]] = [()]
    for t in range(1, n_steps + 1):
        order = torch.randperm(t, generator=generator)[: min(t, sparsity)]
        pattern.append(tuple(sorted(int(i) + 1 for i in order)))
    return pattern


def gradients_along(pattern: list[tuple[int, ...]], eigenvalue: float, start: int = 1) -> list[float]:
    """p_{0:k} of Eq. (B.1.278) for k = 0, 1, ...: derivative of s_{t+k} by h_t in one eigendirection."""
    by_hidden = {start: 1.0}
    found: list[float] = []
    for time in range(start, len(pattern)):
        if time > start:
            by_hidden[time] = eigenvalue * found[-1]
        attended = [i for i in pattern[time] if i >= start]
        context = sum(by_hidden[i] for i in attended) / len(pattern[time])
        found.append(by_hidden[time] + context)
    return found


def least_degrees(pattern: list[tuple[int, ...]], start: int = 1) -> list[int | None]:
    """For each k the least number of recurrent steps of a chain of attention alone from ``start`` to time start + k."""
    best: dict[int, int] = {}
    found: list[int | None] = []
    for time in range(start, len(pattern)):
        options = []
        for i in pattern[time]:
            if i == start:
                options.append(0)
            elif i > start and i - 1 in best:
                options.append(best[i - 1] + 1)
        if options:
            best[time] = min(options)
        found.append(best.get(time))
    return found


def sparse_violations(seed: int, n_patterns: int, n_steps: int) -> dict[str, float]:
    """How often bounds fail over random patterns, and how near the right one is to being reached."""
    from separatrix.theory import sparse_attention_bound

    generator = spawn(seed, "kerg4-theorems", "patterns")
    pairs = corrected = printed = 0
    least = float("inf")
    for number in range(n_patterns):
        sparsity = (2, 4, 8)[number % 3]
        eigenvalue = (0.05, 0.3, 0.9)[number // 3 % 3]
        pattern = random_pattern(n_steps, sparsity, generator)
        for value, degree in zip(gradients_along(pattern, eigenvalue), least_degrees(pattern), strict=True):
            if degree is None:
                continue
            bound = float(sparse_attention_bound(eigenvalue, sparsity, degree))
            pairs += 1
            corrected += value < bound * (1 - 1e-12)
            printed += value < sparsity**-degree * (1 - 1e-12)
            least = lowest(least, value / bound)
    return {"pairs": float(pairs), "corrected": corrected / pairs, "printed": printed / pairs, "least_ratio": least}


def planted_chain(sparsity: int, degree: int, gap: int) -> tuple[list[tuple[int, ...]], int]:
    """A pattern with one chain of attention of that degree from ``start`` to its last time; also ``start``.

    All other attention goes to times before ``start``, whose states do not depend on it.
    """
    start = sparsity + 1
    n_steps = start + (degree + 1) * (gap + 1)
    old = tuple(range(1, sparsity + 1))
    pattern = [(), *(old[: max(1, min(t, sparsity))] for t in range(1, n_steps + 1))]
    source = start
    for _ in range(degree + 1):
        time = source + gap
        pattern[time] = (*old[: sparsity - 1], source)
        source = time + 1
    return pattern[:source], start


def leverage(degrees: tuple[int, ...], sparsities: tuple[int, ...], eigenvalue: float, gap: int) -> list[dict]:
    """The gradient at the end of planted chains, for each degree and sparsity."""
    rows = []
    for degree in degrees:
        for sparsity in sparsities:
            pattern, start = planted_chain(sparsity, degree, gap)
            value = gradients_along(pattern, eigenvalue, start)[-1]
            rows.append({"degree": degree, "sparsity": sparsity, "gradient": value})
    return rows
