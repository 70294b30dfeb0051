"""What every relational task promises. A task of yours is one line in TASKS."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor

from separatrix.core import InvalidInput, spawn
from separatrix.tasks import TASK_NAMES, ProblemBatches, Problems, RelationalTask, make_task

NEEDS: dict[str, dict[str, Any]] = {"dist_n": {"n": 4}, "dist_n_restricted": {"n": 5, "train": "preserving"}}


@dataclasses.dataclass(frozen=True)
class Heavier(RelationalTask):
    """A stranger's task: which of two grey patches is darker?"""

    n_greys: int = 20

    name = property(lambda self: "heavier")  # type: ignore[assignment]
    seq_len = property(lambda self: 2)  # type: ignore[assignment]
    n_answers = property(lambda self: 2)  # type: ignore[assignment]
    n_pictures = property(lambda self: self.n_greys)  # type: ignore[assignment]

    def ids(self, part: str) -> Tensor:
        return torch.arange(0 if part == "train" else 1, self.n_greys, 2)

    def pictures(self, ids: Tensor) -> Tensor:
        return (ids.float() / self.n_greys)[:, None, None, None].expand(-1, 3, 32, 32).clone()

    def problems(self, part: str, size: int, *, generator: torch.Generator) -> Problems:
        ids = self.ids(part)
        first = torch.randint(len(ids), (size,), generator=generator)
        step = torch.randint(1, len(ids), (size,), generator=generator)
        index = torch.stack([ids[first], ids[(first + step) % len(ids)]], 1)
        label = (index[:, 1] < index[:, 0]).long()
        return Problems(index, label, label, ("first", "second"), False)


TASKS: dict[str, RelationalTask] = {name: make_task(name, **NEEDS.get(name, {})) for name in TASK_NAMES}
TASKS["stranger: heavier"] = Heavier()


pytestmark = pytest.mark.sampled(6, across="task")


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> RelationalTask:
    return TASKS[request.param]


@pytest.mark.parametrize("part", ["train", "test"])
def test_problems_show_pictures_of_their_part_and_answers_that_exist(task: RelationalTask, part: Any) -> None:
    drawn = task.problems(part, 500, generator=spawn(0, "contract"))
    assert drawn.index.shape == (500, task.seq_len)
    assert set(drawn.index.flatten().tolist()) <= set(task.ids(part).tolist())
    assert set(drawn.label.tolist()) == set(range(task.n_answers))
    assert int(drawn.pattern.max()) < len(drawn.names)
    # five standard errors of a share, or equal counts
    error = 5 * (500 / task.n_answers) ** 0.5
    assert all(abs(count - 500 / task.n_answers) < error for count in drawn.label.bincount().tolist())


def test_pictures_are_images_and_differ_where_indices_do(task: RelationalTask) -> None:
    ids = task.ids("test")[:40]
    images = task.pictures(ids)
    assert images.shape[:2] == (len(ids), 3)
    assert float(images.min()) >= 0
    assert float(images.max()) <= 1
    assert len(images.flatten(1).unique(dim=0)) == len(ids)


def test_a_picture_may_be_changed_without_changing_the_task(task: RelationalTask) -> None:
    ids = task.ids("train")[:2]
    task.pictures(ids).fill_(0.5)
    assert not bool((task.pictures(ids) == 0.5).all())


def test_same_generator_same_problems_whatever_its_library(task: RelationalTask) -> None:
    state = torch.get_rng_state()
    first, again, other = (task.train_batch(20, generator=spawn(seed, "contract"))[0] for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    drawn = [task.test_batch(20, generator=numpy.random.default_rng(seed))[0] for seed in (3, 3, 4)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert torch.equal(torch.get_rng_state(), state)


def test_streams_depend_on_task_part_seed_and_step(task: RelationalTask) -> None:
    batches = ProblemBatches(task, 20, 0)
    index = batches(3).index
    assert torch.equal(index, pickle.loads(pickle.dumps(batches))(3).index)
    for other in (batches(4), ProblemBatches(task, 20, 1)(3), ProblemBatches(task, 20, 0, "test")(3)):
        assert not torch.equal(index, other.index)


@pytest.mark.parametrize("size", [1, 7])
def test_batches_of_any_size_work(task: RelationalTask, size: int) -> None:
    assert task.train_batch(size)[0].shape == (size, task.seq_len)
    assert task.test_batch(size)[1].shape == (size,)


@pytest.mark.parametrize("size", [0, -1])
def test_batches_of_no_size_are_refused(size: Any) -> None:
    with pytest.raises(InvalidInput, match="size must be an integer of at least 1"):
        ProblemBatches(TASKS["rmts"], size, 0)


def test_groups_cover_the_positions_and_an_answer_points_to_some_of_them(task: RelationalTask) -> None:
    assert sum(task.groups) == task.seq_len
    pointed = [set(task.marked(label)) for label in range(task.n_answers)]
    assert set().union(*pointed) <= set(range(task.seq_len))
    if any(pointed):  # each answer to its own
        assert sum(map(len, pointed)) == len(set().union(*pointed)) > 0
