"""Recall of values by keys: every answer can be read off the pairs, by name or by alias."""

from __future__ import annotations

import pytest
import torch

from helpers import seeded
from separatrix.core import InvalidInput
from separatrix.tasks import KeyValues

TASK = KeyValues(20, 4, 3, 6, 5, 7)


def test_every_answer_follows_from_the_pairs() -> None:
    batch = TASK.sample(30, generator=seeded(1))
    assert batch.inputs.shape == batch.targets.shape == (30, 29)
    first_pair = TASK.n_inputs - 30
    for row, targets, places in zip(batch.inputs, batch.targets, batch.oracle, strict=True):
        pairs = {(int(s) - first_pair) // 5: (int(s) - first_pair) % 5 for s in row[places]}
        assert len(pairs) == 4
        assert sorted(places.tolist()) == (row[:20] >= first_pair).nonzero().squeeze(1).tolist()
        asked = (targets >= 0).nonzero().squeeze(1).tolist()
        assert asked == [21, 24, 27]
        for step in asked:
            assert int(targets[step]) == int(row[step + 1]) == 12 + pairs[int(row[step]) % 6]


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0, 5), (1.0, 6, 11)])
def test_paraphrases_are_aliases(share: float, least: int, most: int) -> None:
    batch = KeyValues(20, 4, 3, 6, 5, 7, share).sample(20, generator=seeded(2))
    asked = batch.inputs[:, 21::3]
    assert int(asked.min()) >= least
    assert int(asked.max()) <= most


def test_the_needle_stands_where_it_is_put() -> None:
    for place in (0, 7, 19):
        batch = TASK.sample_at(10, place, generator=seeded(3))
        assert batch.oracle[:, 0].eq(place).all()
        key = (batch.inputs[:, place] - (TASK.n_inputs - 30)) // 5
        assert torch.equal(batch.inputs[:, 21] % 6, key)


def test_loss_and_accuracy_look_at_the_answers_alone() -> None:
    batch = TASK.sample(4, generator=seeded(4))
    right = torch.nn.functional.one_hot(batch.targets.clamp_min(0), TASK.n_outputs) * 30.0
    assert float(TASK.accuracy(right, batch)) == 1.0
    assert float(TASK.loss(right, batch)) < 1e-6
    guessing = torch.zeros(4, 29, TASK.n_outputs)
    guessing[..., 12:17] = 30.0
    assert float(TASK.loss(guessing, batch)) == pytest.approx(TASK.baseline, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_pairs": 30}, "n_haystack must hold"),
        ({"n_pairs": 7}, "n_pairs must be at most n_keys"),
        ({"n_questions": 5}, "n_pairs must be at most n_keys"),
        ({"paraphrased": 1.5}, "paraphrased"),
        ({"n_values": 0}, "n_values"),
    ],
)
def test_bad_sizes_are_named(options: dict, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        KeyValues(**{"n_haystack": 20, "n_pairs": 4, "n_questions": 3, "n_keys": 6, **options})
    with pytest.raises(InvalidInput, match="place must be below"):
        TASK.sample_at(2, 20, generator=seeded(1))
