from __future__ import annotations

import math

import pytest
import torch

from separatrix.core import InvalidInput, spawn
from separatrix.tasks import Denoise


def test_ten_symbols_at_different_steps_are_asked_for_in_order() -> None:
    batch = Denoise(30).sample(200, generator=spawn(0, "denoise"))
    row = batch.inputs.argmax(-1)
    assert bool((row[:, 39] == 10).all())  # the cue at T + 10, counted from 1
    assert bool((row[:, 40:] == 0).all())
    assert bool((batch.oracle[:, 1:] > batch.oracle[:, :-1]).all())
    assert torch.equal(row.gather(1, batch.oracle), batch.targets[:, 40:])
    assert bool(((row[:, :39] != 0).sum(1) == 10).all())
    assert int(row[:, :39].max()) == 8


def test_every_step_is_as_likely_as_any_other() -> None:
    batch = Denoise(11).sample(4000, generator=spawn(1, "denoise"))
    counts = torch.bincount(batch.oracle.flatten(), minlength=20).double()
    expected = 4000 * 10 / 20
    assert float((counts - expected).abs().max()) < 5 * (4000 * 0.25) ** 0.5  # five standard deviations


def test_the_other_variant_loses_symbols_and_cues_with_nothing() -> None:
    batch = Denoise(15, variant="jing").sample(300, generator=spawn(0, "denoise"))
    assert batch.inputs.shape[-1] == 10
    assert float(batch.inputs[:, 24].abs().sum()) == 0
    shown = batch.inputs[:, :24, 1:].sum((1, 2))
    assert float(shown.max()) <= 10
    assert float(shown.min()) < 10
    assert int(batch.targets.max()) == 9


def test_fewer_items_make_shorter_sequences_with_the_same_rules() -> None:
    task = Denoise(20, n_items=4)
    batch = task.sample(50, generator=spawn(0, "denoise"))
    row = batch.inputs.argmax(-1)
    assert task.length == row.shape[1] == 28
    assert task.baseline == pytest.approx(4 * math.log(8) / 28)
    assert bool((row[:, 23] == 10).all())
    assert torch.equal(row.gather(1, batch.oracle), batch.targets[:, 24:])
    answers = torch.nn.functional.one_hot(batch.targets, 10).float()
    answers[:, :24] = 0  # what is said before the answers does not count
    assert float(task.accuracy(answers, batch)) == 1
    with pytest.raises(InvalidInput, match="n_items"):
        Denoise(20, n_items=0)
