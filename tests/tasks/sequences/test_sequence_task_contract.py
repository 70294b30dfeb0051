"""What every sequence task promises. A task of yours is one line in TASKS."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

from separatrix.core import InvalidInput, ShapeError, spawn
from separatrix.tasks import Adding, Copy, Denoise, SequenceBatch, SequenceTask, StreamedBatches, make_task


class Parity(SequenceTask):
    """A stranger's task: is the number of ones even? The answer depends on every step."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def __repr__(self) -> str:
        return f"Parity({self.steps})"

    length = property(lambda self: self.steps)  # type: ignore[assignment]
    n_inputs = property(lambda self: 1)  # type: ignore[assignment]
    n_outputs = property(lambda self: 2)  # type: ignore[assignment]
    baseline = property(lambda self: 0.6931471805599453)  # type: ignore[assignment]
    readout = property(lambda self: "last")  # type: ignore[assignment]

    def sample(self, n: int, *, generator: torch.Generator) -> SequenceBatch:
        bits = torch.randint(2, (n, self.steps), generator=generator)
        return SequenceBatch(bits.unsqueeze(-1).float(), bits.sum(1) % 2, torch.arange(self.steps).repeat(n, 1))

    def loss(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        self.require_outputs(outputs, batch)
        return torch.nn.functional.cross_entropy(outputs, batch.targets)

    def accuracy(self, outputs: Tensor, batch: SequenceBatch) -> Tensor:
        return (outputs.argmax(-1) == batch.targets).float().mean()


TASKS: dict[str, SequenceTask] = {
    "copy": Copy(7),
    "copy, shortest": Copy(1),
    "copy, scalar": Copy(7, encoding="scalar"),
    "copy, scornn": Copy(7, layout="scornn"),
    "denoise": Denoise(15),
    "denoise, shortest": Denoise(1),
    "denoise, jing": Denoise(15, variant="jing"),
    "denoise, four items": Denoise(20, n_items=4),
    "adding": Adding(9),
    "adding, shortest": Adding(2),
    "relational: identity rules": make_task("identity_rules", holdout=0),
    "relational: a game": make_task("game_occurs"),
    "stranger: parity": Parity(4),
}


pytestmark = pytest.mark.sampled(4, across="task")


@pytest.fixture(params=TASKS)
def task(request: pytest.FixtureRequest) -> SequenceTask:
    return TASKS[request.param]


def memoryless(task: SequenceTask, batch: SequenceBatch) -> Tensor:
    """The best answers that do not look at the input: the logarithm of the frequencies, or the mean."""
    targets = batch.targets
    if targets.is_floating_point():
        return targets.mean(0, keepdim=True).expand(len(batch), -1)
    frequencies = torch.nn.functional.one_hot(targets, task.n_outputs).double().mean(0)
    return frequencies.clamp_min(1e-300).log().expand(len(batch), *frequencies.shape)


def test_shapes_are_those_announced(task: SequenceTask) -> None:
    batch = task.sample(5, generator=spawn(0, "contract"))
    features = (task.n_inputs,) if batch.inputs.is_floating_point() else ()  # a step may be an index
    assert batch.inputs.shape == (5, task.length, *features)
    assert batch.targets.shape[0] == len(batch) == 5
    if task.readout == "steps":
        assert batch.targets.shape == (5, task.length)
    assert batch.oracle.shape[0] == 5
    assert int(batch.oracle.min()) >= 0
    assert int(batch.oracle.max()) < task.length


@pytest.mark.sampled(5)
def test_the_baseline_is_what_frequencies_alone_reach(task: SequenceTask) -> None:
    batch = task.sample(20000, generator=spawn(1, "contract"))
    # relative error of an entropy estimated from 20000 draws is below 1 per cent
    assert float(task.loss(memoryless(task, batch), batch)) == pytest.approx(task.baseline, rel=0.02)


def test_answers_that_know_the_targets_have_no_loss_and_are_right(task: SequenceTask) -> None:
    batch = task.sample(6, generator=spawn(2, "contract"))
    if batch.targets.is_floating_point():
        perfect = batch.targets.clone()
    else:
        perfect = 1e3 * torch.nn.functional.one_hot(batch.targets, task.n_outputs).double()
    assert float(task.loss(perfect, batch)) < 1e-6
    assert float(task.accuracy(perfect, batch)) == 1.0
    assert float(task.accuracy(perfect.flip(0), batch)) < 1.0


def test_what_stands_at_the_oracle_steps_decides_the_answer(task: SequenceTask) -> None:
    batch = task.sample(400, generator=spawn(3, "contract"))
    inputs = batch.inputs.reshape(400, task.length, task.n_inputs)
    steps = batch.oracle.unsqueeze(-1).expand(-1, -1, task.n_inputs)
    seen = inputs.gather(1, steps).flatten(1)
    answers: dict[tuple[float, ...], list[float]] = {}
    for key, target in zip(seen.tolist(), batch.targets.flatten(1).tolist() if batch.targets.ndim > 1
                           else batch.targets.unsqueeze(1).tolist(), strict=True):  # fmt: skip
        if getattr(task, "variant", "") == "jing":
            return  # symbols that were overwritten are asked for all the same
        assert answers.setdefault(tuple(key), target) == target


def test_same_generator_same_problems_and_the_global_one_is_untouched(task: SequenceTask) -> None:
    state = torch.get_rng_state()
    first, again, other = (task.sample(40, generator=spawn(seed, "contract")) for seed in (0, 0, 1))
    assert torch.equal(first.inputs, again.inputs)
    assert not torch.equal(first.inputs, other.inputs)
    assert torch.equal(torch.get_rng_state(), state)


def test_answers_of_the_wrong_shape_are_refused(task: SequenceTask) -> None:
    batch = task.sample(2, generator=spawn(0, "contract"))
    with pytest.raises(ShapeError, match="outputs must have shape"):
        task.loss(torch.zeros(2, task.n_outputs + 1), batch)


def test_streams_depend_on_task_seed_path_and_step(task: SequenceTask) -> None:
    batches = StreamedBatches(task, 30, 0)
    inputs = batches(3).inputs
    assert torch.equal(inputs, StreamedBatches(task, 30, 0)(3).inputs)
    assert torch.equal(inputs, pickle.loads(pickle.dumps(copy.deepcopy(batches)))(3).inputs)
    for other in (batches(4), StreamedBatches(task, 30, 1)(3), StreamedBatches(task, 30, 0, "test")(3)):
        assert not torch.equal(inputs, other.inputs)


@pytest.mark.parametrize("bad", [{"task": 3}, {"size": 0}, {"size": 2.5}])
def test_bad_streams_are_refused(bad: dict[str, Any]) -> None:
    import inspect

    given: dict[str, Any] = {"task": Copy(3), "size": 2, "seed": 0, **bad}
    made = object.__new__(StreamedBatches)
    with pytest.raises(InvalidInput):
        inspect.unwrap(StreamedBatches.__init__)(made, *given.values())
