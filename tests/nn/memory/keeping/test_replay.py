"""Screening on given weights: worked examples in fractions, and the stream against a sort."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from torch import Tensor

from helpers import seeded
from separatrix.core import InvalidInput, ShapeError
from separatrix.nn import replay

WEIGHTS = [1, 1, 4, 1, 1, 8, 1, 1, 1, 2, 1, 6]


def fractions(text: str) -> Tensor:
    return torch.tensor([float(Fraction(part)) for part in text.split()], dtype=torch.float64)


def test_the_worked_example() -> None:
    played = replay(WEIGHTS, 2, 2)
    assert played.relevant == ((), (), (1,), (1, 2), *[(1, 3)] * 8)
    expected = fractions("3/2 2/3 26/21 2/7 3/14 8/7 3/14 2/7 15/56 1/2 5/24 1/2")
    torch.testing.assert_close(played.scores, expected, rtol=0, atol=1e-14)


def test_a_share_takes_the_advantage_of_the_start_away() -> None:
    played = replay(WEIGHTS, 2, 2, "share")
    assert played.relevant[6:] == ((1, 3), *[(3, 6)] * 5)
    expected = fractions("2 3/2 30/7 8/7 6/7 32/7 4/7 4/7 58/105 16/15 136/285 24/19")
    torch.testing.assert_close(played.scores, expected, rtol=0, atol=1e-14)


def test_even_weights_keep_the_first_for_ever() -> None:
    played = replay(torch.ones(12), 3, 2)
    assert played.relevant[4:] == tuple([(1, 2)] * 8)
    expected = fractions("11/6 13/12 47/60 13/20 3/5 3/5 3/5 3/5 3/5 3/5 2/5 1/5")
    torch.testing.assert_close(played.scores, expected, rtol=0, atol=1e-14)


def test_means_divide_by_the_steps_seen_and_keep_the_same_states() -> None:
    total, mean = replay(WEIGHTS, 3, 2), replay(WEIGHTS, 3, 2, "mean")
    assert mean.relevant == total.relevant
    terms = torch.tensor([3.0] * 10 + [2.0, 1.0])
    torch.testing.assert_close(mean.scores * terms, total.scores)


@pytest.mark.parametrize("normalise", ["none", "share"])
def test_the_stream_keeps_what_a_sort_of_all_scores_would(normalise: str) -> None:
    """100 runs. Ties go to the earlier time: whole weights make many."""
    generator = seeded(0)
    for _ in range(50):
        n_buffer, n_relevant, length = torch.randint(1, 6, (3,), generator=generator).tolist()
        weights = torch.randint(1, 5, (5 * length,), generator=generator).double().exp()
        played = replay(weights, n_buffer, n_relevant, normalise)
        for t, kept in enumerate(played.relevant, 1):
            past = sorted(range(1, t - n_buffer + 1), key=lambda i: (-float(played.scores[i - 1]), i))
            assert kept == tuple(sorted(past[:n_relevant]))


def test_a_window_keeps_nothing_and_a_wide_buffer_screens_nothing() -> None:
    assert set(replay(WEIGHTS, 2, 0).relevant) == {()}
    wide = replay(WEIGHTS, 50, 5)
    assert set(wide.relevant) == {()}
    assert replay([], 2, 2).relevant == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((WEIGHTS, 0, 2), "n_buffer must be an integer of at least 1; got 0"),
        ((WEIGHTS, 2, -1), "n_relevant must be an integer of at least 0; got -1"),
        (([1.0, 0.0], 2, 1), "weights must be positive and finite"),
        ((WEIGHTS, 2, 1, "half"), "unknown normalise 'half'"),
    ],
)
def test_bad_input_is_named(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises((InvalidInput, ShapeError, TypeError), match=words):
        replay(*arguments)  # type: ignore[arg-type]
