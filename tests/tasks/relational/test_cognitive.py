from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest
import torch

from separatrix.core import InvalidInput, spawn
from separatrix.tasks import Design, DistributionOfN, Pattern, make_task
from separatrix.tasks.relational.cognitive import permutations, preserves, require_holdout


def test_same_diff6_different_pairs_are_made_of_the_same_two_objects() -> None:
    drawn = make_task("same_diff6").problems("train", 384, generator=spawn(0, "sd6"))
    objects = [len(set(row)) for row in drawn.index.tolist()]
    assert max(objects) == 2
    names = [drawn.names[k] for k in drawn.pattern.tolist()]
    assert {n for n, k in zip(names, objects, strict=True) if k == 1} == {"aaa aaa"}


def test_test_words_of_identity_rules4_are_none_of_training() -> None:
    for name in ("identity_rules4", "identity_rules4_missing", "identity_rules4_flipped_missing"):
        task = make_task(name)
        parts = [set(task.problems(part, 60, generator=spawn(0, "w")).names) for part in ("train", "test")]
        assert not parts[0] & parts[1]


def test_preserving_permutations_are_counted_as_seven_and_three_factorial() -> None:
    every = torch.tensor(list(itertools.permutations(range(6))))
    assert int(preserves(every).sum()) == 6 * 6  # 3! 3!
    ten = permutations(200_000, 10, None, generator=spawn(0, "share"))
    share = float(preserves(ten).double().mean())
    expected = 30_240 / 3_628_800
    assert share == pytest.approx(expected, abs=5 * (expected / 200_000) ** 0.5)  # five standard errors


@pytest.mark.parametrize("train", ["preserving", "non_preserving"])
def test_restricted_permutations_of_training_and_test_are_disjoint(train: str) -> None:
    task = DistributionOfN(5, 50, train)  # type: ignore[arg-type]
    for part in ("train", "test"):
        drawn = task.problems(part, 300, generator=spawn(0, "r"))  # type: ignore[arg-type]
        assert set(drawn.pattern.tolist()) == {int((train == "preserving") == (part == "train"))}


@pytest.mark.parametrize("preserving", [True, False, None])
def test_permutations_are_uniform_among_those_asked_for(preserving: bool | None) -> None:
    drawn = permutations(48_000, 4, preserving, generator=spawn(0, "u"))
    wanted = [p for p in itertools.permutations(range(4)) if preserving is None or (p[0] == 0) is preserving]
    counts = dict.fromkeys(wanted, 0)
    for row in drawn.tolist():
        counts[tuple(row)] += 1
    mean = 48_000 / len(wanted)
    assert all(abs(count - mean) < 5 * mean**0.5 for count in counts.values())


@pytest.mark.parametrize(
    ("patterns", "choices", "words"),
    [
        ([], 0, "train of design 'x' must hold at least one pattern"),
        ([Pattern("p", (0, 1), 5)], 0, "must be a label, 0 to 1; got 5"),
        ([Pattern("p", (0, 1), 4)], 3, "one of the objects that are offered, 0 to 2; got 4"),
        ([Pattern("p", (0, 1), 0), Pattern("q", (0, 1, 2), 1)], 0, "'q' of train .* must have 2 letters"),
        ([Pattern("p", (0, -1), 0)], 0, "numbers of objects from 0"),
        ([Pattern("p", (0, 1), 0, 0)], 0, "weight of pattern 'p'"),
    ],
)
def test_a_design_that_makes_no_sense_is_refused(patterns: Any, choices: int, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Design("x", 2, tuple(patterns), tuple(patterns), choices, 90, 96)


def test_a_number_of_numpy_is_a_number_of_shapes() -> None:
    held = require_holdout("rmts", 100, numpy.int64(95), 5, 5)
    assert (type(held), held) == (int, 95)
