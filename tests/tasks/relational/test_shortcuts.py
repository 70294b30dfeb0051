from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from helpers import seeded
from separatrix.tasks import RelationalTask, glyphs, ideal_relations, make_task, shortcut_accuracy
from separatrix.tasks.relational import shortcuts
from separatrix.tasks.relational.task import Problems


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["same_diff", "rmts", "identity_rules", "game_same", "same_diff_colour"])
def test_single_pictures_of_our_tasks_give_nothing_away(name: str) -> None:
    found = shortcut_accuracy(make_task(name), 1500)
    assert found.accuracy["pictures one by one"] < found.chance + 0.1


def test_rules_of_thumb_are_worth_what_the_design_says() -> None:
    same = shortcut_accuracy(make_task("same_diff"), 2000)
    assert same.accuracy["some two equal"] == 1.0
    assert same.best[1] == 1.0
    rmts = shortcut_accuracy(make_task("rmts"), 4000).accuracy
    assert max(rmts.values()) < 0.55  # two answers, equally frequent whatever the rules see
    assert shortcut_accuracy(make_task("identity_rules"), 4000).accuracy["majority"] == pytest.approx(0.25, abs=0.04)


def test_ideal_relations_look_at_what_counts() -> None:
    task = make_task("same_diff_colour")
    index = torch.tensor([[3 * 100 + 5, 3 * 100 + 9], [3 * 100 + 5, 4 * 100 + 5]])
    assert ideal_relations(task, index).tolist() == [[[1, 1], [1, 1]], [[1, 0], [0, 1]]]


@dataclasses.dataclass(frozen=True)
class Marked(RelationalTask):
    """Same or different, but the first of two different pictures has a grey corner: nobody has to compare anything."""

    grey: float = 0.5
    name = "marked"
    seq_len = 2
    n_answers = 2
    n_pictures = 200

    def ids(self, part: str) -> torch.Tensor:
        shapes = torch.arange(50) + (50 if part == "test" else 0)
        return torch.cat([shapes, shapes + 100])

    def pictures(self, ids: torch.Tensor) -> torch.Tensor:
        images = glyphs(100, 0).images[ids % 100].clone()
        images[ids >= 100, :, :1, :1] *= self.grey
        return images

    def symbols(self, index: torch.Tensor) -> torch.Tensor:
        return index % 100

    def problems(self, part: str, size: int, *, generator: torch.Generator) -> Problems:
        label = torch.randint(2, (size,), generator=generator)
        first = torch.randint(50, (size,), generator=generator)
        second = (first + label * torch.randint(1, 50, (size,), generator=generator)) % 50
        start = 50 if part == "test" else 0
        index = torch.stack([first + start + 100 * label, second + start], 1)
        return Problems(index, label, label, ("same", "different"), equal_counts=False)


def test_what_single_pictures_give_away_is_measured() -> None:
    assert shortcut_accuracy(Marked(), 2000).accuracy["pictures one by one"] > 0.95
    assert shortcut_accuracy(Marked(grey=1.0), 2000).accuracy["pictures one by one"] < 0.6
    assert shortcut_accuracy(make_task("comparison"), 2000).accuracy["pictures one by one"] > 0.65


@pytest.mark.parametrize("name", ["identity_rules", "comparison"])
def test_single_pictures_are_judged_as_by_the_whole_matrix_of_least_squares(name: str) -> None:
    task, stream = make_task(name), seeded(20)
    train, test = (task.problems(part, 120, generator=stream) for part in ("train", "test"))
    table, places = shortcuts._coarse(task, train.index)
    shown, asked = (
        torch.cat([given[place] for place in where], 1)
        for given, where in ((table, places), shortcuts._coarse(task, test.index))
    )
    centre, target = shown.mean(0), torch.eye(task.n_answers, dtype=torch.float64)[train.label]
    ridge = 1e-6 * float((shown - centre).square().sum(1).mean()) + 1e-12
    below = math.sqrt(ridge) * torch.eye(shown.shape[1], dtype=torch.float64)
    right = torch.cat([target - target.mean(0), torch.zeros(shown.shape[1], task.n_answers, dtype=torch.float64)])
    weights = torch.linalg.lstsq(torch.cat([shown - centre, below]), right).solution
    answers = ((asked - centre) @ weights + target.mean(0)).argmax(1)
    assert shortcuts._one_by_one(task, train, test) == float((answers == test.label).double().mean())
