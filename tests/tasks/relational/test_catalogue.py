from __future__ import annotations

from typing import Any

import pytest

from relational_solver import solve
from separatrix.core import InvalidInput, spawn
from separatrix.tasks import BASIC, TASK_NAMES, find_design, make_task

SOLVABLE = [
    name for name in TASK_NAMES if "comparison" not in name and name not in ("game_left_of", "game_colour_shape")
]


@pytest.mark.sampled(1, each="name")
@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize("name", SOLVABLE)
def test_equality_alone_solves_every_problem_in_one_way(name: str, part: Any) -> None:
    options: dict[str, Any] = {"dist_n": {"n": 4}, "dist_n_restricted": {"n": 6, "train": "non_preserving"}}
    task = make_task(name, **options.get(name, {}))
    drawn = task.problems(part, 600, generator=spawn(1, "solver"))
    answers = [solve(name, tuple(row)) for row in task.symbols(drawn.index).tolist()]
    assert answers == [[label] for label in drawn.label.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVABLE)
def test_equality_alone_solves_ten_thousand_problems(name: str) -> None:
    options: dict[str, Any] = {"dist_n_restricted": {"train": "preserving"}}
    task = make_task(name, **options.get(name, {}))
    drawn = task.problems("test", 10_000, generator=spawn(2, "solver"))
    answers = [solve(name, tuple(row)) for row in task.symbols(drawn.index).tolist()]
    assert answers == [[label] for label in drawn.label.tolist()]


@pytest.mark.parametrize(("name", "m"), [("same_diff", 98), ("rmts", 95), ("rmts3", 94), ("dist10", 89)])
def test_the_extreme_holdout_is_the_default_and_leaves_just_enough_shapes(name: str, m: int) -> None:
    task = make_task(name)
    assert len(task.ids("test")) == m
    assert len(task.ids("train")) == 100 - m
    assert not set(task.ids("train").tolist()) & set(task.ids("test").tolist())


def test_without_holdout_both_parts_are_all_shapes() -> None:
    task = make_task("dist3", holdout=0)
    assert task.ids("train").tolist() == task.ids("test").tolist() == list(range(100))


def test_the_seed_chooses_the_held_out_shapes() -> None:
    ids = [make_task("rmts", seed=seed).ids("train").tolist() for seed in (0, 0, 1)]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize("m", [100, 101, -1, 97, 3, True])
def test_a_holdout_that_leaves_too_few_shapes_gets_both_minima_and_the_largest(m: Any) -> None:
    with pytest.raises(InvalidInput, match=r"identity_rules needs at least 4 .* 4 in the test.* 0 or 4 to 96; got"):
        make_task("identity_rules", holdout=m)


def test_rmts3_needs_more_shapes_in_the_test_than_in_training() -> None:
    with pytest.raises(InvalidInput, match="at least 6 shapes in training and 8 in the test"):
        make_task("rmts3", holdout=7)
    assert len(make_task("rmts3", holdout=8).ids("test")) == 8


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("identity_rule", {}, "Did you mean 'identity_rules'"),
        ("dist_n", {"n": 2}, "n must be an integer of at least 3"),
        ("dist_n", {"n": 101}, "n must be at most 100"),
        ("dist_n_restricted", {}, "train must be a name, non_preserving or preserving"),
        ("dist_n_restricted", {"train": "both"}, "Known: non_preserving, preserving"),
        ("dist_n_restricted", {"train": "preserving", "n": 3}, "n must be at least 4"),
        ("rmts", {"n": 3}, "unknown option"),
        ("identity_rules4", {"missing_one": "abc"}, "unknown missing_one 'abc'"),
        ("game_left_of", {"test": "stripes"}, "several shapes"),
        ("game_same", {"holdout": 3}, "holdout and glyph_set are not for games"),
        ("rmts", {"n_shapes": 4}, "rmts needs at least 5 shapes; there are 4"),
    ],
)
def test_bad_requests_are_answered_in_a_sentence(name: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make_task(name, **options)


@pytest.mark.parametrize("name", BASIC)
def test_patterns_are_equally_frequent_where_the_batch_allows_it(name: str) -> None:
    task = make_task(name)
    drawn = task.problems("train", find_design(name).batch, generator=spawn(0, "balance"))
    assert drawn.equal_counts
    assert len(set(drawn.pattern.bincount().tolist())) == 1
    assert not task.problems("train", 97, generator=spawn(0, "balance")).equal_counts
