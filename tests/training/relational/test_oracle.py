from __future__ import annotations

import pytest

from separatrix.tasks import make_task
from separatrix.training import oracle_answers


@pytest.mark.slow
def test_relations_of_missing_words_fail_on_the_one_word_that_needs_them() -> None:
    found = oracle_answers(make_task("identity_rules4_missing"), n_steps=400, n_test=1500)
    assert found.by_pattern["baca"] <= 0.05
    assert min(found.by_pattern["abca"], found.by_pattern["bcaa"]) >= 0.5  # chance is a sixth; both still rise


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least", "greatest"),
    [
        ("identity_rules4", 0.98, 1.0),
        ("rmts3", 0.995, 1.0),
        ("identity_rules4_flipped", 0.995, 1.0),
        ("identity_rules4_flipped_missing", 0.50, 0.65),
        ("identity_rules4_missing", 0.657, 0.677),
    ],
)
def test_oracle_accuracies_are_those_of_the_specification(name: str, least: float, greatest: float) -> None:
    assert least <= oracle_answers(make_task(name), n_steps=1500).accuracy <= greatest
