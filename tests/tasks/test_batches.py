from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings, strategies as st

from separatrix.core import InvalidInput
from separatrix.tasks import ContiguousBatches, ShuffledBatches


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_an_epoch_of_shuffled_batches_shows_no_item_twice(n_items: int, batch_size: int, epoch: int) -> None:
    if batch_size > n_items:
        return
    batches = ShuffledBatches(n_items, batch_size, 3, "order")
    shown = torch.cat([batches(epoch * batches.per_epoch + place) for place in range(batches.per_epoch)])
    assert len(shown.unique()) == len(shown) == n_items // batch_size * batch_size
    assert set(shown.tolist()) <= set(range(n_items))


def test_the_batch_of_a_step_does_not_depend_on_what_was_asked_before() -> None:
    walked, jumped = ShuffledBatches(20, 5, 0, "a"), ShuffledBatches(20, 5, 0, "a")
    steps = [walked(step) for step in range(12)]
    assert torch.equal(jumped(11), steps[11])
    assert torch.equal(jumped(2), steps[2])
    assert not torch.equal(torch.cat(steps[:4]), torch.cat(steps[4:8]))  # another epoch, another order
    assert not torch.equal(ShuffledBatches(20, 5, 1, "a")(0), steps[0])


def test_a_batch_larger_than_the_data_is_refused() -> None:
    with pytest.raises(InvalidInput, match="batch_size must be at most n_items = 3; got 4"):
        ShuffledBatches(3, 4, 0)


def test_targets_are_the_inputs_one_symbol_later_and_windows_join_without_a_gap() -> None:
    text = torch.arange(100)
    batches = ContiguousBatches(text, 3, 8)
    rows = text[:99].reshape(3, 33)
    inputs, targets = zip(*(batches(step) for step in range(batches.per_epoch)), strict=True)
    assert torch.equal(torch.cat(inputs, 1), rows[:, :32])
    assert torch.equal(torch.cat(targets, 1), rows[:, 1:33])
    assert torch.equal(batches(batches.per_epoch)[0], inputs[0])


@given(st.integers(20, 200), st.integers(1, 4), st.integers(1, 8), st.integers(0, 9), st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_every_window_is_whole_whatever_the_shift(n: int, rows: int, context: int, shift: int, step: int) -> None:
    try:
        batches = ContiguousBatches(torch.arange(n), rows, context, shift=shift)
    except InvalidInput:
        assert n // rows < 2 * context + 1
        return
    inputs, targets = batches(step)
    assert inputs.shape == targets.shape == (rows, context)
    assert torch.equal(targets, inputs + 1)


def test_a_text_that_is_too_short_is_refused() -> None:
    with pytest.raises(InvalidInput, match="10 symbols is too short for 2 rows with windows of 5"):
        ContiguousBatches(torch.arange(10), 2, 5)
