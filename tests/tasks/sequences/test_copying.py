from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput, spawn
from separatrix.tasks import Copy


def symbols(task: Copy) -> list[int]:
    batch = task.sample(1, generator=spawn(0, "copy"))
    return batch.inputs[0].argmax(-1).tolist()


def test_the_layout_of_the_document() -> None:
    task = Copy(delay=5)
    batch = task.sample(3, generator=spawn(0, "copy"))
    row = batch.inputs.argmax(-1)
    assert task.length == 25
    assert bool(((row[:, :10] >= 1) & (row[:, :10] <= 8)).all())
    assert bool((row[:, 10:14] == 0).all())  # T - 1 blanks
    assert bool((row[:, 14] == 9).all())  # the cue at T + 9, counted from 0
    assert bool((row[:, 15:] == 0).all())
    assert bool((batch.targets[:, :15] == 0).all())
    assert torch.equal(batch.targets[:, 15:], row[:, :10])


def test_the_scornn_layout_cues_at_the_first_answer() -> None:
    row = symbols(Copy(delay=5, layout="scornn"))
    assert row[10:15] == [0] * 5
    assert row[15] == 9
    assert row[16:] == [0] * 9


def test_a_scalar_input_is_the_index() -> None:
    one_hot, scalar = (Copy(4, encoding=kind).sample(2, generator=spawn(0, "copy")) for kind in ("one-hot", "scalar"))  # type: ignore[arg-type]
    assert torch.equal(one_hot.inputs.argmax(-1).float(), scalar.inputs[..., 0])


@pytest.mark.parametrize(
    ("delay", "printed"), [(200, 0.0945201), (500, 0.0399893), (1000, 0.0203867), (2000, 0.0102943)]
)
def test_baselines(delay: int, printed: float) -> None:
    assert Copy(delay).baseline == pytest.approx(printed, abs=5e-8)
    assert Copy(delay).baseline == 10 * math.log(8) / (delay + 20)


@pytest.mark.parametrize("delay", [0, -3, 2.5, True])
def test_a_delay_below_one_is_refused(delay: float) -> None:
    with pytest.raises(InvalidInput, match="delay must be an integer of at least 1"):
        Copy.__post_init__(_with(delay))


def _with(delay: float) -> Copy:
    task = object.__new__(Copy)
    for name, value in (("delay", delay), ("encoding", "one-hot"), ("layout", "kerg")):
        object.__setattr__(task, name, value)
    return task
