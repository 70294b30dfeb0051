"""Of a law with many cases an ordinary run tries some, others with every ``--seed``; the slow tests try the rest.

``@pytest.mark.sampled(3)`` keeps three cases of a test, ``@pytest.mark.sampled(1, each="solver")`` one for every value
of an argument (of several: one for every combination), so that no implementation goes untried.
``pytestmark = pytest.mark.sampled(5, across="flow")`` is for a file of many laws for many flows: every law is tried for
five of them, the next law for the next five, so that every flow keeps some laws and every law some flows. The nightly
run draws by its date and runs both tiers: between them no case is left out.
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


def in_turn(laws: Sequence[Sequence[tuple[str, Hashable]]], count: int, seed: int) -> set[str]:
    """Names of the cases that ``count`` values have in every law, where each law takes the values after the last one's.

    ``laws`` are cases with their values. A case without a value stays.
    """
    labels: dict[Hashable, str] = {}
    for law in laws:
        for name, value in law:
            labels.setdefault(value, name)
    kept, taken = set[str](), 0
    for law in laws:
        values = sorted({value for _, value in law if value is not None}, key=lambda value: _place(labels[value], seed))
        chosen = {values[(taken + place) % len(values)] for place in range(min(count, len(values)))}
        kept.update(name for name, value in law if value is None or value in chosen)
        taken += count
    return kept


def _place(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def mark_the_rest(items: Sequence[pytest.Item], seed: int) -> None:
    """Cases of sampled tests that are not drawn become slow ones."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    across: dict[tuple[str, str, int], list[list[pytest.Item]]] = {}
    for name, several in tests.items():
        mark = several[0].get_closest_marker("sampled")
        assert mark is not None
        if "across" in mark.kwargs:
            across.setdefault((name.partition("::")[0], mark.kwargs["across"], *mark.args), []).append(several)
        else:
            kept = drawn([(item.nodeid, _group(item, **mark.kwargs)) for item in several], *mark.args, seed)
            _leave(several, kept)
    for (_, argument, count), laws in across.items():
        kept = in_turn([[(item.nodeid, _value(item, argument)) for item in law] for law in laws], count, seed)
        for law in laws:
            _leave(law, kept)


def _leave(items: Sequence[pytest.Item], kept: set[str]) -> None:
    for item in items:
        if item.nodeid not in kept:
            item.add_marker(pytest.mark.slow)


def _group(item: pytest.Item, each: str = "") -> Hashable:
    """Which value of the arguments named in ``each`` a case has."""
    return tuple(_value(item, name.strip()) for name in each.split(",") if name)


def _value(item: pytest.Item, argument: str) -> Hashable:
    """What stands for the value of an argument; none where the test has no such argument."""
    values = item.callspec.params if hasattr(item, "callspec") else {}
    if argument not in values:
        return None
    value = values[argument]
    return value if isinstance(value, str | int | float) else id(value)
