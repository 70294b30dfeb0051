"""Of a law with many cases an ordinary run tries some, others with every ``--seed``; the slow tests try the rest.

``@pytest.mark.sampled(3)`` keeps three cases of a test, ``@pytest.mark.sampled(1, each="solver")`` one for every value
of an argument (of several: one for every combination), so that no implementation goes untried. The nightly run draws
by its date and runs both tiers: between them no case is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

import pytest


def drawn(cases: Sequence[tuple[str, Hashable]], count: int, seed: int) -> set[str]:
    """Names of ``count`` cases of every group, or all of a smaller one; ``cases`` are names with their groups."""
    groups: dict[Hashable, list[str]] = {}
    for name, group in cases:
        groups.setdefault(group, []).append(name)
    return {name for names in groups.values() for name in sorted(names, key=lambda one: _place(one, seed))[:count]}


def _place(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def mark_the_rest(items: Sequence[pytest.Item], seed: int) -> None:
    """Cases of sampled tests that are not drawn become slow ones."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for several in tests.values():
        mark = several[0].get_closest_marker("sampled")
        assert mark is not None
        kept = drawn([(item.nodeid, _group(item, **mark.kwargs)) for item in several], *mark.args, seed)
        for item in several:
            if item.nodeid not in kept:
                item.add_marker(pytest.mark.slow)


def _group(item: pytest.Item, each: str = "") -> Hashable:
    """Which value of the arguments named in ``each`` a case has."""
    values = item.callspec.params  # type: ignore[attr-defined]
    chosen = [values[name.strip()] for name in each.split(",") if name]
    return tuple(value if isinstance(value, str | int | float) else id(value) for value in chosen)
