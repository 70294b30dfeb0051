from __future__ import annotations

import pytest

from separatrix.core.wording import heading


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("n_seeds", "seeds"),
        ("lr", "learning rate"),
        ("theory_radius", "theory: radius"),
        ("radius_before", "radius before training"),
        ("sampled on v_1", "sampled on v₁"),
        ("kernel_distance", "kernel distance"),
    ],
)
def test_columns_are_headed_in_words(name: str, words: str) -> None:
    assert heading(name) == words
