from __future__ import annotations

from typing import Any

import pytest

from separatrix.core import InvalidInput
from separatrix.tasks import Split


def test_parts_are_disjoint_and_complete_and_the_seed_decides() -> None:
    split = Split(50, 20, 3)
    assert len(split.test) == 20
    assert sorted([*split.train.tolist(), *split.test.tolist()]) == list(range(50))
    assert split.test.tolist() == Split(50, 20, 3).test.tolist() != Split(50, 20, 4).test.tolist()


@pytest.mark.parametrize(("n", "m", "words"), [(5, 5, "below n = 5"), (5, -1, "at least 0"), (0, 0, "at least 1")])
def test_impossible_splits_are_refused(n: Any, m: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Split(n, m)
