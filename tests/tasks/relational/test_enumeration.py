from __future__ import annotations

from math import comb
from typing import Any

import pytest

from separatrix.core import InvalidInput, spawn
from separatrix.tasks import all_problems, count_problems, find_design, finite_problems, make_task


@pytest.mark.parametrize("s", [5, 6, 15])
def test_sizes_of_the_problem_spaces_follow_the_known_formulas(s: int) -> None:
    assert count_problems(find_design("same_diff"), s, balanced=True) == 2 * s * (s - 1)
    assert count_problems(find_design("rmts"), s) == 48 * comb(s, 4) + 240 * comb(s, 5)
    assert count_problems(find_design("dist3"), s, choices=False) == 36 * comb(s, 3)
    assert count_problems(find_design("identity_rules"), s, balanced=True) == 1728 * comb(s, 4)


def test_sizes_at_five_and_fifteen_shapes_are_those_of_the_source() -> None:
    names = ("same_diff", "rmts", "dist3", "identity_rules")
    same, rmts, dist3, rules = (find_design(name) for name in names)
    assert [count_problems(same, s, balanced=True) for s in (2, 5, 15)] == [4, 40, 420]
    assert [count_problems(rmts, s) for s in (5, 15)] == [480, 786_240]
    assert [count_problems(dist3, s, choices=False) for s in (5, 15)] == [360, 16_380]
    assert [count_problems(rules, s, balanced=True) for s in (5, 15)] == [8_640, 2_358_720]
    assert count_problems(dist3, 5) == 17_280


@pytest.mark.sampled(1, each="name")
@pytest.mark.parametrize("name", ["same_diff", "rmts", "dist3", "identity_rules"])
@pytest.mark.parametrize("distinct", [True, False])
def test_listing_all_problems_gives_the_counted_number_and_what_is_drawn_is_among_them(
    name: str, distinct: bool
) -> None:
    task = make_task(name)
    found = all_problems(task, distinct=distinct)
    assert len(found) == count_problems(task.plan, len(task.ids("train")), balanced=not distinct)
    rows = {(*row, label) for row, label in zip(found.index.tolist(), found.label.tolist(), strict=True)}
    if distinct:
        assert len(rows) == len(found)
    index, label = task.train_batch(200, generator=spawn(0, "drawn"))
    drawn = {(*row, y) for row, y in zip(index.tolist(), label.tolist(), strict=True)}
    assert drawn <= rows


def test_a_balanced_listing_has_patterns_by_weight() -> None:
    found = all_problems(make_task("same_diff6", n_shapes=6, holdout=3), distinct=False)
    counts = found.pattern.bincount().tolist()
    assert counts == [2 * counts[-1]] * 3 + [counts[-1]] * 6


def test_huge_spaces_are_not_listed() -> None:
    with pytest.raises(InvalidInput, match="at most 2000000 are listed"):
        all_problems(make_task("rmts", holdout=0))


@pytest.mark.parametrize(
    ("name", "m", "sizes", "epochs"),
    [
        ("same_diff", 0, (18_810, 990), 50),
        ("same_diff", 50, (4_900, 4_900), 50),
        ("same_diff", 85, (420, 10_000), 50),
        ("same_diff", 95, (40, 10_000), 100),
        ("same_diff", 98, (4, 10_000), 100),
        ("identity_rules", 95, (8_640, 10_000), 50),
        ("rmts", 95, (480, 10_000), 200),
    ],
)
def test_finite_sets_have_the_sizes_and_epochs_of_the_source(
    name: str, m: int, sizes: tuple[int, int], epochs: int
) -> None:
    found = finite_problems(make_task(name, holdout=m))
    assert (len(found.train_label), len(found.test_label), found.n_epochs) == (*sizes, epochs)


def test_finite_sets_without_holdout_are_disjoint() -> None:
    found: Any = finite_problems(make_task("dist3", holdout=0))
    assert len(found.train_label) == len(found.test_label) == 10_000
    train = {tuple(row) for row in found.train_index.tolist()}
    assert not train & {tuple(row) for row in found.test_index.tolist()}


def test_too_few_shapes_make_no_problems() -> None:
    assert [count_problems(find_design(name), 2) for name in ("identity_rules", "rmts", "same_diff")] == [0, 0, 4]
