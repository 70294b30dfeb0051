from __future__ import annotations

import pytest
import torch

from separatrix.core import InvalidInput, spawn
from separatrix.tasks import ColouredTask, ComparisonTask, PatternTask, SeparatedTask, make_task


def test_a_coloured_glyph_is_the_glyph_times_its_colour() -> None:
    task = make_task("same_diff_colour")
    from separatrix.tasks import glyphs, random_colours

    image = task.pictures(torch.tensor([7 * 100 + 3]))[0]
    assert torch.equal(image, glyphs(100).images[7] * random_colours(100)[3][:, None, None])


@pytest.mark.parametrize("name", ["identity_rules_colour", "identity_rules_by_colour"])
def test_the_feature_that_does_not_count_is_independent_of_the_answer(name: str) -> None:
    task = make_task(name)
    drawn = task.problems("test", 4000, generator=spawn(0, "c"))
    shape, colour = drawn.index // 100, drawn.index % 100
    other = colour if name.endswith("s_colour") else shape
    assert len(other.unique()) == 100
    agree = (other[:, 0] == other[:, 1]).double().mean()
    assert float(agree) == pytest.approx(0.01, abs=5 * (0.01 / 4000) ** 0.5)


def test_held_out_colours_are_held_out() -> None:
    task = make_task("same_diff_by_colour")
    train, test = (set((task.ids(part) % 100).tolist()) for part in ("train", "test"))  # type: ignore[arg-type]
    assert len(train) == 2
    assert not train & test


def test_separated_inputs_alternate_shapes_and_patches() -> None:
    task = SeparatedTask(50)
    index, label = task.test_batch(200)
    assert bool((index[:, ::2] < 100).all())
    assert bool((index[:, 1::2] >= 100).all())
    assert bool(((index[:, 0] == index[:, 2]) == (label == 0)).all())
    patch = task.pictures(torch.tensor([105]))[0]
    assert bool((patch == patch[:, :1, :1]).all())


@pytest.mark.parametrize("transitive", [False, True])
def test_the_answer_of_a_comparison_is_the_picture_with_more_ink(transitive: bool) -> None:
    task = ComparisonTask(95, transitive)
    for part in ("train", "test"):
        drawn = task.problems(part, 200, generator=spawn(0, "ink"))  # type: ignore[arg-type]
        ink = (1 - task.images).mean((1, 2, 3))[drawn.index]
        assert torch.equal(ink.argmax(1), drawn.label)
        assert bool((drawn.index[:, 0] // 3 == drawn.index[:, 1] // 3).all())


def test_transitive_comparison_tests_a_pair_that_training_never_shows() -> None:
    task = ComparisonTask(95, True)
    pairs = [{tuple(row) for row in (task.test_batch(99)[0] % 3).tolist()}]
    pairs.append({tuple(row) for row in (task.train_batch(99)[0] % 3).tolist()})
    assert pairs == [{(0, 2), (2, 0)}, {(1, 2), (2, 1), (0, 1), (1, 0)}]


def test_colours_that_count_must_be_as_many_as_objects() -> None:
    with pytest.raises(InvalidInput, match="n_colours must be 100"):
        ColouredTask(PatternTask("same_diff"), "colour", 50)
