"""Single policies: what each is known for, and the adapters."""

from __future__ import annotations

import pytest
import torch

from helpers import seeded
from separatrix import nn
from separatrix.core import InvalidInput, ShapeError
from separatrix.nn import play_eviction


def kept_at_the_end(logits: torch.Tensor, policy: object, *, normalise: str = "none") -> list[int]:
    return (play_eviction(logits, 4, 3, policy, normalise)[0, 0, -1] > 0).nonzero().squeeze(1).tolist()


def test_even_attention_keeps_the_first_unless_shares_count() -> None:
    even = torch.zeros(1, 1, 40, 40, dtype=torch.float64)
    assert kept_at_the_end(even, "screening")[:3] == [0, 1, 2]
    liked = even.clone()
    liked[..., 20:23] = 0.5
    assert kept_at_the_end(liked, "screening")[:3] == [0, 1, 2]
    assert kept_at_the_end(liked, "screening", normalise="share")[:3] == [20, 21, 22]


def test_window_and_sinks_do_not_look_at_attention() -> None:
    logits = torch.randn(1, 1, 20, 20, generator=seeded(1))
    assert kept_at_the_end(logits, "window") == list(range(13, 20))
    assert kept_at_the_end(logits, "sinks") == [0, 1, 2, 16, 17, 18, 19]


def test_late_attention_counts_for_heavy_hitters_and_not_for_screening() -> None:
    logits = torch.zeros(1, 1, 60, 60, dtype=torch.float64)
    logits[..., :10, :3] = 3.0  # early favourites
    logits[..., 10:, :3] = -30.0  # nobody looks at them again
    logits[..., 12:, 12] = 3.0  # one that is looked at for ever
    logits[..., 30:33] = -1.0  # and three that nobody looked at while they were new
    assert 12 in kept_at_the_end(logits, "heavy_hitter")
    assert kept_at_the_end(logits, "heavy_hitter")[:3] != [0, 1, 2]
    assert kept_at_the_end(logits, "tova")[0] >= 3
    assert kept_at_the_end(logits, "screening")[:2] == [0, 1]


def test_an_oracle_keeps_what_it_is_told() -> None:
    marked = torch.zeros(30, dtype=torch.bool)
    marked[[3, 9, 17]] = True
    logits = torch.randn(1, 1, 30, 30, generator=seeded(2))
    assert kept_at_the_end(logits, nn.GivenKeyScores(marked))[:3] == [3, 9, 17]
    played = nn.PlayedScreening(nn.Oracle(marked))
    assert kept_at_the_end(logits, played)[:3] == [3, 9, 17]


def test_a_function_of_another_library_is_a_policy() -> None:
    logits = torch.randn(1, 1, 30, 30, generator=seeded(3))
    by_position = nn.ScoredBy(lambda sight: -(sight.positions - 7).abs())
    assert kept_at_the_end(logits, by_position)[:3] == [6, 7, 8]


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: nn.ScreenedKeys("shares"), "normalise"),
        (lambda: nn.AppendOnlyKeys(-1.0), "threshold"),
        (lambda: nn.GivenKeyScores(torch.zeros(2, 2, 2)), "given_scores"),
        (lambda: nn.GivenKeyScores(torch.tensor([torch.nan])), "given_scores must be finite"),
    ],
)
def test_bad_options_are_named(build: object, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        build()  # type: ignore[operator]


def test_scores_of_the_wrong_shape_are_refused() -> None:
    logits = torch.zeros(2, 1, 9, 9)
    with pytest.raises(ShapeError, match="score must return"):
        play_eviction(logits, 2, 2, nn.ScoredBy(lambda sight: sight.scores[0]))
    with pytest.raises(ShapeError, match="for 3 sequences; got a batch of 2"):
        play_eviction(logits, 2, 2, nn.GivenKeyScores(torch.zeros(3, 9)))


def test_policies_that_need_inputs_say_so() -> None:
    with pytest.raises(InvalidInput, match="needs the inputs of the network"):
        play_eviction(torch.zeros(1, 1, 9, 9), 2, 2, "surprise")


class NoClassOfOurs:
    """A stranger's policy that derives from nothing."""

    def observe(self, sight: nn.CacheSight) -> None:
        sight.scores.copy_(-sight.positions)


def test_an_object_with_observe_is_a_policy() -> None:
    logits = torch.randn(2, 2, 14, 14, generator=seeded(3))
    torch.testing.assert_close(play_eviction(logits, 3, 3, NoClassOfOurs()), play_eviction(logits, 3, 3, "sinks"))
    assert "NoClassOfOurs" in repr(nn.BoundedKeys(3, 3, NoClassOfOurs()).policy)


@pytest.mark.parametrize("part", ["positions", "weights", "keys", "values"])
def test_a_policy_that_changes_what_it_is_shown_is_named(part: str) -> None:
    class Meddler(nn.AbstractEviction):
        name = "meddler"

        def observe(self, sight: nn.CacheSight) -> None:
            getattr(sight, part).zero_()

    with pytest.raises(InvalidInput, match="'meddler' changed what it was shown"):
        play_eviction(torch.zeros(1, 1, 6, 6), 2, 1, Meddler())


def test_scores_must_be_real() -> None:
    imaginary = nn.ScoredBy(lambda sight: sight.scores.to(torch.complex64))
    with pytest.raises(ShapeError, match=r"score must return real numbers .*complex64"):
        play_eviction(torch.zeros(1, 1, 6, 6), 2, 1, imaginary)
